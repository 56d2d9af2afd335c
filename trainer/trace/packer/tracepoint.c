/* A span that is recorded again and again: all but its times and its step is packed once. It reads the clock by itself, since
 * making Python's numbers of its readings, in the midst of other work, takes longer than all the rest. */
#include "chunks.h"

#define NOT_BEGUN (-1)

typedef struct {
    PyObject_HEAD
    Packer *packer;
    uint64_t chunk; /* whose places `row` has */
    int64_t began; /* in ticks */
    Row row;
    PyObject *name, *group;
} Tracepoint;

static int find_places(Tracepoint *self) {
    Packer *packer = self->packer;
    int64_t name = place_of(packer->last, self->name), group = place_of(packer->last, self->group);
    if (name < 0 || group < 0) return -1;
    self->row.name = name;
    self->row.group = group;
    self->chunk = packer->chunk;
    return 0;
}

static PyObject *refuse(Tracepoint *self, PyObject *start_ns, PyObject *end_ns, PyObject *step) {
    const Row *row = &self->row;
    PyObject *refused = Py_BuildValue("(iNNOiiiLiOO)", row->kind, start_ns, end_ns, step, row->micro_batch, row->stage,
                                      row->peer, (long long)row->bytes, row->sequence, self->name, self->group);
    if (keep_refused(self->packer, refused) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *record(Tracepoint *self, int64_t start, int64_t end, int64_t step, int in_ticks) {
    Row *row = room(self->packer);
    if (row == NULL || (self->chunk != self->packer->chunk && find_places(self) < 0)) return NULL;
    *row = self->row;
    row->start = start;
    row->end = end;
    row->step = (int32_t)step;
    row->in_ticks = in_ticks;
    self->packer->next++;
    Py_RETURN_NONE;
}

static PyObject *start(Tracepoint *self, PyObject *Py_UNUSED(none)) {
    self->began = now_ticks();
    Py_RETURN_NONE;
}

static PyObject *in_ns(int64_t ticks) {
    Ticks known = known_ticks();
    return PyLong_FromLongLong(ticks_ns(&known, ticks));
}

static PyObject *end(Tracepoint *self, PyObject *step) {
    int64_t ended = now_ticks(), began = self->began, number;
    self->began = NOT_BEGUN;
    if (ended < began) ended = began; /* a counter set back, as Linux does not let it be for long */
    if (began != NOT_BEGUN && is_whole(step, INT32_MIN, INT32_MAX, &number)) return record(self, began, ended, number, 1);
    return refuse(self, began == NOT_BEGUN ? Py_NewRef(Py_None) : in_ns(began), in_ns(ended), step);
}

static PyObject *between(Tracepoint *self, PyObject *const *items, Py_ssize_t count) {
    int64_t start_ns, end_ns, step;
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "a span lies between two times in a step: 3 numbers, not %zd", count);
        return NULL;
    }
    if (!(is_whole(items[0], INT64_MIN, INT64_MAX, &start_ns) && is_whole(items[1], start_ns, INT64_MAX, &end_ns)
          && is_whole(items[2], INT32_MIN, INT32_MAX, &step)))
        return refuse(self, Py_NewRef(items[0]), Py_NewRef(items[1]), items[2]);
    return record(self, start_ns, end_ns, step, 0);
}

static PyTypeObject *tracepoint_type;

PyObject *new_tracepoint(Packer *packer, PyObject *arguments) {
    PyObject *name, *group;
    int kind, micro_batch, stage, peer;
    long long bytes;
    if (!PyArg_ParseTuple(arguments, "iiiiLUU", &kind, &micro_batch, &stage, &peer, &bytes, &name, &group)) return NULL;
    if (kind != (uint8_t)kind || packer->lanes[kind] == NO_LANE || micro_batch != (int16_t)micro_batch
        || stage != (int16_t)stage) {
        PyErr_Format(PyExc_ValueError, "no frame holds kind %d, micro-batch %d, stage %d", kind, micro_batch, stage);
        return NULL;
    }
    Tracepoint *self = (Tracepoint *)tracepoint_type->tp_alloc(tracepoint_type, 0);
    if (self == NULL) return NULL;
    self->packer = (Packer *)Py_NewRef((PyObject *)packer);
    self->name = Py_NewRef(name);
    self->group = Py_NewRef(group);
    self->began = NOT_BEGUN;
    self->row = (Row){0, 0, bytes, -1, -1, peer, micro_batch, stage, 0, 0, kind, 0};
    return (PyObject *)self;
}

static void delete_tracepoint(Tracepoint *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    Py_XDECREF(self->packer);
    Py_XDECREF(self->name);
    Py_XDECREF(self->group);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"start", (PyCFunction)start, METH_NOARGS, "The span begins now."},
    {"end", (PyCFunction)end, METH_O, "Record, in this step, the span that began."},
    {"between", (PyCFunction)(void (*)(void))between, METH_FASTCALL, "Record a span by its times, ns, in a step."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {{Py_tp_dealloc, delete_tracepoint}, {Py_tp_methods, methods}, {0, NULL}};

static PyType_Spec spec = {
    "trainer.trace.packer.packed.Tracepoint", sizeof(Tracepoint), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

int add_tracepoint(PyObject *module) {
    tracepoint_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return tracepoint_type == NULL ? -1 : PyModule_AddObjectRef(module, "Tracepoint", (PyObject *)tracepoint_type);
}
