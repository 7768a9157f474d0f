#include "text/normalizer.h"

#include "text/byte_alphabet.h"
#include "text/load_config.h"
#include "text/normal_form.h"
#include "text/pattern.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64
#define TEXT_MAX 256 /* bytes of a replacement or a prefix */

struct step {
	pieces_rewrite rewrite;
	/* what the rewrite needs of these */
	struct normal_form form;
	struct pattern *pattern;
	char *text;
	bool left, right;
};

struct normalizer {
	struct step steps[STEPS_MAX];
	size_t count;
};

/* ---- rewrites by character */

/* Walks the characters of a piece. */
#define EACH_POINT(source, piece, at, size, point)                                                           \
	for (size_t at = (piece).begin, size;                                                                \
	     at < (piece).end && (point = unicode_read((source)->bytes + at, &size), true); at += size)

static void lower_rewrite(const void *context, const struct pieces *source, struct piece piece,
                          struct pieces *out)
{
	(void)context;
	uint32_t point, lower[2];
	EACH_POINT(source, piece, at, size, point)
	{
		size_t count = unicode_lower(point, lower);
		for (size_t i = 0; i < count; i++)
			pieces_put(out, lower[i], source->spans[at]);
	}
}

/* Takes control characters out and makes white space blanks, as BERT does. */
static void clean_rewrite(const void *context, const struct pieces *source, struct piece piece,
                          struct pieces *out)
{
	(void)context;
	uint32_t point;
	EACH_POINT(source, piece, at, size, point)
	{
		bool kept = point == '\t' || point == '\n' || point == '\r' || !unicode_is_control(point);
		if (kept && point != 0 && point != 0xFFFD)
			pieces_put(out, unicode_is_space(point) ? ' ' : point, source->spans[at]);
	}
}

static void ideographs_rewrite(const void *context, const struct pieces *source, struct piece piece,
                               struct pieces *out)
{
	(void)context;
	uint32_t point;
	EACH_POINT(source, piece, at, size, point)
	{
		bool apart = unicode_is_ideograph(point);
		if (apart)
			pieces_put(out, ' ', source->spans[at]);
		pieces_put(out, point, source->spans[at]);
		if (apart)
			pieces_put(out, ' ', source->spans[at]);
	}
}

static void nonspacing_rewrite(const void *context, const struct pieces *source, struct piece piece,
                               struct pieces *out)
{
	(void)context;
	uint32_t point;
	EACH_POINT(source, piece, at, size, point)
	{
		if (!unicode_is_nonspacing(point))
			pieces_put(out, point, source->spans[at]);
	}
}

static void marks_rewrite(const void *context, const struct pieces *source, struct piece piece,
                          struct pieces *out)
{
	(void)context;
	uint32_t point;
	EACH_POINT(source, piece, at, size, point)
	{
		if (!unicode_is_mark(point))
			pieces_put(out, point, source->spans[at]);
	}
}

/* ---- other rewrites */

static void form_rewrite(const void *context, const struct pieces *source, struct piece piece,
                         struct pieces *out)
{
	const struct step *step = context;
	normal_form_rewrite(&step->form, source, piece, out);
}

static void strip_rewrite(const void *context, const struct pieces *source, struct piece piece,
                          struct pieces *out)
{
	const struct step *step = context;
	size_t size, begin = piece.begin, end = piece.end;
	while (step->left && begin < end && unicode_is_space(unicode_read(source->bytes + begin, &size)))
		begin += size;
	while (step->right && end > begin) {
		size_t before = unicode_before(source->bytes, end);
		if (!unicode_is_space(unicode_read(source->bytes + before, &size)))
			break;
		end = before;
	}
	pieces_copy(out, source, begin, end);
}

static void prepend_rewrite(const void *context, const struct pieces *source, struct piece piece,
                            struct pieces *out)
{
	const struct step *step = context;
	pieces_put_text(out, step->text, source->spans[piece.begin]);
	pieces_copy(out, source, piece.begin, piece.end);
}

static void replace_rewrite(const void *context, const struct pieces *source, struct piece piece,
                            struct pieces *out)
{
	const struct step *step = context;
	struct pattern_walk walk;
	size_t done = piece.begin;
	pattern_walk_begin(&walk, step->pattern, source->bytes + piece.begin, piece.end - piece.begin);
	while (out->state == PIECES_GOOD && pattern_walk_next(&walk)) {
		size_t end = piece.begin + walk.end;
		struct span span = {piece.from, piece.from};
		if (end > piece.begin)
			span = source->spans[end - 1];
		pieces_copy(out, source, done, piece.begin + walk.begin);
		pieces_put_text(out, step->text, span);
		done = end;
	}
	pieces_copy(out, source, done, piece.end);
	if (walk.memory || walk.failed)
		pieces_fail(out, walk.memory ? PIECES_MEMORY : PIECES_TOO_HARD);
	pattern_walk_end(&walk);
}

void normalizer_run(const struct normalizer *normalizer, struct pieces *pieces, struct pieces *scratch)
{
	for (size_t i = 0; i < normalizer->count && pieces->state == PIECES_GOOD; i++)
		pieces_rewrite_all(pieces, scratch, normalizer->steps[i].rewrite, &normalizer->steps[i]);
}

/* ---- reading */

static attn_status add(struct normalizer *normalizer, struct step step, attn_error *err)
{
	if (normalizer->count == STEPS_MAX)
		return load_failed(err, ATTN_CONFIG, "more than %d normalizers", STEPS_MAX);
	normalizer->steps[normalizer->count++] = step;
	return ATTN_OK;
}

static attn_status add_rewrite(struct normalizer *normalizer, pieces_rewrite rewrite, attn_error *err)
{
	return add(normalizer, (struct step){.rewrite = rewrite}, err);
}

