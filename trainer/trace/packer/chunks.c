#include "chunks.h"

#include <string.h>

void free_chunk(Chunk *chunk) {
    Py_XDECREF(chunk->places);
    Py_XDECREF(chunk->refused);
    PyMem_Free(chunk);
}

Chunk *new_chunk(void) {
    Chunk *chunk = PyMem_Malloc(sizeof(Chunk));
    if (chunk == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    chunk->next = NULL;
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

int is_long(PyObject *given, int64_t *value) {
    int beyond;
    *value = PyLong_AsLongLongAndOverflow(given, &beyond);
    return !beyond;
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

Py_ssize_t rows_in(const Packer *packer, const Chunk *chunk) {
    return chunk == packer->last ? packer->next - chunk->rows : chunk->count;
}

void append_chunk(Packer *packer, Chunk *chunk) {
    if (packer->last == NULL) {
        packer->first = chunk;
    } else {
        packer->last->count = rows_in(packer, packer->last);
        packer->last->next = chunk;
    }
    packer->last = chunk;
    packer->next = chunk->rows;
    packer->full = chunk->rows + CHUNK_ROWS;
    packer->chunk++;
}

Row *next_chunk(Packer *packer) {
    Chunk *chunk = new_chunk();
    if (chunk == NULL) return NULL;
    append_chunk(packer, chunk);
    return packer->next;
}

int keep_refused(Packer *packer, PyObject *row) {
    if (row == NULL) return -1;
    int failed = PyList_Append(packer->last->refused, row);
    Py_DECREF(row);
    return failed;
}
