#include "text/merges.h"

#include "text/load_config.h"

#include <stdlib.h>
#include <string.h>

struct merge {
	uint64_t pair; /* left id, right id */
	uint32_t rank; /* VOCABULARY_NONE: a free slot */
	uint32_t made;
};

struct merges {
	struct merge *slots;
	size_t slot_mask;
};

struct candidate {
	uint32_t rank, place, made;
};

/* ---- table */

static uint64_t pair_of(uint32_t left, uint32_t right)
{
	return (uint64_t)left << 32 | right;
}

/* The slot of a pair, or the free one where it would be. */
static struct merge *slot_of(const struct merges *merges, uint64_t pair)
{
	uint64_t hash = pair * UINT64_C(0x9E3779B97F4A7C15);
	size_t slot = (size_t)(hash >> 32) & merges->slot_mask;
	while (merges->slots[slot].rank != VOCABULARY_NONE && merges->slots[slot].pair != pair)
		slot = (slot + 1) & merges->slot_mask;
	return &merges->slots[slot];
}

static const struct merge *find(const struct merges *merges, uint32_t left, uint32_t right)
{
	const struct merge *merge = slot_of(merges, pair_of(left, right));
	return merge->rank == VOCABULARY_NONE ? NULL : merge;
}

/* The two sides of a merge; false when it has others. */
static bool sides(const json_t *item, const char **left, size_t *left_length, const char **right)
{
	if (json_is_array(item) && json_array_size(item) == 2) {
		*left = json_string_value(json_array_get(item, 0));
		*right = json_string_value(json_array_get(item, 1));
		*left_length = *left != NULL ? strlen(*left) : 0;
		return *left != NULL && *right != NULL;
	}
	*left = json_string_value(item);
	const char *blank = *left != NULL ? strchr(*left, ' ') : NULL;
	if (blank == NULL || strchr(blank + 1, ' ') != NULL)
		return false;
	*left_length = (size_t)(blank - *left);
	*right = blank + 1;
	return true;
}

static attn_status add(struct merges *merges, size_t rank, const json_t *item,
                       const struct vocabulary *vocabulary, const char *prefix, attn_error *err)
{
	const char *left, *right;
	size_t left_length, skipped = strlen(prefix);
	if (!sides(item, &left, &left_length, &right))
		return load_failed(err, ATTN_CONFIG, "merge %zu is not two tokens", rank);
	size_t right_length = strlen(right);
	if (skipped > right_length)
		return load_failed(err, ATTN_CONFIG, "merge %zu: '%s' is shorter than the prefix '%s'", rank,
		                   right, prefix);
	uint32_t left_id = vocabulary_find(vocabulary, left, left_length);
	uint32_t right_id = vocabulary_find(vocabulary, right, right_length);
	const char *tail = right + skipped;
	uint64_t hash = vocabulary_hash(VOCABULARY_HASH, left, left_length);
	hash = vocabulary_hash(hash, tail, right_length - skipped);
	uint32_t made =
	    vocabulary_find_hashed(vocabulary, hash, left, left_length, tail, right_length - skipped);
	if (left_id == VOCABULARY_NONE || right_id == VOCABULARY_NONE || made == VOCABULARY_NONE)
		return load_failed(err, ATTN_CONFIG,
		                   "merge %zu, '%.*s' and '%s': a token of it is not in the vocabulary", rank,
		                   (int)left_length, left, right);
	uint64_t pair = pair_of(left_id, right_id);
	*slot_of(merges, pair) = (struct merge){pair, (uint32_t)rank, made};
	return ATTN_OK;
}

attn_status merges_new(const json_t *list, const struct vocabulary *vocabulary, const char *prefix,
                       struct merges **out, attn_error *err)
{
	if (!json_is_array(list) || json_array_size(list) > UINT32_MAX / 4)
		return load_failed(err, ATTN_CONFIG, "merges is not a list");
	size_t count = json_array_size(list), slots = 16;
	while (slots < count * 2)
		slots *= 2;
	struct merges *merges = calloc(1, sizeof *merges);
	if (merges != NULL)
		merges->slots = malloc(slots * sizeof *merges->slots);
	if (merges == NULL || merges->slots == NULL) {
		merges_free(merges);
		return load_no_memory(err);
	}
	merges->slot_mask = slots - 1;
	for (size_t i = 0; i < slots; i++)
		merges->slots[i].rank = VOCABULARY_NONE;
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < count && status == ATTN_OK; i++)
		status = add(merges, i, json_array_get(list, i), vocabulary, prefix, err);
	if (status != ATTN_OK) {
		merges_free(merges);
		return status;
	}
	*out = merges;
	return ATTN_OK;
}

