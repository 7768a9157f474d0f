#include "http/deadlines.h"

#include <assert.h>
#include <stdlib.h>

bool deadlines_init(struct deadlines *deadlines, size_t capacity)
{
	deadlines->heap = calloc(capacity, sizeof(struct deadline *));
	deadlines->count = 0;
	deadlines->capacity = capacity;
	return deadlines->heap != NULL;
}

void deadlines_clear(struct deadlines *deadlines)
{
	free(deadlines->heap);
	*deadlines = (struct deadlines){0};
}

static void place(struct deadlines *deadlines, struct deadline *deadline, size_t index)
{
	deadlines->heap[index] = deadline;
	deadline->slot = index + 1;
}

static void sift_up(struct deadlines *deadlines, struct deadline *deadline, size_t index)
{
	while (index > 0) {
		size_t parent = (index - 1) / 2;
		if (deadlines->heap[parent]->at <= deadline->at)
			break;
		place(deadlines, deadlines->heap[parent], index);
		index = parent;
	}
	place(deadlines, deadline, index);
}

static void sift_down(struct deadlines *deadlines, struct deadline *deadline, size_t index)
{
	for (size_t child = 2 * index + 1; child < deadlines->count; child = 2 * index + 1) {
		if (child + 1 < deadlines->count &&
		    deadlines->heap[child + 1]->at < deadlines->heap[child]->at)
			child++;
		if (deadlines->heap[child]->at >= deadline->at)
			break;
		place(deadlines, deadlines->heap[child], index);
		index = child;
	}
	place(deadlines, deadline, index);
}

/* Puts a deadline whose time is its own where it belongs, starting at a free index. */
static void settle(struct deadlines *deadlines, struct deadline *deadline, size_t index)
{
	if (index > 0 && deadlines->heap[(index - 1) / 2]->at > deadline->at)
		sift_up(deadlines, deadline, index);
	else
		sift_down(deadlines, deadline, index);
}

void deadlines_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at)
{
	deadline->at = at;
	if (deadline->slot == 0) {
		assert(deadlines->count < deadlines->capacity);
		sift_up(deadlines, deadline, deadlines->count++);
	} else {
		settle(deadlines, deadline, deadline->slot - 1);
	}
}

void deadlines_drop(struct deadlines *deadlines, struct deadline *deadline)
{
	if (deadline->slot == 0)
		return;
	size_t index = deadline->slot - 1;
	deadline->slot = 0;
	struct deadline *last = deadlines->heap[--deadlines->count];
	if (last != deadline)
		settle(deadlines, last, index);
}

struct deadline *deadlines_first(const struct deadlines *deadlines)
{
	return deadlines->count > 0 ? deadlines->heap[0] : NULL;
}

struct deadline *deadlines_take_due(struct deadlines *deadlines, uint64_t now)
{
	struct deadline *first = deadlines_first(deadlines);
	if (!first || first->at > now)
		return NULL;
	deadlines_drop(deadlines, first);
	return first;
}
