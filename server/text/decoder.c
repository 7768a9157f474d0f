#include "text/decoder.h"

#include "codec/utf8.h"
#include "text/byte_alphabet.h"
#include "text/load_config.h"
#include "text/pattern.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64
#define TEXT_MAX 64                /* bytes of a prefix, suffix or replacement */
#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

struct step {
	void (*run)(const struct step *step, const struct strings *texts, struct strings *out);
	/* what it needs of these */
	struct pattern *pattern;
	char *text;
	bool flag;
	uint32_t mark;
	size_t start, stop;
};

struct decoder {
	struct step steps[STEPS_MAX];
	size_t count;
};

/* ---- steps */

/* Puts bytes as text, U+FFFD for each part of them that begins no character (Unicode 15, 3.9). */
static void put_lossy(struct strings *out, const char *bytes, size_t length)
{
	const char *end = bytes + length;
	while (bytes < end) {
		size_t size = utf8_sequence(bytes, end);
		if (size > 0) {
			strings_put(out, bytes, size);
			bytes += size;
			continue;
		}
		strings_put(out, REPLACEMENT, sizeof REPLACEMENT - 1);
		bytes += utf8_maximal_subpart(bytes, end);
	}
}

static bool is_byte_level(const char *text, size_t length)
{
	size_t size;
	for (size_t at = 0; at < length; at += size) {
		if (byte_alphabet_byte(unicode_read(text + at, &size)) < 0)
			return false;
	}
	return true;
}

/* All texts as one; a text with a character outside the alphabet is taken as it stands. */
static void run_byte_level(const struct step *step, const struct strings *texts, struct strings *out)
{
	(void)step;
	struct strings bytes = {.bytes = NULL};
	for (size_t i = 0; i < texts->count; i++) {
		size_t length, size;
		const char *text = strings_at(texts, i, &length);
		if (!is_byte_level(text, length)) {
			strings_put(&bytes, text, length);
			continue;
		}
		for (size_t at = 0; at < length; at += size) {
			char byte = (char)byte_alphabet_byte(unicode_read(text + at, &size));
			strings_put(&bytes, &byte, 1);
		}
	}
	if (bytes.length > 0)
		put_lossy(out, bytes.bytes, bytes.length);
	strings_end(out);
	out->memory = out->memory || bytes.memory;
	strings_clear(&bytes);
}

/* What stands at text is taken out of a word: blanks before punctuation, and the like. */
static size_t tidy(const char *text, size_t length, const char **instead)
{
	static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},          {" !", "!"},
	                                       {" ,", ","},     {" ' ", "'"},         {" n't", "n't"},
	                                       {" 'm", "'m"},   {" 's", "'s"},        {" 've", "'ve"},
	                                       {" 're", "'re"}, {" do not", " don't"}};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		size_t size = strlen(pairs[i][0]);
		if (size <= length && memcmp(text, pairs[i][0], size) == 0) {
			*instead = pairs[i][1];
			return size;
		}
	}
	return 0;
}

static void put_tidy(struct strings *out, const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		const char *instead;
		size_t size = tidy(text + at, length - at, &instead);
		if (size > 0)
			strings_put(out, instead, strlen(instead));
		else
			strings_put(out, text + at, 1);
		at += size > 0 ? size : 1;
	}
}

static void run_word_piece(const struct step *step, const struct strings *texts, struct strings *out)
{
	size_t prefix = strlen(step->text);
	for (size_t i = 0; i < texts->count; i++) {
		size_t length;
		const char *text = strings_at(texts, i, &length);
		struct strings word = {.bytes = NULL};
		bool continued = length >= prefix && memcmp(text, step->text, prefix) == 0;
		if (i > 0 && !continued)
			strings_put(&word, " ", 1);
		size_t skipped = i > 0 && continued ? prefix : 0;
		strings_put(&word, text + skipped, length - skipped);
		if (step->flag)
			put_tidy(out, word.bytes, word.length);
		else
			strings_put(out, word.bytes, word.length);
		strings_end(out);
		out->memory = out->memory || word.memory;
		strings_clear(&word);
	}
}

