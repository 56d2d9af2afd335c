/* Times of ticks, between moments at which both are known: off by what reading the clock takes, some ten nanoseconds. */
#include "ticks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ANCHORS 64
#define APART_NS INT64_C(20000000) /* any two but the last; a moment is off by so little that no rate is wrong by a millionth */
#define READINGS 5

typedef struct {
    int64_t ticks, ns;
} Anchor;

int counter_is_used;

static Anchor anchors[ANCHORS];
static int count;

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
    Anchor best = {0, 0};
    int64_t quickest = INT64_MAX;
    for (int reading = 0; reading < READINGS; reading++) {
        int64_t before = now_ticks(), ns = monotonic_ns(), took = now_ticks() - before;
        if (took >= quickest) continue;
        quickest = took;
        best = (Anchor){before + took / 2, ns};
    }
    return best;
}

void begin_ticks(void) {
#ifdef HAS_COUNTER
    counter_is_used = is_linux_clock();
#endif
    anchor_ticks();
}

void anchor_ticks(void) {
    if (!counter_is_used) return;
    if (count > 1 && anchors[count - 1].ns - anchors[count - 2].ns < APART_NS) count--;
    if (count == ANCHORS) memmove(anchors, anchors + 1, --count * sizeof(Anchor));
    anchors[count++] = now();
}

int64_t ticks_ns(int64_t ticks) {
    if (!counter_is_used || count < 2) return ticks;
    const Anchor *from = &anchors[count - 2];
    while (from > anchors && from->ticks > ticks) from--;
    int64_t lasts_ticks = from[1].ticks - from->ticks, lasts_ns = from[1].ns - from->ns;
    return from->ns + (int64_t)nearbyint((double)(ticks - from->ticks) * (double)lasts_ns / (double)lasts_ticks);
}
