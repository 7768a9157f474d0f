/*
 * deadlines.h - moments by which something must have happened, soonest first.
 *
 * A binary heap of struct deadline, which live inside their owners. Room for all of them is taken at start,
 * so setting one cannot fail. Pure: times are given, no clock is read. One thread.
 */
#ifndef ATTND_HTTP_DEADLINES_H
#define ATTND_HTTP_DEADLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: not set. Must not move in memory while it is set. */
struct deadline {
	uint64_t at; /* nanoseconds */
	size_t slot; /* 1 + place in the heap; 0: not set */
};

struct deadlines {
	struct deadline **heap;
	size_t count, capacity;
};

/* Room for `capacity` deadlines; false when the system refuses memory. */
bool deadlines_init(struct deadlines *deadlines, size_t capacity);
void deadlines_clear(struct deadlines *deadlines);

/* Sets the deadline, or moves it when it is set already. */
void deadlines_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at);
/* Unsets it; nothing happens when it is not set. */
void deadlines_drop(struct deadlines *deadlines, struct deadline *deadline);

/* The soonest one, or NULL. */
struct deadline *deadlines_first(const struct deadlines *deadlines);
/* Unsets and returns the soonest one that is not after now, or NULL when none is due. */
struct deadline *deadlines_take_due(struct deadlines *deadlines, uint64_t now);

#endif
