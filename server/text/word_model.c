#include "text/word_model.h"

#include "text/load_config.h"
#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a prefix or suffix, and of a character with both. */
#define AFFIX_MAX 64
#define CHARACTER_MAX (2 * AFFIX_MAX + 4)
#define WORD_CHARACTERS_MAX 100000

enum kind { KIND_BPE, KIND_WORD_PIECE, KIND_WORD_LEVEL, KIND_UNIGRAM };

struct word_model {
	enum kind kind;
	struct vocabulary *vocabulary;
	struct merges *merges;     /* of BPE */
	char *prefix;              /* before what continues a word: "" or "##" */
	char *suffix;              /* of BPE, behind the last character of a word */
	uint32_t unknown;          /* VOCABULARY_NONE: none */
	size_t longest_word;       /* of WordPiece, in characters */
	bool fuse, bytes, whole;   /* of BPE: fuse_unk, byte_fallback, ignore_merges */
	uint32_t byte_tokens[256]; /* of byte_fallback: <0x00> to <0xFF> */
};

const struct vocabulary *word_model_vocabulary(const struct word_model *model)
{
	return model->vocabulary;
}

bool word_model_reads(const struct word_model *model)
{
	return model->kind != KIND_UNIGRAM;
}

/* ---- BPE */

/* What of a word has no token and is not yet in the list of symbols. */
struct unknown {
	bool pending;
	size_t length;
};

static void flush_unknown(const struct word_model *model, struct unknown *unknown, struct merging *merging)
{
	if (unknown->pending)
		merging_add(merging, model->unknown, unknown->length);
	unknown->pending = false;
}

/* The tokens of a character's bytes; false when one is not in the vocabulary. */
static bool add_bytes(const struct word_model *model, const char *text, size_t length,
                      struct merging *merging)
{
	for (size_t i = 0; i < length; i++) {
		if (model->byte_tokens[(unsigned char)text[i]] == VOCABULARY_NONE)
			return false;
	}
	for (size_t i = 0; i < length; i++)
		merging_add(merging, model->byte_tokens[(unsigned char)text[i]], 1);
	return true;
}

/* A character of a word, with what the model puts before and behind it. */
static void add_character(const struct word_model *model, const char *text, size_t length, size_t size,
                          struct unknown *unknown, struct merging *merging)
{
	uint32_t id = vocabulary_find(model->vocabulary, text, length);
	if (id != VOCABULARY_NONE) {
		flush_unknown(model, unknown, merging);
		merging_add(merging, id, size);
		return;
	}
	if (model->bytes && add_bytes(model, text, length, merging))
		return;
	if (model->unknown == VOCABULARY_NONE)
		return;
	if (unknown->pending && model->fuse) {
		unknown->length += size;
		return;
	}
	flush_unknown(model, unknown, merging);
	*unknown = (struct unknown){true, size};
}

static void list_symbols(const struct merging *merging, struct token_list *list)
{
	size_t place = 0;
	for (size_t i = 0; i < merging->count; i++) {
		const struct symbol *symbol = &merging->symbols[i];
		if (symbol->length > 0)
			token_list_add(list, symbol->id, place, place + symbol->length);
		place += symbol->length;
	}
}

static void encode_bpe(const struct word_model *model, const char *word, size_t length,
                       struct merging *merging, struct token_list *list)
{
	uint32_t whole = model->whole ? vocabulary_find(model->vocabulary, word, length) : VOCABULARY_NONE;
	if (whole != VOCABULARY_NONE) {
		token_list_add(list, whole, 0, length);
		return;
	}
	struct unknown unknown = {.pending = false};
	merging_begin(merging);
	for (size_t at = 0, size; at < length; at += size) {
		char text[CHARACTER_MAX + 1];
		unicode_read(word + at, &size);
		int used = snprintf(text, sizeof text, "%s%.*s%s", at > 0 ? model->prefix : "", (int)size,
		                    word + at, at + size == length ? model->suffix : "");
		add_character(model, text, (size_t)used, size, &unknown, merging);
	}
	flush_unknown(model, &unknown, merging);
	merging_run(merging, model->merges);
	list_symbols(merging, list);
}

