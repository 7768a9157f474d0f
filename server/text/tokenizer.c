#include "text/tokenizer.h"

#include "codec/utf8.h"
#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/load_config.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/word_model.h"

#include <stdlib.h>
#include <string.h>

/* How much longer than the text it may become on its way: ideographs set apart and bytes written as
 * characters are within it. */
#define GROWTH 4
#define GROWTH_SHORT 4096

struct tokenizer {
	struct word_model *model;
	struct normalizer *normalizer;
	struct pre_tokenizer *pre_tokenizer;
	struct decoder *decoder;
	struct added_tokens *added;
	struct post_processor post;
};

/* ---- opening */

static attn_status read_parts(struct tokenizer *tokenizer, const json_t *root, attn_error *err)
{
	attn_status status = word_model_new(json_object_get(root, "model"), &tokenizer->model, err);
	/* Unigram's normalizer and the like are not for us: only its vocabulary is. */
	bool reads = status == ATTN_OK && word_model_reads(tokenizer->model);
	if (status == ATTN_OK)
		status = normalizer_new(reads ? json_object_get(root, "normalizer") : NULL,
		                        &tokenizer->normalizer, err);
	if (status == ATTN_OK)
		status = pre_tokenizer_new(reads ? json_object_get(root, "pre_tokenizer") : NULL,
		                           &tokenizer->pre_tokenizer, err);
	if (status == ATTN_OK)
		status =
		    decoder_new(reads ? json_object_get(root, "decoder") : NULL, &tokenizer->decoder, err);
	if (status == ATTN_OK && reads)
		status = post_processor_read(json_object_get(root, "post_processor"), &tokenizer->post, err);
	if (status == ATTN_OK)
		status = added_tokens_new(json_object_get(root, "added_tokens"),
		                          word_model_vocabulary(tokenizer->model), tokenizer->normalizer,
		                          &tokenizer->added, err);
	return status;
}

/* Whether every special token that is put around a text is one. */
static attn_status check_specials(const struct tokenizer *tokenizer, attn_error *err)
{
	const struct post_processor *post = &tokenizer->post;
	for (size_t i = 0; i < post->before_count + post->after_count; i++) {
		uint32_t id = i < post->before_count ? post->before[i] : post->after[i - post->before_count];
		if (tokenizer_token(tokenizer, id) == NULL)
			return load_failed(err, ATTN_CONFIG,
			                   "the post-processor puts token %u, which there is none of", id);
	}
	return ATTN_OK;
}

static attn_status from_json(const json_t *root, struct tokenizer **out, attn_error *err)
{
	struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
	if (tokenizer == NULL)
		return load_no_memory(err);
	attn_status status = read_parts(tokenizer, root, err);
	if (status == ATTN_OK)
		status = check_specials(tokenizer, err);
	if (status != ATTN_OK) {
		tokenizer_free(tokenizer);
		return status;
	}
	*out = tokenizer;
	return ATTN_OK;
}

attn_status tokenizer_open(const char *directory, struct tokenizer **out, attn_error *err)
{
	json_t *root = NULL;
	*out = NULL;
	attn_status status = tokenizer_files_read(directory, &root, err);
	if (status == ATTN_OK && root != NULL) {
		status = from_json(root, out, err);
		if (status != ATTN_OK && status != ATTN_MEMORY) {
			attn_error inner = *err;
			load_failed(err, status, "tokenizer: %s", inner.message);
		}
	}
	json_decref(root);
	return status;
}

attn_status tokenizer_parse(const char *text, size_t length, struct tokenizer **out, attn_error *err)
{
	json_t *root = NULL;
	*out = NULL;
	attn_status status = load_json_text("tokenizer.json", text, length, &root, err);
	if (status == ATTN_OK)
		status = from_json(root, out, err);
	json_decref(root);
	return status;
}

void tokenizer_free(struct tokenizer *tokenizer)
{
	if (tokenizer == NULL)
		return;
	word_model_free(tokenizer->model);
	normalizer_free(tokenizer->normalizer);
	pre_tokenizer_free(tokenizer->pre_tokenizer);
	decoder_free(tokenizer->decoder);
	added_tokens_free(tokenizer->added);
	free(tokenizer);
}

/* ---- vocabulary */

size_t tokenizer_size(const struct tokenizer *tokenizer)
{
	size_t own = vocabulary_size(word_model_vocabulary(tokenizer->model));
	size_t added = added_tokens_size(tokenizer->added);
	return own > added ? own : added;
}

