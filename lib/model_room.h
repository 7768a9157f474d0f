/*
 * model_room.h - whether the memory of the machine, or of the control groups of this process, holds a model.
 *
 * Linux would let a model be loaded that is too large and end the process, with all it serves, when the
 * memory is touched; so this is asked before.
 */
#ifndef ATTN_MODEL_ROOM_H
#define ATTN_MODEL_ROOM_H

#include "attn.h"

/* Bytes that can still be had: the least of MemAvailable of <root>/proc/meminfo and of what the limits of the
 * groups in <root>/proc/self/cgroup, under <root>/sys/fs/cgroup, leave; their caches of files count as free.
 * SIZE_MAX where nothing is known. root is "" but in tests. */
size_t attn_model_room(const char *root);

/* ATTN_MEMORY with both numbers when that many float32 are more than there is room for. */
attn_status attn_model_room_check(size_t numbers, attn_error *err);

#endif
