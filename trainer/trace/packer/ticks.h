/* The processor's counter, where Linux keeps its own time by it: to read it touches no memory, while clock_gettime, in the midst
 * of other work, finds nothing of its own in the caches. Elsewhere ticks are the nanoseconds of Python's time.monotonic_ns().
 */
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__) && defined(__linux__)
#define HAS_COUNTER 1
#endif

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

/* Note what the time is now: before ticks that have been read are made times. */
void anchor_ticks(void);

/* On the clock of time.monotonic_ns(), of ticks that were read before the last anchor. */
int64_t ticks_ns(int64_t ticks);