/* ---- WordPiece */

/* The longest token that the word goes on with at `at`; its length in *taken. */
static uint32_t longest_piece(const struct word_model *model, const char *word, size_t length, size_t at,
                              size_t *taken)
{
	const char *head = at > 0 ? model->prefix : "";
	size_t head_length = strlen(head), longest = vocabulary_longest(model->vocabulary);
	uint64_t hash = vocabulary_hash(VOCABULARY_HASH, head, head_length);
	uint32_t found = VOCABULARY_NONE;
	for (size_t end = at, size; end < length && head_length + (end - at) < longest; end += size) {
		unicode_read(word + end, &size);
		hash = vocabulary_hash(hash, word + end, size);
		uint32_t id = vocabulary_find_hashed(model->vocabulary, hash, head, head_length, word + at,
		                                     end + size - at);
		if (id != VOCABULARY_NONE) {
			found = id;
			*taken = end + size - at;
		}
	}
	return found;
}

static size_t count_characters(const char *word, size_t length)
{
	size_t count = 0;
	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)word[i] & 0xC0) != 0x80;
	return count;
}

static bool encode_word_piece(const struct word_model *model, const char *word, size_t length,
                              struct token_list *list)
{
	size_t before = list->count;
	bool known = count_characters(word, length) <= model->longest_word;
	for (size_t at = 0, taken = 0; at < length && known; at += taken) {
		uint32_t id = longest_piece(model, word, length, at, &taken);
		known = id != VOCABULARY_NONE;
		if (known)
			token_list_add(list, id, at, at + taken);
	}
	if (known)
		return true;
	list->count = before;
	if (model->unknown == VOCABULARY_NONE)
		return false;
	token_list_add(list, model->unknown, 0, length);
	return true;
}

/* ---- WordLevel */

static bool encode_word_level(const struct word_model *model, const char *word, size_t length,
                              struct token_list *list)
{
	uint32_t id = vocabulary_find(model->vocabulary, word, length);
	if (id == VOCABULARY_NONE)
		id = model->unknown;
	if (id != VOCABULARY_NONE)
		token_list_add(list, id, 0, length);
	return id != VOCABULARY_NONE;
}

bool word_model_encode(const struct word_model *model, const char *word, size_t length,
                       struct merging *scratch, struct token_list *list)
{
	switch (model->kind) {
	case KIND_WORD_PIECE:
		return encode_word_piece(model, word, length, list);
	case KIND_WORD_LEVEL:
		return encode_word_level(model, word, length, list);
	default:
		encode_bpe(model, word, length, scratch, list);
		return true;
	}
}

/* ---- reading */

/* A copy of a short text. */
static attn_status read_affix(const json_t *config, const char *key, const char *fallback, char **out,
                              attn_error *err)
{
	const char *text;
	attn_status status = load_string(config, key, fallback, &text, err);
	if (status != ATTN_OK)
		return status;
	if (strlen(text) > AFFIX_MAX)
		return load_failed(err, ATTN_CONFIG, "%s has %zu bytes, the limit is %d", key, strlen(text),
		                   AFFIX_MAX);
	*out = strdup(text);
	return *out != NULL ? ATTN_OK : load_no_memory(err);
}

/* The token for what is unknown; one that is named has to be there. */
static attn_status read_unknown(struct word_model *model, const json_t *config, attn_error *err)
{
	const char *text;
	attn_status status = load_string(config, "unk_token", NULL, &text, err);
	model->unknown = VOCABULARY_NONE;
	if (status != ATTN_OK || text == NULL)
		return status;
	model->unknown = vocabulary_find(model->vocabulary, text, strlen(text));
	if (model->unknown == VOCABULARY_NONE && model->kind == KIND_BPE)
		return load_failed(err, ATTN_CONFIG, "the unk_token '%s' is not in the vocabulary", text);
	return ATTN_OK;
}

