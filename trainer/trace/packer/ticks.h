/* The processor's counter, where Linux keeps its own time by it: to read it touches no memory, while clock_gettime, in the midst
 * of other work, finds nothing of its own in the caches. Elsewhere ticks are the nanoseconds of Python's time.monotonic_ns().
 */
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__) && defined(__linux__)
#define HAS_COUNTER 1
#endif

#define ANCHORS 64

/* A moment, and how many ns a tick lasts from there to the next one. */
typedef struct {
    int64_t ticks, ns;
    double rate;
} Anchor;

/* None where ticks are ns. */
typedef struct {
    int count;
    Anchor anchors[ANCHORS];
} Ticks;

extern int counter_is_used;

static inline int64_t monotonic_ns(void) {
#ifdef __APPLE__
    return (int64_t)clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
#endif
}

static inline int64_t now_ticks(void) {
#ifdef HAS_COUNTER
    if (counter_is_used) return (int64_t)__builtin_ia32_rdtsc();
#endif
    return monotonic_ns();
}

/* Find out what ticks are here. */
void begin_ticks(void);

/* What is known of them, now among it; under the global lock. */
Ticks known_ticks(void);

/* On the clock of time.monotonic_ns(), of ticks that had been read when this was known. */
int64_t ticks_ns(const Ticks *known, int64_t ticks);
