/* From rows to a frame's columns, on the run's clock. */
#include "rows.h"

#include <math.h>
#include <string.h>

static int64_t on_run(const Clock *clock, int64_t local_ns) {
    const Piece *piece = &clock->pieces[clock->count - 1];
    while (piece > clock->pieces && piece->start_ns > local_ns) piece--;
    int64_t drifted_ns = llrint(piece->rate * (double)(local_ns - piece->start_ns));
    return local_ns + piece->offset_ns + drifted_ns - clock->zero_ns;
}

static uint64_t mixed(uint64_t bits, int64_t number) { /* trainer.trace.checksum */
    bits = (bits ^ (uint64_t)number) * 0xBF58476D1CE4E5B9;
    return bits ^ bits >> 29;
}

static uint64_t checksum_of(const Row *row, int64_t start_ns, int64_t duration_ns) {
    const int64_t numbers[] = {start_ns, duration_ns, row->bytes, row->step, row->sequence, row->peer, row->micro_batch,
                               row->stage, row->kind};
    uint64_t bits = 0;
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) bits = mixed(bits, numbers[at]);
    return bits;
}

static ptrdiff_t padded(ptrdiff_t size) {
    return (size + 7) / 8 * 8;
}

ptrdiff_t columns_bytes(ptrdiff_t count) {
    return 3 * 8 * count + 3 * padded(4 * count) + 4 * padded(2 * count) + 2 * padded(count);
}

/* Room for `count` numbers of `size` bytes at `*at`, which moves behind them and their padding. */
static void *column(char **at, ptrdiff_t count, ptrdiff_t size) {
    char *begin = *at, *end = begin + count * size;
    *at = begin + padded(count * size);
    memset(end, 0, *at - end);
    return begin;
}

uint64_t write_columns(const Row *rows, ptrdiff_t count, const Clock *clock, const uint8_t lanes[256], char *at) {
    double *start_ns = column(&at, count, 8), *duration_ns = column(&at, count, 8), *bytes = column(&at, count, 8);
    int32_t *step = column(&at, count, 4), *sequence = column(&at, count, 4), *peer = column(&at, count, 4);
    int16_t *micro_batch = column(&at, count, 2), *stage = column(&at, count, 2);
    uint16_t *name = column(&at, count, 2), *group = column(&at, count, 2);
    uint8_t *kind = column(&at, count, 1), *lane = column(&at, count, 1);
    uint64_t sum = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const Row *row = &rows[i];
        int64_t began_ns = on_run(clock, row->in_ticks ? ticks_ns(&clock->ticks, row->start) : row->start);
        int64_t ended_ns = on_run(clock, row->in_ticks ? ticks_ns(&clock->ticks, row->end) : row->end);
        start_ns[i] = (double)began_ns;
        duration_ns[i] = (double)(ended_ns - began_ns);
        bytes[i] = (double)row->bytes;
        step[i] = row->step, sequence[i] = row->sequence, peer[i] = row->peer;
        micro_batch[i] = row->micro_batch, stage[i] = row->stage;
        name[i] = row->name, group[i] = row->group;
        kind[i] = row->kind, lane[i] = lanes[row->kind];
        sum += checksum_of(row, (int64_t)start_ns[i], (int64_t)duration_ns[i]);
    }
    return sum;
}