/* The suffix of a word becomes a blank, in the last text nothing. */
static void run_suffix(const struct step *step, const struct strings *texts, struct strings *out)
{
	size_t suffix = strlen(step->text);
	for (size_t i = 0; i < texts->count; i++) {
		size_t length, at = 0;
		const char *text = strings_at(texts, i, &length);
		while (at < length) {
			bool there =
			    suffix > 0 && length - at >= suffix && memcmp(text + at, step->text, suffix) == 0;
			if (!there)
				strings_put(out, text + at, 1);
			else if (i + 1 < texts->count)
				strings_put(out, " ", 1);
			at += there ? suffix : 1;
		}
		strings_end(out);
	}
}

/* Marks become blanks; with the flag those of the first text, which was put there, nothing. */
static void run_metaspace(const struct step *step, const struct strings *texts, struct strings *out)
{
	for (size_t i = 0; i < texts->count; i++) {
		size_t length, size;
		const char *text = strings_at(texts, i, &length);
		for (size_t at = 0; at < length; at += size) {
			bool mark = unicode_read(text + at, &size) == step->mark;
			if (!mark)
				strings_put(out, text + at, size);
			else if (i > 0 || !step->flag)
				strings_put(out, " ", 1);
		}
		strings_end(out);
	}
}

static void run_replace(const struct step *step, const struct strings *texts, struct strings *out)
{
	for (size_t i = 0; i < texts->count; i++) {
		size_t length, done = 0;
		const char *text = strings_at(texts, i, &length);
		struct pattern_walk walk;
		pattern_walk_begin(&walk, step->pattern, text, length);
		while (length > 0 && pattern_walk_next(&walk)) {
			strings_put(out, text + done, walk.begin - done);
			strings_put(out, step->text, strlen(step->text));
			done = walk.end;
		}
		strings_put(out, text + done, length - done);
		strings_end(out);
		out->memory = out->memory || walk.memory;
		pattern_walk_end(&walk);
	}
}

/* The byte of "<0x41>", or -1. */
static int fallback_byte(const char *text, size_t length)
{
	static const char digits[] = "0123456789ABCDEF0123456789abcdef";
	if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
		return -1;
	const char *high = memchr(digits, text[3], sizeof digits - 1);
	const char *low = memchr(digits, text[4], sizeof digits - 1);
	if (high == NULL || low == NULL)
		return -1;
	return (int)((high - digits) % 16 * 16 + (low - digits) % 16);
}

/* Ends a run of bytes: a text if it is one, else a U+FFFD for each. */
static void flush_bytes(struct strings *bytes, struct strings *out)
{
	size_t at = 0, size = 1;
	while (at < bytes->length && size > 0) {
		size = utf8_sequence(bytes->bytes + at, bytes->bytes + bytes->length);
		at += size;
	}
	bool good = at == bytes->length;
	if (bytes->length > 0 && good) {
		strings_put(out, bytes->bytes, bytes->length);
		strings_end(out);
	}
	for (size_t i = 0; i < bytes->length && !good; i++) {
		strings_put(out, REPLACEMENT, sizeof REPLACEMENT - 1);
		strings_end(out);
	}
	bytes->length = 0;
}

static void run_byte_fallback(const struct step *step, const struct strings *texts, struct strings *out)
{
	(void)step;
	struct strings bytes = {.bytes = NULL};
	for (size_t i = 0; i < texts->count; i++) {
		size_t length;
		const char *text = strings_at(texts, i, &length);
		int value = fallback_byte(text, length);
		if (value >= 0) {
			char byte = (char)value;
			strings_put(&bytes, &byte, 1);
			continue;
		}
		flush_bytes(&bytes, out);
		strings_put(out, text, length);
		strings_end(out);
	}
	flush_bytes(&bytes, out);
	out->memory = out->memory || bytes.memory;
	strings_clear(&bytes);
}

