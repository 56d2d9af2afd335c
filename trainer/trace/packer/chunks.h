/* Rows as they wait for their frame: chunks of a frame's worth, each with the texts that its rows name. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rows.h"

#define CHUNK_ROWS 4096
#define KNOWN_TEXTS 256

typedef struct {
    PyObject *text;
    int64_t place;
} Known;

typedef struct Chunk {
    struct Chunk *next;
    uint64_t number; /* from 1 on */
    Py_ssize_t count;
    PyObject *places; /* of each text, a dictionary, which keeps it alive */
    Known known[KNOWN_TEXTS]; /* some of these texts, by their address */
    PyObject *refused;
    Row rows[CHUNK_ROWS];
} Chunk;

typedef struct {
    PyObject_HEAD
    Chunk *first, *last;
    uint64_t chunks;
    Py_ssize_t waiting;
    uint8_t lanes[256];
} Packer;

/* A tracepoint of this packer, by its Python arguments; NULL with an error. */
PyObject *new_tracepoint(Packer *packer, PyObject *arguments);

int add_tracepoint(PyObject *module);

/* Whether `given` is a whole number from `low` to `high`. */
int is_whole(PyObject *given, int64_t low, int64_t high, int64_t *value);

/* The place of a text among its chunk's; -1 if it is not text, or with an error. */
int64_t place_of(Chunk *chunk, PyObject *text);

void free_chunk(Chunk *chunk);

/* The next chunk of a packer, not yet its last one; NULL with an error. Other threads may have run when it is there. */
Chunk *new_chunk(Packer *packer);

/* The chunk that has room for a row; NULL with an error. Other threads may have run. */
Chunk *chunk_with_room(Packer *packer);

/* Keep a row that cannot be packed, whose reference is taken; -1 with an error. */
int keep_refused(Packer *packer, PyObject *row);
