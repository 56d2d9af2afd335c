/* The hot path of recording. A span becomes a row of numbers at once, budget 80 ns, and a frame's rows become its columns in
 * one go, budget 50 ns a span. `manage.py bench overhead` watches both; `plain.py` and what it calls do the same, and
 * `tests/unit/test_packer.py` holds this to that.
 *
 * Everything runs under the global lock, but for a frame's columns: the chunk that becomes these is nobody else's by then.
 * Else only making a Python object that the garbage collector follows may let other threads in: that is done before a chunk
 * is touched.
 */
#include "chunks.h"

#include <string.h>

enum { KIND, START_NS, END_NS, STEP, MICRO_BATCH, STAGE, PEER, BYTES, SEQUENCE, NAME, GROUP, ROW_ITEMS };

/* Whether the items are a span that a frame can hold; `row` is then that. */
static int is_packed(Packer *self, PyObject *const *items, Row *row) {
    int64_t value[ROW_ITEMS];
#define ITEM(AT, LOW, HIGH) is_whole(items[AT], LOW, HIGH, &value[AT])
    if (!(ITEM(KIND, 0, 255) && self->lanes[value[KIND]] != NO_LANE && ITEM(START_NS, INT64_MIN, INT64_MAX)
          && ITEM(END_NS, value[START_NS], INT64_MAX) && ITEM(STEP, INT32_MIN, INT32_MAX)
          && ITEM(MICRO_BATCH, INT16_MIN, INT16_MAX) && ITEM(STAGE, INT16_MIN, INT16_MAX) && ITEM(PEER, INT32_MIN, INT32_MAX)
          && ITEM(BYTES, INT64_MIN, INT64_MAX) && ITEM(SEQUENCE, INT32_MIN, INT32_MAX)))
        return 0;
#undef ITEM
    value[NAME] = place_of(self->last, items[NAME]);
    value[GROUP] = place_of(self->last, items[GROUP]);
    if (value[NAME] < 0 || value[GROUP] < 0) return 0;
    *row = (Row){value[START_NS], value[END_NS], value[BYTES], value[STEP], value[SEQUENCE], value[PEER],
                 value[MICRO_BATCH], value[STAGE], value[NAME], value[GROUP], value[KIND], 0};
    return 1;
}

static PyObject *add(Packer *self, PyObject *const *items, Py_ssize_t count) {
    Row *next = room(self);
    if (next == NULL) return NULL;
    if (count == ROW_ITEMS && is_packed(self, items, next)) {
        self->next++;
        Py_RETURN_NONE;
    }
    PyErr_Clear();
    PyObject *row = PyTuple_New(count);
    for (Py_ssize_t at = 0; row != NULL && at < count; at++) PyTuple_SET_ITEM(row, at, Py_NewRef(items[at]));
    if (keep_refused(self, row) < 0) return NULL;
    Py_RETURN_NONE;
}

/* The first chunk, no longer the packer's; NULL with an error. */
static Chunk *take_first(Packer *self) {
    Chunk *fresh = new_chunk();
    if (fresh == NULL) return NULL;
    if (self->first == self->last) {
        append_chunk(self, fresh);
    } else {
        free_chunk(fresh);
    }
    Chunk *taken = self->first;
    self->first = taken->next;
    return taken;
}

static PyObject *take(Packer *self, PyObject *arguments) {
    const char *pieces;
    Py_ssize_t pieces_bytes;
    long long zero_ns;
    if (!PyArg_ParseTuple(arguments, "y#L", &pieces, &pieces_bytes, &zero_ns)) return NULL;
    if (pieces_bytes < (Py_ssize_t)sizeof(Piece) || pieces_bytes % sizeof(Piece)) {
        PyErr_Format(PyExc_ValueError, "a clock is one piece or more of %zu bytes, not %zd", sizeof(Piece), pieces_bytes);
        return NULL;
    }
    Chunk *taken = take_first(self);
    if (taken == NULL) return NULL;
    PyObject *result = NULL, *columns = PyBytes_FromStringAndSize(NULL, columns_bytes(taken->count));
    if (columns != NULL) {
        Clock clock = {(const Piece *)pieces, pieces_bytes / sizeof(Piece), zero_ns, known_ticks()};
        uint64_t checksum;
        Py_BEGIN_ALLOW_THREADS
        checksum = write_columns(taken->rows, taken->count, &clock, self->lanes, PyBytes_AS_STRING(columns));
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("(nNKNO)", taken->count, columns, (unsigned long long)checksum, PyDict_Keys(taken->places),
                               taken->refused);
    }
    free_chunk(taken);
    return result;
}

static Py_ssize_t length(Packer *self) {
    Py_ssize_t waiting = 0;
    for (const Chunk *chunk = self->first; chunk != NULL; chunk = chunk->next)
        waiting += rows_in(self, chunk) + PyList_GET_SIZE(chunk->refused);
    return waiting;
}

static PyObject *new_packer(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named)) {
    const char *lanes;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "y#", &lanes, &size)) return NULL;
    if (size != 256) {
        PyErr_Format(PyExc_ValueError, "lanes are 256 bytes, one for each kind, not %zd", size);
        return NULL;
    }
    Packer *self = (Packer *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    memcpy(self->lanes, lanes, 256);
    Chunk *first = new_chunk();
    if (first == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    append_chunk(self, first);
    return (PyObject *)self;
}

static void delete_packer(Packer *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    for (Chunk *chunk = self->first; chunk != NULL;) {
        Chunk *next = chunk->next;
        free_chunk(chunk);
        chunk = next;
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL, "Pack one row; one that cannot be packed is kept for `take`."},
    {"tracepoint", (PyCFunction)new_tracepoint, METH_VARARGS, "Of a kind, micro-batch, stage, peer, bytes, name and group."},
    {"take", (PyCFunction)take, METH_VARARGS, "The oldest rows, at most a frame's worth, on another clock."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new_packer}, {Py_tp_dealloc, delete_packer}, {Py_tp_methods, methods}, {Py_sq_length, length}, {0, NULL},
};

static PyType_Spec packer_type = {"trainer.trace.packer.packed.Packer", sizeof(Packer), 0, Py_TPFLAGS_DEFAULT, slots};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "packed", .m_size = -1};

PyMODINIT_FUNC PyInit_packed(void) {
    PyObject *made = PyModule_Create(&module), *packer = PyType_FromSpec(&packer_type);
    if (made == NULL || packer == NULL || PyModule_AddObjectRef(made, "Packer", packer) < 0 || add_tracepoint(made) < 0) {
        Py_CLEAR(made);
    }
    Py_XDECREF(packer);
    begin_ticks();
    return made;
}
