#include "text/pre_tokenizer.h"

#include "text/byte_alphabet.h"
#include "text/load_config.h"
#include "text/pattern.h"
#include "text/splitter.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64
/* Words as GPT-2 cuts them. */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Before which pieces a Metaspace puts its mark. */
enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };

/* One of cut and rewrite is there. */
struct step {
	pieces_cutter cut;
	pieces_rewrite rewrite;
	/* what they need of these */
	bool (*is_match)(uint32_t point); /* NULL: what is the mark */
	struct pattern *pattern;
	bool invert; /* what lies between matches is the match */
	enum split_behavior behavior;
	enum scheme scheme;
	uint32_t mark; /* of a Metaspace */
};

struct pre_tokenizer {
	struct step steps[STEPS_MAX];
	size_t count;
};

/* ---- cuts */

static bool is_match(const struct step *step, uint32_t point)
{
	return step->is_match != NULL ? step->is_match(point) : point == step->mark;
}

/* Each point that is_match says yes to is a match by itself. */
static void points_cut(const void *context, struct pieces *pieces, struct piece piece)
{
	const struct step *step = context;
	struct splitter splitter = {.pieces = pieces, .behavior = step->behavior};
	size_t done = piece.begin;
	for (size_t at = piece.begin, size; at < piece.end; at += size) {
		if (!is_match(step, unicode_read(pieces->bytes + at, &size)))
			continue;
		if (done < at)
			splitter_take(&splitter, done, at, false);
		splitter_take(&splitter, at, at + size, true);
		done = at + size;
	}
	if (done < piece.end)
		splitter_take(&splitter, done, piece.end, false);
	splitter_finish(&splitter);
}

static void pattern_cut(const void *context, struct pieces *pieces, struct piece piece)
{
	const struct step *step = context;
	struct splitter splitter = {.pieces = pieces, .behavior = step->behavior};
	struct pattern_walk walk;
	size_t done = piece.begin;
	pattern_walk_begin(&walk, step->pattern, pieces->bytes + piece.begin, piece.end - piece.begin);
	while (pieces->state == PIECES_GOOD && pattern_walk_next(&walk)) {
		size_t begin = piece.begin + walk.begin, end = piece.begin + walk.end;
		if (done < begin)
			splitter_take(&splitter, done, begin, step->invert);
		splitter_take(&splitter, begin, end, !step->invert);
		done = end;
	}
	if (done < piece.end)
		splitter_take(&splitter, done, piece.end, step->invert);
	splitter_finish(&splitter);
	if (walk.memory || walk.failed)
		pieces_fail(pieces, walk.memory ? PIECES_MEMORY : PIECES_TOO_HARD);
	pattern_walk_end(&walk);
}

/* 0: white space, 1: of a word, 2: else. */
static int word_kind(uint32_t point)
{
	return unicode_is_word(point) ? 1 : unicode_is_space(point) ? 0 : 2;
}

/* Runs of one kind, white space left out. */
static void kinds_cut(const void *context, struct pieces *pieces, struct piece piece)
{
	(void)context;
	size_t begin = piece.begin;
	int kind = 0;
	for (size_t at = piece.begin, size; at < piece.end; at += size) {
		int next = word_kind(unicode_read(pieces->bytes + at, &size));
		if (next == kind)
			continue;
		if (kind != 0)
			pieces_cut(pieces, begin, at, -1);
		begin = at;
		kind = next;
	}
	if (kind != 0)
		pieces_cut(pieces, begin, piece.end, -1);
}

/* ---- rewrites */

/* A blank before text that has none. */
static void blank_rewrite(const void *context, const struct pieces *source, struct piece piece,
                          struct pieces *out)
{
	(void)context;
	if (source->bytes[piece.begin] != ' ')
		pieces_put(out, ' ', source->spans[piece.begin]);
	pieces_copy(out, source, piece.begin, piece.end);
}

/* Marks for blanks, and one before text that has none where the scheme says so. */
static void metaspace_rewrite(const void *context, const struct pieces *source, struct piece piece,
                              struct pieces *out)
{
	const struct step *step = context;
	size_t size;
	uint32_t first = unicode_read(source->bytes + piece.begin, &size);
	bool wanted = step->scheme == SCHEME_ALWAYS || (step->scheme == SCHEME_FIRST && piece.from == 0);
	if (wanted && first != step->mark && first != ' ')
		pieces_put(out, step->mark, source->spans[piece.begin]);
	for (size_t at = piece.begin; at < piece.end; at += size) {
		uint32_t point = unicode_read(source->bytes + at, &size);
		pieces_put(out, point == ' ' ? step->mark : point, source->spans[at]);
	}
}