static attn_status read_bpe(struct word_model *model, const json_t *config, attn_error *err)
{
	const json_t *dropout = json_object_get(config, "dropout");
	if (json_number_value(dropout) != 0)
		return load_failed(err, ATTN_CONFIG,
		                   "a dropout of %g is not supported: it makes tokens random",
		                   json_number_value(dropout));
	attn_status status = read_affix(config, "continuing_subword_prefix", "", &model->prefix, err);
	if (status == ATTN_OK)
		status = read_affix(config, "end_of_word_suffix", "", &model->suffix, err);
	if (status == ATTN_OK)
		status = load_flag(config, "fuse_unk", false, &model->fuse, err);
	if (status == ATTN_OK)
		status = load_flag(config, "byte_fallback", false, &model->bytes, err);
	if (status == ATTN_OK)
		status = load_flag(config, "ignore_merges", false, &model->whole, err);
	for (unsigned i = 0; i < 256; i++) {
		char name[8];
		int length = snprintf(name, sizeof name, "<0x%02X>", i);
		model->byte_tokens[i] = vocabulary_find(model->vocabulary, name, (size_t)length);
	}
	if (status == ATTN_OK)
		status = merges_new(json_object_get(config, "merges"), model->vocabulary, model->prefix,
		                    &model->merges, err);
	return status;
}

static attn_status read_kind(const json_t *config, enum kind *out, attn_error *err)
{
	static const char *const types[] = {"BPE", "WordPiece", "WordLevel", "Unigram", NULL};
	const char *type;
	attn_status status = load_string(config, "type", NULL, &type, err);
	if (status != ATTN_OK)
		return status;
	if (type == NULL && json_object_get(config, "merges") != NULL) /* files of old say no more */
		type = "BPE";
	else if (type == NULL && json_object_get(config, "max_input_chars_per_word") != NULL)
		type = "WordPiece";
	size_t choice = load_choice(type != NULL ? type : "", types);
	if (types[choice] == NULL)
		return load_failed(err, ATTN_CONFIG, "the model %s is not supported",
		                   type != NULL ? type : "without a type");
	*out = (enum kind)choice;
	return ATTN_OK;
}

static attn_status read_model(struct word_model *model, const json_t *config, attn_error *err)
{
	attn_status status = read_kind(config, &model->kind, err);
	if (status == ATTN_OK)
		status = vocabulary_new(json_object_get(config, "vocab"), &model->vocabulary, err);
	if (status == ATTN_OK && model->kind != KIND_UNIGRAM)
		status = read_unknown(model, config, err);
	if (status == ATTN_OK && model->kind == KIND_BPE)
		status = read_bpe(model, config, err);
	if (status == ATTN_OK && model->kind == KIND_WORD_PIECE)
		status = read_affix(config, "continuing_subword_prefix", "##", &model->prefix, err);
	if (status == ATTN_OK && model->kind == KIND_WORD_PIECE)
		status = load_count(config, "max_input_chars_per_word", 100, WORD_CHARACTERS_MAX,
		                    &model->longest_word, err);
	return status;
}

attn_status word_model_new(const json_t *config, struct word_model **out, attn_error *err)
{
	struct word_model *model = calloc(1, sizeof *model);
	if (model == NULL)
		return load_no_memory(err);
	attn_status status = read_model(model, config, err);
	if (status != ATTN_OK) {
		word_model_free(model);
		return status;
	}
	*out = model;
	return ATTN_OK;
}

void word_model_free(struct word_model *model)
{
	if (model == NULL)
		return;
	vocabulary_free(model->vocabulary);
	merges_free(model->merges);
	free(model->prefix);
	free(model->suffix);
	free(model);
}