const char *tokenizer_token(const struct tokenizer *tokenizer, int64_t id)
{
	bool special;
	if (id < 0 || id >= VOCABULARY_NONE)
		return NULL;
	const char *text = added_tokens_text(tokenizer->added, (uint32_t)id, &special);
	return text != NULL ? text : vocabulary_token(word_model_vocabulary(tokenizer->model), (uint32_t)id);
}

const char *tokenizer_refusal(const struct tokenizer *tokenizer)
{
	return word_model_reads(tokenizer->model)
	           ? NULL
	           : "the model's tokenizer is a SentencePiece model, of which text is not read: send tokens";
}

/* ---- encoding */

/* What one text takes on its way. */
struct encoding {
	const struct tokenizer *tokenizer;
	const char *text;
	struct pieces pieces, scratch;
	struct merging merging;
	struct token_list words; /* tokens of the piece at hand */
	size_t index;            /* tokens of the sequence so far */
	size_t room;             /* of out */
	struct text_tokens *out;
	const char *unknown; /* where a word without a token begins, of pieces */
};

static void emit(struct encoding *encoding, int64_t id, struct text_range range)
{
	struct text_tokens *out = encoding->out;
	if (out->count == encoding->room) {
		size_t room = encoding->room * 2 + 16;
		int64_t *ids = realloc(out->ids, room * sizeof *ids);
		out->ids = ids != NULL ? ids : out->ids;
		struct text_range *ranges = realloc(out->ranges, room * sizeof *ranges);
		out->ranges = ranges != NULL ? ranges : out->ranges;
		if (ids == NULL || ranges == NULL) {
			pieces_fail(&encoding->pieces, PIECES_MEMORY);
			return;
		}
		encoding->room = room;
	}
	out->ids[out->count] = id;
	out->ranges[out->count++] = range;
}

/* A token of the sequence, which stands for bytes begin up to end of the pieces. */
static void emit_word(struct encoding *encoding, uint32_t id, const char *token, size_t length, size_t begin,
                      size_t end)
{
	struct span span = pieces_origin(&encoding->pieces, begin, end);
	span = post_processor_trim(&encoding->tokenizer->post, encoding->index++, token, length,
	                           encoding->text, span);
	emit(encoding, id, (struct text_range){span.start, span.end});
}

static void emit_piece(struct encoding *encoding, struct piece piece)
{
	const struct word_model *model = encoding->tokenizer->model;
	const char *bytes = encoding->pieces.bytes + piece.begin;
	if (piece.token >= 0) {
		emit_word(encoding, (uint32_t)piece.token, bytes, piece.end - piece.begin, piece.begin,
		          piece.end);
		return;
	}
	encoding->words.count = 0;
	if (!word_model_encode(model, bytes, piece.end - piece.begin, &encoding->merging, &encoding->words))
		encoding->unknown = bytes;
	if (encoding->words.memory || encoding->merging.memory)
		pieces_fail(&encoding->pieces, PIECES_MEMORY);
	for (size_t i = 0; i < encoding->words.count; i++) {
		struct listed_token token = encoding->words.tokens[i];
		const char *text = vocabulary_token(word_model_vocabulary(model), token.id);
		emit_word(encoding, token.id, text, strlen(text), piece.begin + token.begin,
		          piece.begin + token.end);
	}
}

static void run(struct encoding *encoding, bool special)
{
	const struct tokenizer *tokenizer = encoding->tokenizer;
	const struct post_processor *post = &tokenizer->post;
	struct pieces *pieces = &encoding->pieces;
	added_tokens_cut(tokenizer->added, false, pieces);
	normalizer_run(tokenizer->normalizer, pieces, &encoding->scratch);
	added_tokens_cut(tokenizer->added, true, pieces);
	pre_tokenizer_run(tokenizer->pre_tokenizer, pieces, &encoding->scratch);
	for (size_t i = 0; special && i < post->before_count; i++)
		emit(encoding, post->before[i], (struct text_range){0, 0});
	for (size_t i = 0; i < pieces->count && pieces->state == PIECES_GOOD && !encoding->unknown; i++)
		emit_piece(encoding, pieces->list[i]);
	for (size_t i = 0; special && i < post->after_count; i++)
		emit(encoding, post->after[i], (struct text_range){0, 0});
}