void merges_free(struct merges *merges)
{
	if (merges == NULL)
		return;
	free(merges->slots);
	free(merges);
}

/* ---- heap: of candidates the lowest rank first, then the leftmost */

static bool before(struct candidate a, struct candidate b)
{
	return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
}

static void push(struct merging *merging, struct candidate candidate)
{
	if (merging->waiting == merging->heap_room) {
		size_t room = merging->heap_room * 2 + 64;
		struct candidate *heap = realloc(merging->heap, room * sizeof *heap);
		if (heap == NULL) {
			merging->memory = true;
			return;
		}
		merging->heap = heap;
		merging->heap_room = room;
	}
	size_t at = merging->waiting++;
	while (at > 0 && before(candidate, merging->heap[(at - 1) / 2])) {
		merging->heap[at] = merging->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	merging->heap[at] = candidate;
}

static struct candidate pop(struct merging *merging)
{
	struct candidate *heap = merging->heap, top = heap[0], last = heap[--merging->waiting];
	size_t at = 0, child;
	while ((child = 2 * at + 1) < merging->waiting) {
		if (child + 1 < merging->waiting && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return top;
}

/* ---- merging */

void merging_begin(struct merging *merging)
{
	merging->count = 0;
	merging->waiting = 0;
}

void merging_add(struct merging *merging, uint32_t id, size_t length)
{
	if (merging->count == merging->room) {
		size_t room = merging->room * 2 + 64;
		struct symbol *symbols = realloc(merging->symbols, room * sizeof *symbols);
		if (symbols == NULL) {
			merging->memory = true;
			return;
		}
		merging->symbols = symbols;
		merging->room = room;
	}
	int32_t place = (int32_t)merging->count++;
	if (place > 0)
		merging->symbols[place - 1].right = place;
	merging->symbols[place] = (struct symbol){id, (uint32_t)length, place - 1, -1};
}

/* Puts the merge of the symbol at `left` and its neighbour, if there is one, on the heap. */
static void consider(struct merging *merging, const struct merges *merges, int32_t left)
{
	if (left < 0 || merging->symbols[left].right < 0)
		return;
	const struct symbol *symbol = &merging->symbols[left];
	const struct merge *merge = find(merges, symbol->id, merging->symbols[symbol->right].id);
	if (merge != NULL)
		push(merging, (struct candidate){merge->rank, (uint32_t)left, merge->made});
}

/* Does the merge, unless what it was for has changed since. */
static void apply(struct merging *merging, const struct merges *merges, struct candidate candidate)
{
	struct symbol *symbol = &merging->symbols[candidate.place];
	if (symbol->length == 0 || symbol->right < 0)
		return;
	struct symbol *right = &merging->symbols[symbol->right];
	const struct merge *merge = find(merges, symbol->id, right->id);
	if (merge == NULL || merge->made != candidate.made)
		return;
	symbol->id = candidate.made;
	symbol->length += right->length;
	symbol->right = right->right;
	right->length = 0;
	if (symbol->right >= 0)
		merging->symbols[symbol->right].left = (int32_t)candidate.place;
	consider(merging, merges, symbol->left);
	consider(merging, merges, (int32_t)candidate.place);
}

void merging_run(struct merging *merging, const struct merges *merges)
{
	for (size_t i = 0; i + 1 < merging->count; i++)
		consider(merging, merges, (int32_t)i);
	while (merging->waiting > 0 && !merging->memory)
		apply(merging, merges, pop(merging));
}

void merging_clear(struct merging *merging)
{
	free(merging->symbols);
	free(merging->heap);
	*merging = (struct merging){.symbols = NULL};
}
