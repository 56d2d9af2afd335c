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
    Py_ssize_t count; /* of rows, once it is no longer the last chunk */
    PyObject *places; /* of each text, a dictionary, which keeps it alive */
    Known known[KNOWN_TEXTS]; /* some of these texts, by their address */
    PyObject *refused;
    Row rows[CHUNK_ROWS];
} Chunk;

/* What recording a span touches comes first, in one cache line: between other work nothing is in the caches. */
typedef struct {
    PyObject_HEAD
    Row *next, *full; /* where the next row of the last chunk goes, and where that chunk ends */
    uint64_t chunk; /* the number of the last one, from 1 on */
    Chunk *first, *last;
    uint8_t lanes[256];
} Packer;

/* A tracepoint of this packer, by its Python arguments; NULL with an error. */
PyObject *new_tracepoint(Packer *packer, PyObject *arguments);

int add_tracepoint(PyObject *module);

/* The slow way of `is_whole`. */
int is_long(PyObject *given, int64_t *value);

/* Whether `given` is a whole number from `low` to `high`. The usual sizes are read in place, as CPython 3.11 stores them. */
static inline int is_whole(PyObject *given, int64_t low, int64_t high, int64_t *value) {
    if (!PyLong_Check(given)) return 0;
#if PY_VERSION_HEX < 0x030C0000
    const digit *digits = ((PyLongObject *)given)->ob_digit;
    switch (Py_SIZE(given)) {
    case -1: *value = -(int64_t)digits[0]; break;
    case 0: *value = 0; break;
    case 1: *value = digits[0]; break;
    case 2: *value = (int64_t)digits[1] << PyLong_SHIFT | digits[0]; break;
    default: if (!is_long(given, value)) return 0;
    }
#else
    if (!is_long(given, value)) return 0;
#endif
    return low <= *value && *value <= high;
}

/* The place of a text among its chunk's; -1 if it is not text, or with an error. */
int64_t place_of(Chunk *chunk, PyObject *text);

void free_chunk(Chunk *chunk);

/* A chunk that belongs to nobody; NULL with an error. Other threads may have run when it is there. */
Chunk *new_chunk(void);

/* Make `chunk` the packer's last one. */
void append_chunk(Packer *packer, Chunk *chunk);

/* How many rows `chunk` has, and how many were refused. */
Py_ssize_t rows_in(const Packer *packer, const Chunk *chunk);

/* Append a chunk, for the last one is full; its first row, NULL with an error. Other threads may have run. */
Row *next_chunk(Packer *packer);

/* Where the next row goes; whoever fills it in moves `packer->next`. NULL with an error. */
static inline Row *room(Packer *packer) {
    return packer->next < packer->full ? packer->next : next_chunk(packer);
}

/* Keep a row that cannot be packed, whose reference is taken; -1 with an error. */
int keep_refused(Packer *packer, PyObject *row);