void pre_tokenizer_run(const struct pre_tokenizer *pre_tokenizer, struct pieces *pieces,
                       struct pieces *scratch)
{
	for (size_t i = 0; i < pre_tokenizer->count && pieces->state == PIECES_GOOD; i++) {
		const struct step *step = &pre_tokenizer->steps[i];
		if (step->cut != NULL)
			pieces_cut_all(pieces, step->cut, step);
		else
			pieces_rewrite_all(pieces, scratch, step->rewrite, step);
	}
}

/* ---- reading */

static attn_status add(struct pre_tokenizer *pre_tokenizer, struct step step, attn_error *err)
{
	if (pre_tokenizer->count < STEPS_MAX) {
		pre_tokenizer->steps[pre_tokenizer->count++] = step;
		return ATTN_OK;
	}
	pattern_free(step.pattern);
	return load_failed(err, ATTN_CONFIG, "more than %d pre-tokenizers", STEPS_MAX);
}

static attn_status add_points(struct pre_tokenizer *pre_tokenizer, bool (*matches)(uint32_t point),
                              enum split_behavior behavior, attn_error *err)
{
	struct step step = {.cut = points_cut, .is_match = matches, .behavior = behavior};
	return add(pre_tokenizer, step, err);
}

static attn_status read_behavior(const json_t *config, const char *fallback, enum split_behavior *out,
                                 attn_error *err)
{
	static const char *const words[] = {"Removed",        "Isolated",   "MergedWithPrevious",
	                                    "MergedWithNext", "Contiguous", NULL};
	const char *word;
	attn_status status = load_string(config, "behavior", fallback, &word, err);
	if (status != ATTN_OK)
		return status;
	size_t choice = load_choice(word, words);
	if (words[choice] == NULL)
		return load_failed(err, ATTN_CONFIG, "the behavior '%s' of a split is not supported", word);
	*out = (enum split_behavior)choice;
	return ATTN_OK;
}

static attn_status read_split(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	struct step step = {.cut = pattern_cut};
	attn_status status = read_behavior(config, "", &step.behavior, err);
	if (status == ATTN_OK)
		status = load_flag(config, "invert", false, &step.invert, err);
	if (status == ATTN_OK)
		status = pattern_load(json_object_get(config, "pattern"), &step.pattern, err);
	return status == ATTN_OK ? add(pre_tokenizer, step, err) : status;
}

static attn_status read_byte_level(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	bool blank, regex;
	attn_status status = load_flag(config, "add_prefix_space", true, &blank, err);
	if (status == ATTN_OK)
		status = load_flag(config, "use_regex", true, &regex, err);
	if (status == ATTN_OK && blank)
		status = add(pre_tokenizer, (struct step){.rewrite = blank_rewrite}, err);
	if (status == ATTN_OK && regex) {
		struct step step = {.cut = pattern_cut, .behavior = SPLIT_ISOLATED};
		status = pattern_new(GPT2, false, &step.pattern, err);
		if (status == ATTN_OK)
			status = add(pre_tokenizer, step, err);
	}
	if (status == ATTN_OK)
		status = add(pre_tokenizer, (struct step){.rewrite = byte_alphabet_rewrite}, err);
	return status;
}

static attn_status read_digits(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	bool each;
	attn_status status = load_flag(config, "individual_digits", false, &each, err);
	if (status != ATTN_OK)
		return status;
	return add_points(pre_tokenizer, unicode_is_number, each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, err);
}

static attn_status read_punctuation(struct pre_tokenizer *pre_tokenizer, const json_t *config,
                                    attn_error *err)
{
	enum split_behavior behavior;
	attn_status status = read_behavior(config, "Isolated", &behavior, err);
	return status == ATTN_OK ? add_points(pre_tokenizer, unicode_is_punctuation, behavior, err) : status;
}

