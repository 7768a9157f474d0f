#include "text/added_tokens.h"

#include "text/load_config.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#define CONTENT_MAX 1024 /* bytes of a token */

struct added_token {
	char *content, *pattern; /* as it stands, and as it is looked for */
	size_t length;           /* of pattern */
	uint32_t id;
	bool single_word, left, right, normalized, special;
};

/* Tokens by pattern: what begins with the same bytes stands together. */
struct sorted {
	const struct added_token **tokens;
	size_t count;
};

struct added_tokens {
	struct added_token *tokens; /* [count] by id */
	size_t count;
	struct sorted by_text[2]; /* of tokens that are not normalized, and of those that are */
};

size_t added_tokens_size(const struct added_tokens *added)
{
	return added->count > 0 ? (size_t)added->tokens[added->count - 1].id + 1 : 0;
}

static int compare_id(const void *left, const void *right)
{
	uint32_t a = ((const struct added_token *)left)->id, b = ((const struct added_token *)right)->id;
	return (a > b) - (a < b);
}

const char *added_tokens_text(const struct added_tokens *added, uint32_t id, bool *special)
{
	const struct added_token key = {.id = id};
	const struct added_token *found = added->count > 0 ? bsearch(&key, added->tokens, added->count,
	                                                             sizeof(struct added_token), compare_id)
	                                                   : NULL;
	if (found == NULL)
		return NULL;
	*special = found->special;
	return found->pattern;
}

/* ---- finding */

