/* A span as numbers of fixed width, and how many of them become a frame's columns. */
#include "ticks.h"

#include <stddef.h>
#include <stdint.h>

#define NO_LANE 255

typedef struct {
    int64_t start, end, bytes; /* ns of time.monotonic_ns(), or ticks of the processor's counter */
    int32_t step, sequence, peer;
    int16_t micro_batch, stage;
    uint16_t name, group;
    uint8_t kind, in_ticks;
} Row;

/* From `start_ns` on the other clock is ahead by `offset_ns` and `rate` times what has passed (trainer.trace.steady_clock). */
typedef struct {
    int64_t start_ns, offset_ns;
    double rate;
} Piece;

typedef struct {
    const Piece *pieces;
    ptrdiff_t count;
    int64_t zero_ns; /* where the run's clock is 0, on the other one */
    Ticks ticks;
} Clock;

ptrdiff_t columns_bytes(ptrdiff_t count);

/* The rows as a frame's span columns (trainer.trace.frame.SPAN_COLUMNS), of `columns_bytes`; returns their checksum. */
uint64_t write_columns(const Row *rows, ptrdiff_t count, const Clock *clock, const uint8_t lanes[256], char *at);