static bool tell(const struct encoding *encoding, const char *pointer, struct problem *problem)
{
	if (encoding->unknown != NULL) {
		const char *end = encoding->pieces.bytes + encoding->pieces.length;
		return problem_set(problem, PROBLEM_BAD_VALUE, pointer,
		                   "the vocabulary has no token for '%.*s', and none for what is unknown",
		                   (int)utf8_sequence(encoding->unknown, end), encoding->unknown);
	}
	switch (encoding->pieces.state) {
	case PIECES_MEMORY:
		return problem_set_status(problem, ATTN_MEMORY);
	case PIECES_TOO_LONG:
		return problem_set(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
		                   "normalized, the text becomes longer than %d times what was sent", GROWTH);
	case PIECES_TOO_HARD:
		return problem_set(problem, PROBLEM_BAD_VALUE, pointer,
		                   "the text takes the tokenizer's regular expressions too many steps");
	case PIECES_GOOD:
		break;
	}
	return true;
}

static bool check_text(const struct tokenizer *tokenizer, const char *text, size_t length,
                       const char *pointer, struct problem *problem)
{
	const char *refusal = tokenizer_refusal(tokenizer);
	if (refusal != NULL)
		return problem_set(problem, PROBLEM_NO_TOKENIZER, pointer, "%s", refusal);
	if (length > TOKENIZER_TEXT_MAX)
		return problem_set(problem, PROBLEM_TOO_MANY_ELEMENTS, pointer,
		                   "a text of %zu bytes is over the limit of %zu", length,
		                   TOKENIZER_TEXT_MAX);
	for (size_t at = 0, size; at < length; at += size) {
		size = utf8_sequence(text + at, text + length);
		if (size == 0)
			return problem_set(problem, PROBLEM_BAD_ENCODING, pointer,
			                   "the text is not UTF-8 from byte %zu on", at);
	}
	return true;
}

bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, bool special,
                      const char *pointer, struct text_tokens *out, struct problem *problem)
{
	*out = (struct text_tokens){.ids = NULL};
	if (!check_text(tokenizer, text, length, pointer, problem))
		return false;
	size_t limit = length * GROWTH + GROWTH_SHORT;
	struct encoding encoding = {
	    .tokenizer = tokenizer, .text = text, .scratch = {.limit = limit}, .out = out};
	pieces_begin(&encoding.pieces, text, length, limit);
	run(&encoding, special);
	bool good = tell(&encoding, pointer, problem);
	if (!good)
		text_tokens_clear(out);
	pieces_clear(&encoding.pieces);
	pieces_clear(&encoding.scratch);
	merging_clear(&encoding.merging);
	token_list_clear(&encoding.words);
	return good;
}

static bool reader_encode(const void *tokenizer, const char *text, size_t length, const char *pointer,
                          struct text_tokens *out, struct problem *problem)
{
	return tokenizer_encode(tokenizer, text, length, true, pointer, out, problem);
}

static const char *reader_token(const void *tokenizer, int64_t id)
{
	return tokenizer_token(tokenizer, id);
}

struct text_reader tokenizer_reader(const struct tokenizer *tokenizer)
{
	return (struct text_reader){tokenizer, reader_encode, reader_token};
}

/* ---- decoding */

bool tokenizer_decode(const struct tokenizer *tokenizer, const int64_t *ids, size_t count, bool skip_special,
                      char **out, size_t *length, struct problem *problem)
{
	const char *refusal = tokenizer_refusal(tokenizer);
	if (refusal != NULL)
		return problem_set(problem, PROBLEM_NO_TOKENIZER, "", "%s", refusal);
	struct strings texts = {.bytes = NULL}, scratch = {.bytes = NULL};
	for (size_t i = 0; i < count; i++) {
		const char *text = tokenizer_token(tokenizer, ids[i]);
		bool special = false;
		if (text != NULL)
			added_tokens_text(tokenizer->added, (uint32_t)ids[i], &special);
		if (text == NULL || (special && skip_special))
			continue;
		strings_put(&texts, text, strlen(text));
		strings_end(&texts);
	}
	decoder_run(tokenizer->decoder, &texts, &scratch);
	strings_put(&texts, "", 1); /* its end */
	bool good = !texts.memory;
	*out = good ? texts.bytes : NULL;
	*length = good ? texts.length - 1 : 0;
	texts.bytes = good ? NULL : texts.bytes;
	strings_clear(&texts);
	strings_clear(&scratch);
	return good || problem_set_status(problem, ATTN_MEMORY);
}