static attn_status add_form(struct normalizer *normalizer, bool compatible, bool composed, attn_error *err)
{
	struct step step = {.rewrite = form_rewrite, .form = {compatible, composed}};
	return add(normalizer, step, err);
}

static attn_status read_bert(struct normalizer *normalizer, const json_t *config, attn_error *err)
{
	bool clean, ideographs, lower, accents;
	attn_status status = load_flag(config, "clean_text", true, &clean, err);
	if (status == ATTN_OK)
		status = load_flag(config, "handle_chinese_chars", true, &ideographs, err);
	if (status == ATTN_OK)
		status = load_flag(config, "lowercase", true, &lower, err);
	if (status == ATTN_OK)
		status = load_flag(config, "strip_accents", lower, &accents, err);
	if (status == ATTN_OK && clean)
		status = add_rewrite(normalizer, clean_rewrite, err);
	if (status == ATTN_OK && ideographs)
		status = add_rewrite(normalizer, ideographs_rewrite, err);
	if (status == ATTN_OK && accents)
		status = add_form(normalizer, false, false, err);
	if (status == ATTN_OK && accents)
		status = add_rewrite(normalizer, nonspacing_rewrite, err);
	if (status == ATTN_OK && lower)
		status = add_rewrite(normalizer, lower_rewrite, err);
	return status;
}

static attn_status read_strip(struct normalizer *normalizer, const json_t *config, attn_error *err)
{
	struct step step = {.rewrite = strip_rewrite};
	attn_status status = load_flag(config, "strip_left", true, &step.left, err);
	if (status == ATTN_OK)
		status = load_flag(config, "strip_right", true, &step.right, err);
	return status == ATTN_OK ? add(normalizer, step, err) : status;
}

/* A step with a copy of the text that stands under key. */
static attn_status add_text(struct normalizer *normalizer, struct step step, const json_t *config,
                            const char *key, attn_error *err)
{
	const char *text;
	attn_status status = load_string(config, key, "", &text, err);
	if (status == ATTN_OK && strlen(text) > TEXT_MAX)
		status = load_failed(err, ATTN_CONFIG, "%s has %zu bytes, the limit is %d", key, strlen(text),
		                     TEXT_MAX);
	if (status == ATTN_OK) {
		step.text = strdup(text);
		status = step.text != NULL ? add(normalizer, step, err) : load_no_memory(err);
	}
	if (status != ATTN_OK) {
		pattern_free(step.pattern);
		free(step.text);
	}
	return status;
}

static attn_status read_replace(struct normalizer *normalizer, const json_t *config, attn_error *err)
{
	struct step step = {.rewrite = replace_rewrite};
	attn_status status = pattern_load(json_object_get(config, "pattern"), &step.pattern, err);
	return status == ATTN_OK ? add_text(normalizer, step, config, "content", err) : status;
}

static attn_status read_any(struct normalizer *normalizer, const json_t *config, attn_error *err);

static attn_status read_sequence(struct normalizer *normalizer, const json_t *config, attn_error *err)
{
	const json_t *list = json_object_get(config, "normalizers");
	if (!json_is_array(list))
		return load_failed(err, ATTN_CONFIG, "a Sequence has no list of normalizers");
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < json_array_size(list) && status == ATTN_OK; i++)
		status = read_any(normalizer, json_array_get(list, i), err);
	return status;
}

static attn_status read_any(struct normalizer *normalizer, const json_t *config, attn_error *err)
{
	static const char *const types[] = {"BertNormalizer", "NFC",          "NFD",   "NFKC",    "NFKD",
	                                    "Lowercase",      "StripAccents", "Strip", "Replace", "Prepend",
	                                    "ByteLevel",      "Sequence",     NULL};
	const char *type;
	attn_status status = load_type(config, "normalizer", &type, err);
	if (status != ATTN_OK)
		return status;
	switch (load_choice(type, types)) {
	case 0:
		return read_bert(normalizer, config, err);
	case 1:
		return add_form(normalizer, false, true, err);
	case 2:
		return add_form(normalizer, false, false, err);
	case 3:
		return add_form(normalizer, true, true, err);
	case 4:
		return add_form(normalizer, true, false, err);
	case 5:
		return add_rewrite(normalizer, lower_rewrite, err);
	case 6:
		return add_rewrite(normalizer, marks_rewrite, err);
	case 7:
		return read_strip(normalizer, config, err);
	case 8:
		return read_replace(normalizer, config, err);
	case 9:
		return add_text(normalizer, (struct step){.rewrite = prepend_rewrite}, config, "prepend",
		                err);
	case 10:
		return add_rewrite(normalizer, byte_alphabet_rewrite, err);
	case 11:
		return read_sequence(normalizer, config, err);
	default:
		return load_failed(err, ATTN_CONFIG, "the normalizer %s is not supported", type);
	}
}

attn_status normalizer_new(const json_t *config, struct normalizer **out, attn_error *err)
{
	struct normalizer *normalizer = calloc(1, sizeof *normalizer);
	if (normalizer == NULL)
		return load_no_memory(err);
	attn_status status = ATTN_OK;
	if (config != NULL && !json_is_null(config))
		status = read_any(normalizer, config, err);
	if (status != ATTN_OK) {
		normalizer_free(normalizer);
		return status;
	}
	*out = normalizer;
	return ATTN_OK;
}

void normalizer_free(struct normalizer *normalizer)
{
	if (normalizer == NULL)
		return;
	for (size_t i = 0; i < normalizer->count; i++) {
		pattern_free(normalizer->steps[i].pattern);
		free(normalizer->steps[i].text);
	}
	free(normalizer);
}