static attn_status read_scheme(const json_t *config, enum scheme *out, attn_error *err)
{
	static const char *const words[] = {"always", "first", "never", NULL};
	const char *word;
	bool prefix;
	attn_status status = load_string(config, "prepend_scheme", NULL, &word, err);
	if (status == ATTN_OK)
		status = load_flag(config, "add_prefix_space", true, &prefix, err);
	if (status != ATTN_OK)
		return status;
	size_t choice = load_choice(word != NULL ? word : prefix ? "always" : "never", words);
	if (words[choice] == NULL)
		return load_failed(err, ATTN_CONFIG, "the prepend_scheme '%s' is not supported", word);
	*out = (enum scheme)choice;
	return ATTN_OK;
}

static attn_status read_metaspace(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	struct step step = {.rewrite = metaspace_rewrite};
	const char *mark;
	bool split;
	size_t size = 0;
	attn_status status = load_string(config, "replacement", "\xE2\x96\x81", &mark, err);
	if (status == ATTN_OK)
		status = load_flag(config, "split", true, &split, err);
	if (status == ATTN_OK)
		status = read_scheme(config, &step.scheme, err);
	if (status == ATTN_OK && mark[0] != '\0')
		step.mark = unicode_read(mark, &size);
	if (status == ATTN_OK && (size == 0 || mark[size] != '\0'))
		status = load_failed(err, ATTN_CONFIG, "the replacement '%s' is not one character", mark);
	struct step cut = {.cut = points_cut, .mark = step.mark, .behavior = SPLIT_NEXT};
	if (status == ATTN_OK)
		status = add(pre_tokenizer, step, err);
	if (status == ATTN_OK && split)
		status = add(pre_tokenizer, cut, err);
	return status;
}

static attn_status read_bert(struct pre_tokenizer *pre_tokenizer, attn_error *err)
{
	attn_status status = add_points(pre_tokenizer, unicode_is_space, SPLIT_REMOVED, err);
	if (status != ATTN_OK)
		return status;
	return add_points(pre_tokenizer, unicode_is_punctuation, SPLIT_ISOLATED, err);
}

static attn_status read_any(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err);

static attn_status read_sequence(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	const json_t *list = json_object_get(config, "pretokenizers");
	if (!json_is_array(list))
		return load_failed(err, ATTN_CONFIG, "a Sequence has no list of pretokenizers");
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < json_array_size(list) && status == ATTN_OK; i++)
		status = read_any(pre_tokenizer, json_array_get(list, i), err);
	return status;
}

static attn_status read_any(struct pre_tokenizer *pre_tokenizer, const json_t *config, attn_error *err)
{
	static const char *const types[] = {"BertPreTokenizer", "ByteLevel",  "Split",           "Digits",
	                                    "Punctuation",      "Whitespace", "WhitespaceSplit", "Metaspace",
	                                    "Sequence",         NULL};
	const char *type;
	attn_status status = load_type(config, "pre-tokenizer", &type, err);
	if (status != ATTN_OK)
		return status;
	switch (load_choice(type, types)) {
	case 0:
		return read_bert(pre_tokenizer, err);
	case 1:
		return read_byte_level(pre_tokenizer, config, err);
	case 2:
		return read_split(pre_tokenizer, config, err);
	case 3:
		return read_digits(pre_tokenizer, config, err);
	case 4:
		return read_punctuation(pre_tokenizer, config, err);
	case 5:
		return add(pre_tokenizer, (struct step){.cut = kinds_cut}, err);
	case 6:
		return add_points(pre_tokenizer, unicode_is_space, SPLIT_REMOVED, err);
	case 7:
		return read_metaspace(pre_tokenizer, config, err);
	case 8:
		return read_sequence(pre_tokenizer, config, err);
	default:
		return load_failed(err, ATTN_CONFIG, "the pre-tokenizer %s is not supported", type);
	}
}

attn_status pre_tokenizer_new(const json_t *config, struct pre_tokenizer **out, attn_error *err)
{
	struct pre_tokenizer *pre_tokenizer = calloc(1, sizeof *pre_tokenizer);
	if (pre_tokenizer == NULL)
		return load_no_memory(err);
	attn_status status = ATTN_OK;
	if (config != NULL && !json_is_null(config))
		status = read_any(pre_tokenizer, config, err);
	if (status != ATTN_OK) {
		pre_tokenizer_free(pre_tokenizer);
		return status;
	}
	*out = pre_tokenizer;
	return ATTN_OK;
}

void pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer)
{
	if (pre_tokenizer == NULL)
		return;
	for (size_t i = 0; i < pre_tokenizer->count; i++)
		pattern_free(pre_tokenizer->steps[i].pattern);
	free(pre_tokenizer);
}
