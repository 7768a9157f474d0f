#include "text/post_processor.h"

#include "text/byte_alphabet.h"
#include "text/load_config.h"
#include "text/unicode.h"

#include <string.h>

/* ---- ranges */

static bool is_blank(uint32_t point)
{
	return point == byte_alphabet_point(' ') || unicode_is_space(point);
}

static size_t leading_blanks(const char *token, size_t length)
{
	size_t count = 0;
	for (size_t at = 0, size; at < length && is_blank(unicode_read(token + at, &size)); at += size)
		count++;
	return count;
}

static size_t trailing_blanks(const char *token, size_t length)
{
	size_t count = 0, size;
	while (length > 0) {
		length = unicode_before(token, length);
		if (!is_blank(unicode_read(token + length, &size)))
			break;
		count++;
	}
	return count;
}

struct span post_processor_trim(const struct post_processor *post, size_t index, const char *token,
                                size_t length, const char *text, struct span span)
{
	if (!post->trims)
		return span;
	size_t leading = leading_blanks(token, length), trailing = trailing_blanks(token, length), size;
	if (leading == 1 && post->keeps_blank && (index == 0 || span.start == 0))
		leading = 0;
	for (; leading > 0 && span.start < span.end; leading--) {
		unicode_read(text + span.start, &size);
		span.start += (uint32_t)size;
	}
	for (; trailing > 0 && span.end > span.start; trailing--)
		span.end = (uint32_t)unicode_before(text, span.end);
	return span;
}

/* ---- reading */

static attn_status put(uint32_t *ids, size_t *count, const json_t *value, attn_error *err)
{
	json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
	if (id < 0 || id >= UINT32_MAX)
		return load_failed(err, ATTN_CONFIG, "a special token has no id");
	if (*count == POST_SPECIALS_MAX)
		return load_failed(err, ATTN_CONFIG, "more than %d special tokens on one side",
		                   POST_SPECIALS_MAX);
	ids[(*count)++] = (uint32_t)id;
	return ATTN_OK;
}

static attn_status claim_specials(struct post_processor *post, attn_error *err)
{
	if (post->specials)
		return load_failed(err, ATTN_CONFIG, "two post-processors with special tokens");
	post->specials = true;
	return ATTN_OK;
}

static attn_status claim_trims(struct post_processor *post, const json_t *config, attn_error *err)
{
	bool trims, blank;
	attn_status status = load_flag(config, "trim_offsets", true, &trims, err);
	if (status == ATTN_OK)
		status = load_flag(config, "add_prefix_space", true, &blank, err);
	if (status != ATTN_OK || !trims)
		return status;
	if (post->trims)
		return load_failed(err, ATTN_CONFIG, "two post-processors with trim_offsets");
	post->trims = true;
	post->keeps_blank = blank;
	return ATTN_OK;
}

/* "cls": [text, id] before, "sep": [text, id] behind. */
static attn_status read_pair(struct post_processor *post, const json_t *config, attn_error *err)
{
	attn_status status = claim_specials(post, err);
	if (status == ATTN_OK)
		status = put(post->before, &post->before_count,
		             json_array_get(json_object_get(config, "cls"), 1), err);
	if (status == ATTN_OK)
		status = put(post->after, &post->after_count,
		             json_array_get(json_object_get(config, "sep"), 1), err);
	return status;
}

/* The ids of one special token of a template. */
static attn_status read_special(struct post_processor *post, const json_t *tokens, const json_t *piece,
                                bool behind, attn_error *err)
{
	const char *name = json_string_value(json_object_get(piece, "id"));
	const json_t *ids = json_object_get(json_object_get(tokens, name != NULL ? name : ""), "ids");
	if (json_array_size(ids) == 0)
		return load_failed(err, ATTN_CONFIG, "the special token '%s' of a template is not listed",
		                   name != NULL ? name : "");
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < json_array_size(ids) && status == ATTN_OK; i++)
		status = behind ? put(post->after, &post->after_count, json_array_get(ids, i), err)
		                : put(post->before, &post->before_count, json_array_get(ids, i), err);
	return status;
}

/* "single": special tokens and, once, the sequence. */
static attn_status read_template(struct post_processor *post, const json_t *config, attn_error *err)
{
	const json_t *single = json_object_get(config, "single");
	const json_t *tokens = json_object_get(config, "special_tokens");
	bool behind = false;
	attn_status status = claim_specials(post, err);
	for (size_t i = 0; i < json_array_size(single) && status == ATTN_OK; i++) {
		const json_t *piece = json_array_get(single, i);
		const json_t *special = json_object_get(piece, "SpecialToken");
		const char *id = json_string_value(json_object_get(json_object_get(piece, "Sequence"), "id"));
		if (special != NULL)
			status = read_special(post, tokens, special, behind, err);
		else if (!behind && id != NULL && strcmp(id, "A") == 0)
			behind = true;
		else
			return load_failed(err, ATTN_CONFIG, "part %zu of a template is not supported", i);
	}
	if (status == ATTN_OK && !behind)
		status = load_failed(err, ATTN_CONFIG, "a template has no place for the sequence");
	return status;
}

static attn_status read_any(struct post_processor *post, const json_t *config, attn_error *err);

static attn_status read_sequence(struct post_processor *post, const json_t *config, attn_error *err)
{
	const json_t *list = json_object_get(config, "processors");
	if (!json_is_array(list))
		return load_failed(err, ATTN_CONFIG, "a Sequence has no list of processors");
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < json_array_size(list) && status == ATTN_OK; i++)
		status = read_any(post, json_array_get(list, i), err);
	return status;
}

static attn_status read_any(struct post_processor *post, const json_t *config, attn_error *err)
{
	static const char *const types[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing",
	                                    "ByteLevel",          "Sequence",       NULL};
	const char *type;
	attn_status status = load_type(config, "post-processor", &type, err);
	if (status != ATTN_OK)
		return status;
	switch (load_choice(type, types)) {
	case 0:
		return read_template(post, config, err);
	case 1:
		return read_pair(post, config, err);
	case 2:
		status = claim_trims(post, config, err);
		return status == ATTN_OK ? read_pair(post, config, err) : status;
	case 3:
		return claim_trims(post, config, err);
	case 4:
		return read_sequence(post, config, err);
	default:
		return load_failed(err, ATTN_CONFIG, "the post-processor %s is not supported", type);
	}
}

attn_status post_processor_read(const json_t *config, struct post_processor *out, attn_error *err)
{
	*out = (struct post_processor){.specials = false};
	if (config == NULL || json_is_null(config))
		return ATTN_OK;
	return read_any(out, config, err);
}