static void run_fuse(const struct step *step, const struct strings *texts, struct strings *out)
{
	(void)step;
	strings_put(out, texts->bytes, texts->length);
	strings_end(out);
}

/* Takes up to start marks off the beginning of each text, and up to stop off its end. */
static void run_strip(const struct step *step, const struct strings *texts, struct strings *out)
{
	for (size_t i = 0; i < texts->count; i++) {
		size_t length, size, begin = 0;
		const char *text = strings_at(texts, i, &length);
		for (size_t n = 0; n < step->start && begin < length; n++) {
			if (unicode_read(text + begin, &size) != step->mark)
				break;
			begin += size;
		}
		for (size_t n = 0; n < step->stop && length > begin; n++) {
			size_t before = unicode_before(text, length);
			if (unicode_read(text + before, &size) != step->mark)
				break;
			length = before;
		}
		strings_put(out, text + begin, length - begin);
		strings_end(out);
	}
}

static void run_join(const struct step *step, const struct strings *texts, struct strings *out)
{
	(void)step;
	for (size_t i = 0; i < texts->count; i++) {
		size_t length;
		const char *text = strings_at(texts, i, &length);
		strings_put(out, " ", i > 0);
		strings_put(out, text, length);
	}
	strings_end(out);
}

void decoder_run(const struct decoder *decoder, struct strings *texts, struct strings *scratch)
{
	for (size_t i = 0; i < decoder->count && !texts->memory; i++) {
		scratch->length = 0;
		scratch->count = 0;
		decoder->steps[i].run(&decoder->steps[i], texts, scratch);
		struct strings swap = *texts;
		*texts = *scratch;
		*scratch = swap;
	}
}

/* ---- reading */

static attn_status add(struct decoder *decoder, struct step step, attn_error *err)
{
	if (decoder->count < STEPS_MAX) {
		decoder->steps[decoder->count++] = step;
		return ATTN_OK;
	}
	pattern_free(step.pattern);
	free(step.text);
	return load_failed(err, ATTN_CONFIG, "more than %d decoders", STEPS_MAX);
}

/* A step with a copy of the text that stands under key. */
static attn_status add_text(struct decoder *decoder, struct step step, const json_t *config, const char *key,
                            const char *fallback, attn_error *err)
{
	const char *text;
	attn_status status = load_string(config, key, fallback, &text, err);
	if (status == ATTN_OK && strlen(text) > TEXT_MAX)
		status = load_failed(err, ATTN_CONFIG, "%s has %zu bytes, the limit is %d", key, strlen(text),
		                     TEXT_MAX);
	step.text = status == ATTN_OK ? strdup(text) : NULL;
	if (status == ATTN_OK && step.text != NULL)
		return add(decoder, step, err);
	pattern_free(step.pattern);
	return status == ATTN_OK ? load_no_memory(err) : status;
}

/* The one character that stands under key. */
static attn_status read_mark(const json_t *config, const char *key, const char *fallback, uint32_t *out,
                             attn_error *err)
{
	const char *text;
	size_t size = 0;
	attn_status status = load_string(config, key, fallback, &text, err);
	if (status != ATTN_OK)
		return status;
	if (text[0] != '\0')
		*out = unicode_read(text, &size);
	if (size == 0 || text[size] != '\0')
		return load_failed(err, ATTN_CONFIG, "the %s '%s' is not one character", key, text);
	return ATTN_OK;
}

static attn_status read_word_piece(struct decoder *decoder, const json_t *config, attn_error *err)
{
	struct step step = {.run = run_word_piece};
	attn_status status = load_flag(config, "cleanup", true, &step.flag, err);
	return status == ATTN_OK ? add_text(decoder, step, config, "prefix", "##", err) : status;
}