/* The first of tokens low up to high whose byte at `depth` is not below `byte`. */
static size_t lower_bound(const struct sorted *sorted, size_t low, size_t high, size_t depth, int byte)
{
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct added_token *token = sorted->tokens[middle];
		int there = depth < token->length ? (unsigned char)token->pattern[depth] : -1;
		if (there < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest token that stands at text, or NULL. */
static const struct added_token *longest_at(const struct sorted *sorted, const char *text, size_t length)
{
	const struct added_token *found = NULL;
	size_t low = 0, high = sorted->count;
	for (size_t depth = 0; depth < length && low < high; depth++) {
		int byte = (unsigned char)text[depth];
		low = lower_bound(sorted, low, high, depth, byte);
		high = lower_bound(sorted, low, high, depth, byte + 1);
		if (low < high && sorted->tokens[low]->length == depth + 1)
			found = sorted->tokens[low];
	}
	return found;
}

/* Whether what stands beside the token leaves it a word by itself. */
static bool stands_alone(const struct pieces *pieces, struct piece piece, size_t begin, size_t end)
{
	size_t size;
	if (begin > piece.begin &&
	    unicode_is_word(unicode_read(pieces->bytes + unicode_before(pieces->bytes, begin), &size)))
		return false;
	return end == piece.end || !unicode_is_word(unicode_read(pieces->bytes + end, &size));
}

/* Takes in the white space beside the token, on the left no further than `least`. */
static void take_spaces(const struct added_token *token, const struct pieces *pieces, struct piece piece,
                        size_t least, size_t *begin, size_t *end)
{
	size_t size;
	while (token->left && *begin > least) {
		size_t before = unicode_before(pieces->bytes, *begin);
		if (!unicode_is_space(unicode_read(pieces->bytes + before, &size)))
			break;
		*begin = before;
	}
	while (token->right && *end < piece.end &&
	       unicode_is_space(unicode_read(pieces->bytes + *end, &size)))
		*end += size;
}

static void tokens_cut(const void *context, struct pieces *pieces, struct piece piece)
{
	const struct sorted *sorted = context;
	size_t done = piece.begin;
	for (size_t at = piece.begin; at < piece.end;) {
		const struct added_token *token = longest_at(sorted, pieces->bytes + at, piece.end - at);
		size_t begin = at, end = at + (token != NULL ? token->length : 1);
		at = end;
		if (token == NULL || (token->single_word && !stands_alone(pieces, piece, begin, end)))
			continue;
		take_spaces(token, pieces, piece, done, &begin, &end);
		pieces_cut(pieces, done, begin, -1);
		pieces_cut(pieces, begin, end, token->id);
		done = end;
	}
	pieces_cut(pieces, done, piece.end, -1);
}

void added_tokens_cut(const struct added_tokens *added, bool normalized, struct pieces *pieces)
{
	if (added->by_text[normalized].count > 0)
		pieces_cut_all(pieces, tokens_cut, &added->by_text[normalized]);
}

/* ---- reading */

static attn_status read_flags(struct added_token *token, const json_t *config, attn_error *err)
{
	attn_status status = load_flag(config, "special", false, &token->special, err);
	if (status == ATTN_OK)
		status = load_flag(config, "single_word", false, &token->single_word, err);
	if (status == ATTN_OK)
		status = load_flag(config, "lstrip", false, &token->left, err);
	if (status == ATTN_OK)
		status = load_flag(config, "rstrip", false, &token->right, err);
	if (status == ATTN_OK)
		status = load_flag(config, "normalized", !token->special, &token->normalized, err);
	return status;
}

/* What the token is looked for as. */
static attn_status make_pattern(struct added_token *token, const struct normalizer *normalizer,
                                attn_error *err)
{
	struct pieces pieces, scratch = {.limit = 64 * CONTENT_MAX};
	pieces_begin(&pieces, token->content, strlen(token->content), scratch.limit);
	if (token->normalized)
		normalizer_run(normalizer, &pieces, &scratch);
	token->length = pieces.length;
	token->pattern = malloc(pieces.length + 1);
	if (token->pattern != NULL) {
		memcpy(token->pattern, pieces.length > 0 ? pieces.bytes : "", pieces.length);
		token->pattern[pieces.length] = '\0';
	}
	attn_status status = ATTN_OK;
	if (token->pattern == NULL || pieces.state == PIECES_MEMORY)
		status = load_no_memory(err);
	else if (pieces.length == 0 || pieces.state != PIECES_GOOD)
		status = load_failed(err, ATTN_CONFIG,
		                     "of the added token '%s' the normalizer leaves nothing", token->content);
	pieces_clear(&pieces);
	pieces_clear(&scratch);
	return status;
}

static attn_status read_token(struct added_token *token, const json_t *config,
                              const struct normalizer *normalizer, attn_error *err)
{
	const char *content;
	attn_status status = load_string(config, "content", "", &content, err);
	if (status != ATTN_OK)
		return status;
	size_t length = strlen(content), id;
	if (length == 0 || length > CONTENT_MAX)
		return load_failed(err, ATTN_CONFIG, "an added token has %zu bytes, 1 to %d are allowed",
		                   length, CONTENT_MAX);
	token->content = strdup(content);
	if (token->content == NULL)
		return load_no_memory(err);
	status = load_count(config, "id", 0, VOCABULARY_NONE - 1, &id, err);
	token->id = (uint32_t)id;
	if (status == ATTN_OK)
		status = read_flags(token, config, err);
	if (status == ATTN_OK)
		status = make_pattern(token, normalizer, err);
	return status;
}

/* The vocabulary's id of the token, or else *next, which then counts on. */
static attn_status check_id(const struct added_token *token, const struct vocabulary *vocabulary,
                            uint32_t *next, attn_error *err)
{
	uint32_t id = vocabulary_find(vocabulary, token->content, strlen(token->content));
	if (id == VOCABULARY_NONE)
		id = (*next)++;
	if (id != token->id)
		return load_failed(err, ATTN_CONFIG,
		                   "the added token '%s' has the id %u, where by the vocabulary it has %u",
		                   token->content, token->id, id);
	return ATTN_OK;
}

static int compare_pattern(const void *left, const void *right)
{
	const struct added_token *a = *(const struct added_token *const *)left,
	                         *b = *(const struct added_token *const *)right;
	size_t least = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->pattern, b->pattern, least);
	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* The tokens of one kind, by pattern; no two may look the same. */
static attn_status sort_tokens(const struct added_tokens *added, bool normalized, struct sorted *sorted,
                               attn_error *err)
{
	sorted->tokens = malloc((added->count + 1) * sizeof *sorted->tokens);
	if (sorted->tokens == NULL)
		return load_no_memory(err);
	for (size_t i = 0; i < added->count; i++) {
		if (added->tokens[i].normalized == normalized)
			sorted->tokens[sorted->count++] = &added->tokens[i];
	}
	if (sorted->count > 0)
		qsort(sorted->tokens, sorted->count, sizeof *sorted->tokens, compare_pattern);
	for (size_t i = 1; i < sorted->count; i++) {
		if (compare_pattern(&sorted->tokens[i - 1], &sorted->tokens[i]) == 0)
			return load_failed(err, ATTN_CONFIG, "the added tokens '%s' and '%s' look the same",
			                   sorted->tokens[i - 1]->content, sorted->tokens[i]->content);
	}
	return ATTN_OK;
}

static attn_status read_list(struct added_tokens *added, const json_t *list,
                             const struct vocabulary *vocabulary, const struct normalizer *normalizer,
                             attn_error *err)
{
	attn_status status = ATTN_OK;
	uint32_t next = (uint32_t)vocabulary_count(vocabulary);
	for (size_t i = 0; i < json_array_size(list) && status == ATTN_OK; i++) {
		struct added_token *token = &added->tokens[added->count];
		status = read_token(token, json_array_get(list, i), normalizer, err);
		if (status == ATTN_OK)
			status = check_id(token, vocabulary, &next, err);
		added->count++;
	}
	if (status != ATTN_OK)
		return status;
	if (added->count > 0)
		qsort(added->tokens, added->count, sizeof *added->tokens, compare_id);
	status = sort_tokens(added, false, &added->by_text[false], err);
	return status == ATTN_OK ? sort_tokens(added, true, &added->by_text[true], err) : status;
}

attn_status added_tokens_new(const json_t *list, const struct vocabulary *vocabulary,
                             const struct normalizer *normalizer, struct added_tokens **out, attn_error *err)
{
	if (list != NULL && !json_is_null(list) && !json_is_array(list))
		return load_failed(err, ATTN_CONFIG, "added_tokens is not a list");
	struct added_tokens *added = calloc(1, sizeof *added);
	if (added != NULL)
		added->tokens = calloc(json_array_size(list) + 1, sizeof *added->tokens);
	if (added == NULL || added->tokens == NULL) {
		added_tokens_free(added);
		return load_no_memory(err);
	}
	attn_status status = read_list(added, list, vocabulary, normalizer, err);
	if (status != ATTN_OK) {
		added_tokens_free(added);
		return status;
	}
	*out = added;
	return ATTN_OK;
}

void added_tokens_free(struct added_tokens *added)
{
	if (added == NULL)
		return;
	for (size_t i = 0; i < added->count; i++) {
		free(added->tokens[i].content);
		free(added->tokens[i].pattern);
	}
	free(added->tokens);
	free(added->by_text[false].tokens);
	free(added->by_text[true].tokens);
	free(added);
}
