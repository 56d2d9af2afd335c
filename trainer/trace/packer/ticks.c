/* Times of ticks, between moments at which both are known: off by what reading the clock takes, some ten nanoseconds. */
#include "ticks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define APART_NS INT64_C(20000000) /* any two but the last; a moment is off by so little that no rate is wrong by a millionth */
#define READINGS 5

int counter_is_used;

static Ticks known;

static int is_linux_clock(void) {
    char name[8] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (file == NULL) return 0;
    int is_read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return is_read && strcmp(name, "tsc\n") == 0;
}

/* Of some readings the one that nothing came between. */
static Anchor now(void) {
    Anchor best = {0, 0, 0};
    int64_t quickest = INT64_MAX;
    for (int reading = 0; reading < READINGS; reading++) {
        int64_t before = now_ticks(), ns = monotonic_ns(), took = now_ticks() - before;
        if (took >= quickest) continue;
        quickest = took;
        best = (Anchor){before + took / 2, ns, 0};
    }
    return best;
}

void begin_ticks(void) {
#ifdef HAS_COUNTER
    counter_is_used = is_linux_clock();
#endif
    known_ticks();
}

Ticks known_ticks(void) {
    if (!counter_is_used) return known;
    Anchor *anchors = known.anchors;
    int count = known.count;
    if (count > 1 && anchors[count - 1].ns - anchors[count - 2].ns < APART_NS) count--;
    if (count == ANCHORS) memmove(anchors, anchors + 1, --count * sizeof(Anchor));
    Anchor *next = &anchors[count];
    *next = now();
    int64_t passed = count ? next->ticks - next[-1].ticks : 0;
    if (count) next[-1].rate = passed > 0 ? (double)(next->ns - next[-1].ns) / (double)passed : 0; /* 0: a counter set back */
    known.count = count + 1;
    return known;
}

int64_t ticks_ns(const Ticks *known, int64_t ticks) {
    if (known->count < 2) return ticks;
    const Anchor *from = &known->anchors[known->count - 2];
    while (from > known->anchors && from->ticks > ticks) from--;
    return from->ns + llrint((double)(ticks - from->ticks) * from->rate);
}