static attn_status read_metaspace(struct decoder *decoder, const json_t *config, attn_error *err)
{
	struct step step = {.run = run_metaspace};
	const char *scheme;
	attn_status status = read_mark(config, "replacement", "\xE2\x96\x81", &step.mark, err);
	if (status == ATTN_OK)
		status = load_flag(config, "add_prefix_space", true, &step.flag, err);
	if (status == ATTN_OK)
		status = load_string(config, "prepend_scheme", step.flag ? "always" : "never", &scheme, err);
	if (status == ATTN_OK)
		step.flag = strcmp(scheme, "never") != 0;
	return status == ATTN_OK ? add(decoder, step, err) : status;
}

static attn_status read_replace(struct decoder *decoder, const json_t *config, attn_error *err)
{
	struct step step = {.run = run_replace};
	attn_status status = pattern_load(json_object_get(config, "pattern"), &step.pattern, err);
	return status == ATTN_OK ? add_text(decoder, step, config, "content", "", err) : status;
}

static attn_status read_strip(struct decoder *decoder, const json_t *config, attn_error *err)
{
	struct step step = {.run = run_strip};
	attn_status status = read_mark(config, "content", "", &step.mark, err);
	if (status == ATTN_OK)
		status = load_count(config, "start", 0, TEXT_MAX, &step.start, err);
	if (status == ATTN_OK)
		status = load_count(config, "stop", 0, TEXT_MAX, &step.stop, err);
	return status == ATTN_OK ? add(decoder, step, err) : status;
}

static attn_status read_any(struct decoder *decoder, const json_t *config, attn_error *err);

static attn_status read_sequence(struct decoder *decoder, const json_t *config, attn_error *err)
{
	const json_t *list = json_object_get(config, "decoders");
	if (!json_is_array(list))
		return load_failed(err, ATTN_CONFIG, "a Sequence has no list of decoders");
	attn_status status = ATTN_OK;
	for (size_t i = 0; i < json_array_size(list) && status == ATTN_OK; i++)
		status = read_any(decoder, json_array_get(list, i), err);
	return status;
}

static attn_status read_any(struct decoder *decoder, const json_t *config, attn_error *err)
{
	static const char *const types[] = {"ByteLevel",    "WordPiece", "BPEDecoder", "Metaspace", "Replace",
	                                    "ByteFallback", "Fuse",      "Strip",      "Sequence",  NULL};
	const char *type;
	attn_status status = load_type(config, "decoder", &type, err);
	if (status != ATTN_OK)
		return status;
	switch (load_choice(type, types)) {
	case 0:
		return add(decoder, (struct step){.run = run_byte_level}, err);
	case 1:
		return read_word_piece(decoder, config, err);
	case 2:
		return add_text(decoder, (struct step){.run = run_suffix}, config, "suffix", "</w>", err);
	case 3:
		return read_metaspace(decoder, config, err);
	case 4:
		return read_replace(decoder, config, err);
	case 5:
		return add(decoder, (struct step){.run = run_byte_fallback}, err);
	case 6:
		return add(decoder, (struct step){.run = run_fuse}, err);
	case 7:
		return read_strip(decoder, config, err);
	case 8:
		return read_sequence(decoder, config, err);
	default:
		return load_failed(err, ATTN_CONFIG, "the decoder %s is not supported", type);
	}
}

attn_status decoder_new(const json_t *config, struct decoder **out, attn_error *err)
{
	struct decoder *decoder = calloc(1, sizeof *decoder);
	if (decoder == NULL)
		return load_no_memory(err);
	attn_status status = config == NULL || json_is_null(config)
	                         ? add(decoder, (struct step){.run = run_join}, err)
	                         : read_any(decoder, config, err);
	if (status != ATTN_OK) {
		decoder_free(decoder);
		return status;
	}
	*out = decoder;
	return ATTN_OK;
}

void decoder_free(struct decoder *decoder)
{
	if (decoder == NULL)
		return;
	for (size_t i = 0; i < decoder->count; i++) {
		pattern_free(decoder->steps[i].pattern);
		free(decoder->steps[i].text);
	}
	free(decoder);
}
