/*
 * clock.h - the one place that reads a clock. Times are monotonic nanoseconds; everything else is given them.
 */
#ifndef ATTND_OBSERVE_CLOCK_H
#define ATTND_OBSERVE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_MS 1000000ull
#define CLOCK_NS_PER_S 1000000000ull

/* Monotonic time in nanoseconds (CLOCK_MONOTONIC). Any thread. */
uint64_t clock_now(void);

/* Milliseconds since 1970 (UTC), for the log. Any thread. */
int64_t clock_unix_ms(void);

#endif
