#include "codec/tensor_room.h"

bool tensor_room_take(struct tensor_room *room, const char *pointer, size_t count, const size_t *dims,
                      size_t rank, struct problem *problem)
{
	for (size_t i = 0; i < rank; i++) {
		if (dims[i] > room->limit)
			problem_note(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
			             "dimension %zu is %zu, the limit of elements is %zu", i, dims[i],
			             room->limit);
	}
	if (!attn_size_add(room->taken, count, &room->taken))
		room->taken = SIZE_MAX;
	return room->taken <= room->limit ||
	       problem_note(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
	                    "the tensors hold %zu elements up to here, the limit is %zu", room->taken,
	                    room->limit);
}
