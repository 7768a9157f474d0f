#include "attn.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

#define ALIGNMENT ((size_t)64)
#define CHUNK_BYTES ((size_t)64 << 10) /* least room of a chunk, so that small blocks share one */

/* A piece of memory from the system: this header, then room bytes. */
struct chunk {
	alignas(64) struct chunk *below; /* the chunk filled before it, or the next spare */
	size_t room, used;
};

/* Chunks in use are a stack; what a rewind takes off it waits among the spares. */
struct attn_arena {
	struct chunk *top;
	struct chunk *spare;
	size_t keep;
	size_t in_use, peak; /* bytes handed out, with their alignment */
};

attn_arena *attn_arena_new(size_t keep)
{
	attn_arena *arena = calloc(1, sizeof(*arena));
	if (arena != NULL)
		arena->keep = keep;
	return arena;
}

static void chunks_free(struct chunk *chunk)
{
	while (chunk != NULL) {
		struct chunk *below = chunk->below;
		free(chunk);
		chunk = below;
	}
}

void attn_arena_free(attn_arena *arena)
{
	if (arena == NULL)
		return;
	chunks_free(arena->top);
	chunks_free(arena->spare);
	free(arena);
}

/* Takes the first spare with enough room out of the list; NULL when there is none. */
static struct chunk *spare_take(attn_arena *arena, size_t bytes)
{
	for (struct chunk **link = &arena->spare; *link != NULL; link = &(*link)->below) {
		struct chunk *chunk = *link;
		if (chunk->room >= bytes) {
			*link = chunk->below;
			return chunk;
		}
	}
	return NULL;
}

static struct chunk *chunk_new(size_t bytes)
{
	size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	size_t total = 0;
	if (!attn_size_add(room, sizeof(struct chunk), &total))
		return NULL;
	struct chunk *chunk = aligned_alloc(ALIGNMENT, total);
	if (chunk != NULL)
		*chunk = (struct chunk){.room = room};
	return chunk;
}

static bool chunk_push(attn_arena *arena, size_t bytes)
{
	struct chunk *chunk = spare_take(arena, bytes);
	if (chunk == NULL)
		chunk = chunk_new(bytes);
	if (chunk == NULL)
		return false;
	chunk->below = arena->top;
	chunk->used = 0;
	arena->top = chunk;
	return true;
}

void *attn_arena_alloc(attn_arena *arena, size_t bytes)
{
	size_t padded = 0;
	if (!attn_size_add(bytes, ALIGNMENT - 1, &padded))
		return NULL;
	padded &= ~(ALIGNMENT - 1);
	struct chunk *top = arena->top;
	if (top == NULL || top->room - top->used < padded) {
		if (!chunk_push(arena, padded))
			return NULL;
		top = arena->top;
	}
	void *block = (char *)(top + 1) + top->used;
	top->used += padded;
	arena->in_use += padded;
	if (arena->in_use > arena->peak)
		arena->peak = arena->in_use;
	return block;
}

float *attn_arena_floats(attn_arena *arena, size_t count)
{
	size_t bytes = 0;
	return attn_size_mul(count, sizeof(float), &bytes) ? attn_arena_alloc(arena, bytes) : NULL;
}

size_t attn_arena_peak(const attn_arena *arena)
{
	return arena->peak;
}

attn_arena_mark attn_arena_here(const attn_arena *arena)
{
	return (attn_arena_mark){.chunk = arena->top, .used = arena->top == NULL ? 0 : arena->top->used};
}

/* Spares stay sorted, largest first, so that trimming gives back the small ones. */
static void spare_put(attn_arena *arena, struct chunk *chunk)
{
	struct chunk **link = &arena->spare;
	while (*link != NULL && (*link)->room > chunk->room)
		link = &(*link)->below;
	chunk->below = *link;
	*link = chunk;
}

static void spare_trim(attn_arena *arena)
{
	size_t kept = 0;
	struct chunk **link = &arena->spare;
	while (*link != NULL) {
		struct chunk *chunk = *link;
		if (chunk->room <= arena->keep - kept) {
			kept += chunk->room;
			link = &chunk->below;
		} else {
			*link = chunk->below;
			free(chunk);
		}
	}
}

void attn_arena_rewind(attn_arena *arena, attn_arena_mark mark)
{
	while (arena->top != NULL && arena->top != mark.chunk) {
		struct chunk *chunk = arena->top;
		arena->in_use -= chunk->used;
		arena->top = chunk->below;
		spare_put(arena, chunk);
	}
	if (arena->top == NULL) {
		assert(mark.chunk == NULL);
		spare_trim(arena);
		return;
	}
	assert(mark.used <= arena->top->used);
	arena->in_use -= arena->top->used - mark.used;
	arena->top->used = mark.used;
}
