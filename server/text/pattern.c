#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include "text/load_config.h"
#include "text/pattern_translate.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

/* Steps of one match, and KiB of memory for it. */
#define STEPS_MAX 20000000
#define MEMORY_MAX (64 << 10)
#define EXPRESSION_MAX 4096

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
};

static attn_status compile(struct pattern *pattern, const char *text, uint32_t options,
                           const char *expression, attn_error *err)
{
	int code;
	size_t place;
	pattern->code =
	    pcre2_compile((PCRE2_SPTR)text, strlen(text), options | PCRE2_UTF, &code, &place, NULL);
	pattern->limits = pcre2_match_context_create(NULL);
	if (pattern->limits != NULL) {
		pcre2_set_match_limit(pattern->limits, STEPS_MAX);
		pcre2_set_heap_limit(pattern->limits, MEMORY_MAX);
	}
	if (pattern->limits == NULL || (pattern->code == NULL && code == PCRE2_ERROR_HEAP_FAILED))
		return load_no_memory(err);
	if (pattern->code != NULL)
		return ATTN_OK;
	PCRE2_UCHAR message[128];
	pcre2_get_error_message(code, message, sizeof message);
	return load_failed(err, ATTN_CONFIG, "the regular expression '%s' is not understood: %s", expression,
	                   (const char *)message);
}

attn_status pattern_new(const char *expression, bool literal, struct pattern **out, attn_error *err)
{
	const char *wrong = NULL;
	if (strlen(expression) > EXPRESSION_MAX)
		return load_failed(err, ATTN_CONFIG,
		                   "a regular expression of %zu bytes is over the limit of %d",
		                   strlen(expression), EXPRESSION_MAX);
	char *text = literal ? strdup(expression) : pattern_translate(expression, &wrong);
	if (wrong != NULL)
		return load_failed(err, ATTN_CONFIG,
		                   "the regular expression '%s' is not supported: from '%s' on", expression,
		                   wrong);
	struct pattern *pattern = calloc(1, sizeof *pattern);
	attn_status status = ATTN_OK;
	if (text == NULL || pattern == NULL)
		status = load_no_memory(err);
	else
		status =
		    compile(pattern, text,
		            literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
		            expression, err);
	free(text);
	if (status != ATTN_OK) {
		pattern_free(pattern);
		return status;
	}
	*out = pattern;
	return ATTN_OK;
}

attn_status pattern_load(const json_t *config, struct pattern **out, attn_error *err)
{
	const char *text, *expression;
	attn_status status = load_string(config, "String", NULL, &text, err);
	if (status == ATTN_OK)
		status = load_string(config, "Regex", NULL, &expression, err);
	if (status == ATTN_OK && (text == NULL) == (expression == NULL))
		status = load_failed(err, ATTN_CONFIG, "a pattern has neither String nor Regex");
	if (status != ATTN_OK)
		return status;
	return pattern_new(text != NULL ? text : expression, text != NULL, out, err);
}

void pattern_free(struct pattern *pattern)
{
	if (pattern == NULL)
		return;
	pcre2_code_free(pattern->code);
	pcre2_match_context_free(pattern->limits);
	free(pattern);
}

/* ---- matching */

void pattern_walk_begin(struct pattern_walk *walk, const struct pattern *pattern, const char *text,
                        size_t length)
{
	*walk = (struct pattern_walk){.pattern = pattern, .text = text, .length = length};
	walk->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
	walk->memory = walk->data == NULL;
}

void pattern_walk_end(struct pattern_walk *walk)
{
	pcre2_match_data_free(walk->data);
}

/* The next match from `at` on, empty or not. */
static bool find(struct pattern_walk *walk)
{
	int found = pcre2_match(walk->pattern->code, (PCRE2_SPTR)walk->text, walk->length, walk->at,
	                        PCRE2_NO_UTF_CHECK, walk->data, walk->pattern->limits);
	if (found <= 0) {
		walk->memory = found == PCRE2_ERROR_NOMEMORY;
		walk->failed = found != PCRE2_ERROR_NOMATCH;
		return false;
	}
	const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(walk->data);
	walk->begin = ends[0];
	walk->end = ends[1];
	return true;
}

/* Past the character at `at`. */
static void step(struct pattern_walk *walk)
{
	do {
		walk->at++;
	} while (walk->at < walk->length && ((unsigned char)walk->text[walk->at] & 0xC0) == 0x80);
}

bool pattern_walk_next(struct pattern_walk *walk)
{
	while (!walk->memory && !walk->failed && walk->at <= walk->length && find(walk)) {
		bool empty = walk->begin == walk->end, again = walk->any && walk->end == walk->last;
		walk->at = walk->end;
		if (empty)
			step(walk);
		if (empty && again) /* an empty match right behind another is none */
			continue;
		walk->any = true;
		walk->last = walk->end;
		return true;
	}
	return false;
}
