#include "chunks.h"

#include <string.h>

void free_chunk(Chunk *chunk) {
    Py_XDECREF(chunk->places);
    Py_XDECREF(chunk->refused);
    PyMem_Free(chunk);
}

Chunk *new_chunk(Packer *packer) {
    Chunk *chunk = PyMem_Malloc(sizeof(Chunk));
    if (chunk == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    chunk->next = NULL;
    chunk->number = ++packer->chunks;
    chunk->count = 0;
    memset(chunk->known, 0, sizeof chunk->known);
    chunk->places = PyDict_New();
    chunk->refused = PyList_New(0);
    if (chunk->places == NULL || chunk->refused == NULL) {
        free_chunk(chunk);
        return NULL;
    }
    return chunk;
}

/* The usual sizes are read in place, as CPython 3.11 stores them. */
int is_whole(PyObject *given, int64_t low, int64_t high, int64_t *value) {
    int beyond = 0;
    if (!PyLong_Check(given)) return 0;
#if PY_VERSION_HEX < 0x030C0000
    const digit *digits = ((PyLongObject *)given)->ob_digit;
    switch (Py_SIZE(given)) {
    case -1: *value = -(int64_t)digits[0]; break;
    case 0: *value = 0; break;
    case 1: *value = digits[0]; break;
    case 2: *value = (int64_t)digits[1] << PyLong_SHIFT | digits[0]; break;
    default: *value = PyLong_AsLongLongAndOverflow(given, &beyond);
    }
#else
    *value = PyLong_AsLongLongAndOverflow(given, &beyond);
#endif
    return !beyond && low <= *value && *value <= high;
}

int64_t place_of(Chunk *chunk, PyObject *text) {
    Known *known = &chunk->known[((uintptr_t)text >> 4) % KNOWN_TEXTS];
    if (known->text == text) return known->place;
    if (!PyUnicode_CheckExact(text)) return -1;
    PyObject *place = PyDict_GetItemWithError(chunk->places, text);
    if (place != NULL) return PyLong_AsLong(place);
    if (PyErr_Occurred()) return -1;
    Py_ssize_t next = PyDict_GET_SIZE(chunk->places); /* at most two a row: it fits 16 bits */
    place = PyLong_FromSsize_t(next);
    if (place == NULL) return -1;
    int failed = PyDict_SetItem(chunk->places, text, place);
    Py_DECREF(place);
    if (failed) return -1;
    *known = (Known){text, next};
    return next;
}

Chunk *chunk_with_room(Packer *packer) {
    if (packer->last->count == CHUNK_ROWS) {
        Chunk *fresh = new_chunk(packer);
        if (fresh == NULL) return NULL;
        packer->last->next = fresh;
        packer->last = fresh;
    }
    return packer->last;
}

int keep_refused(Packer *packer, PyObject *row) {
    if (row == NULL) return -1;
    int failed = PyList_Append(packer->last->refused, row);
    Py_DECREF(row);
    packer->waiting++;
    return failed;
}
