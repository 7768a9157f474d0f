#include "text/vocabulary.h"

#include "codec/json_value.h"
#include "text/load_config.h"

#include <stdlib.h>
#include <string.h>

#define IDS_MAX ((size_t)1 << 24)

struct vocabulary {
	char *texts;      /* each terminated */
	uint32_t *places; /* [size] where in texts a token begins, VOCABULARY_NONE for a hole */
	uint32_t *slots;  /* [slot_mask + 1] ids by hash, VOCABULARY_NONE where free */
	size_t slot_mask;
	size_t size, count, longest;
	size_t used; /* bytes of texts */
};

/* ---- looking up */

uint64_t vocabulary_hash(uint64_t hash, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) /* FNV-1a */
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
	return hash;
}

/* The slot where a hash is first looked for: all its bits count. */
static size_t first_slot(const struct vocabulary *vocabulary, uint64_t hash)
{
	return (size_t)(hash ^ hash >> 29) & vocabulary->slot_mask;
}

uint32_t vocabulary_find_hashed(const struct vocabulary *vocabulary, uint64_t hash, const char *head,
                                size_t head_length, const char *tail, size_t tail_length)
{
	size_t slot = first_slot(vocabulary, hash);
	for (;; slot = (slot + 1) & vocabulary->slot_mask) {
		uint32_t id = vocabulary->slots[slot];
		if (id == VOCABULARY_NONE)
			return id;
		const char *text = vocabulary->texts + vocabulary->places[id];
		if (strlen(text) == head_length + tail_length && memcmp(text, head, head_length) == 0 &&
		    memcmp(text + head_length, tail, tail_length) == 0)
			return id;
	}
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length)
{
	return vocabulary_find_hashed(vocabulary, vocabulary_hash(VOCABULARY_HASH, text, length), "", 0, text,
	                              length);
}

size_t vocabulary_size(const struct vocabulary *vocabulary)
{
	return vocabulary->size;
}

size_t vocabulary_count(const struct vocabulary *vocabulary)
{
	return vocabulary->count;
}

size_t vocabulary_longest(const struct vocabulary *vocabulary)
{
	return vocabulary->longest;
}

const char *vocabulary_token(const struct vocabulary *vocabulary, uint32_t id)
{
	if (id >= vocabulary->size || vocabulary->places[id] == VOCABULARY_NONE)
		return NULL;
	return vocabulary->texts + vocabulary->places[id];
}

/* ---- reading */

/* Room for ids below size and texts of `bytes` in all. */
static attn_status make_room(struct vocabulary *vocabulary, size_t size, size_t count, size_t bytes,
                             attn_error *err)
{
	size_t slots = 16;
	while (slots < count * 2)
		slots *= 2;
	vocabulary->slot_mask = slots - 1;
	vocabulary->size = size;
	vocabulary->texts = bytes < UINT32_MAX ? malloc(bytes + 1) : NULL;
	vocabulary->places = malloc((size + 1) * sizeof *vocabulary->places);
	vocabulary->slots = malloc(slots * sizeof *vocabulary->slots);
	if (vocabulary->texts == NULL || vocabulary->places == NULL || vocabulary->slots == NULL)
		return load_no_memory(err);
	for (size_t i = 0; i < size; i++)
		vocabulary->places[i] = VOCABULARY_NONE;
	for (size_t i = 0; i < slots; i++)
		vocabulary->slots[i] = VOCABULARY_NONE;
	return ATTN_OK;
}

/* The token's text is not there yet. */
static attn_status add(struct vocabulary *vocabulary, const char *text, uint32_t id, attn_error *err)
{
	size_t length = strlen(text);
	if (vocabulary->places[id] != VOCABULARY_NONE)
		return load_failed(err, ATTN_CONFIG, "the tokens '%s' and '%s' both have the id %u",
		                   vocabulary->texts + vocabulary->places[id], text, id);
	size_t slot = first_slot(vocabulary, vocabulary_hash(VOCABULARY_HASH, text, length));
	while (vocabulary->slots[slot] != VOCABULARY_NONE)
		slot = (slot + 1) & vocabulary->slot_mask;
	vocabulary->slots[slot] = id;
	vocabulary->places[id] = (uint32_t)vocabulary->used;
	memcpy(vocabulary->texts + vocabulary->used, text, length + 1);
	vocabulary->used += length + 1;
	vocabulary->count++;
	vocabulary->longest = length > vocabulary->longest ? length : vocabulary->longest;
	return ATTN_OK;
}

static attn_status read_object(struct vocabulary *vocabulary, json_t *tokens, attn_error *err)
{
	const char *text;
	json_t *value;
	size_t largest = 0, bytes = 0;
	json_object_foreach(tokens, text, value)
	{
		json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
		if (id < 0 || (size_t)id >= IDS_MAX)
			return load_failed(err, ATTN_CONFIG, "the token '%s' has no id from 0 to %zu", text,
			                   IDS_MAX - 1);
		largest = (size_t)id > largest ? (size_t)id : largest;
		bytes += strlen(text) + 1;
	}
	size_t count = json_object_size(tokens);
	attn_status status = make_room(vocabulary, count > 0 ? largest + 1 : 0, count, bytes, err);
	if (status != ATTN_OK)
		return status;
	json_object_foreach(tokens, text, value)
	{
		status = add(vocabulary, text, (uint32_t)json_integer_value(value), err);
		if (status != ATTN_OK)
			break;
	}
	return status;
}

static attn_status read_list(struct vocabulary *vocabulary, const json_t *tokens, attn_error *err)
{
	size_t count = json_array_size(tokens), bytes = 0;
	if (count > IDS_MAX)
		return load_failed(err, ATTN_CONFIG, "%zu tokens are over the limit of %zu", count, IDS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(json_array_get(tokens, i), 0));
		if (text == NULL)
			return load_failed(err, ATTN_CONFIG, "token %zu of the vocabulary has no text", i);
		bytes += strlen(text) + 1;
	}
	attn_status status = make_room(vocabulary, count, count, bytes, err);
	for (size_t i = 0; i < count && status == ATTN_OK; i++) {
		const char *text = json_string_value(json_array_get(json_array_get(tokens, i), 0));
		status = add(vocabulary, text, (uint32_t)i, err);
	}
	return status;
}

attn_status vocabulary_new(const json_t *tokens, struct vocabulary **out, attn_error *err)
{
	struct vocabulary *vocabulary = calloc(1, sizeof *vocabulary);
	attn_status status;
	if (vocabulary == NULL)
		return load_no_memory(err);
	if (json_is_object(tokens))
		status = read_object(vocabulary, (json_t *)tokens, err);
	else if (json_is_array(tokens))
		status = read_list(vocabulary, tokens, err);
	else
		status = load_failed(err, ATTN_CONFIG, "the vocabulary is %s, an object is expected",
		                     tokens == NULL ? "missing" : json_value_kind(tokens));
	if (status != ATTN_OK) {
		vocabulary_free(vocabulary);
		return status;
	}
	*out = vocabulary;
	return ATTN_OK;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
	if (vocabulary == NULL)
		return;
	free(vocabulary->texts);
	free(vocabulary->places);
	free(vocabulary->slots);
	free(vocabulary);
}
