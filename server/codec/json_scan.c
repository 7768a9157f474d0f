#include "codec/json_scan.h"

#include "codec/json_walk.h"
#include "codec/numbers.h"
#include "codec/tiles.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ENVELOPE_ROOM 256
/* Read between two looks at whether anybody waits for the walk. */
#define BYTES_UNASKED ((ptrdiff_t)1 << 20)
/* Containers that are open at the deepest place of a rule: "/group/tensor/data". */
#define RULE_DEPTH 3

bool json_walk_note(struct json_walk *walk, enum problem_code code, const char *detail)
{
	char pointer[JSON_POINTER_MAX];
	if (!problem_tells(walk->problem, code))
		return true;
	json_path_print(&walk->path, pointer);
	problem_note(walk->problem, code, pointer, "%s", detail);
	return true;
}

bool json_walk_note_again(struct json_walk *walk, const struct json_array *before, enum json_form form)
{
	if (before->form == form)
		return json_walk_note(walk, PROBLEM_DUPLICATE_KEY, "the tensor is given twice");
	return json_walk_note(walk, PROBLEM_BAD_VALUE,
	                      "the tensor is given twice, as `data` and as `base64`");
}

bool json_walk_memory(struct json_walk *walk)
{
	return problem_note(walk->problem, PROBLEM_MEMORY, "",
	                    "the system refused memory for the body's tensors");
}

bool json_walk_wanted(struct json_walk *walk)
{
	if (walk->cursor.at - walk->asked < BYTES_UNASKED)
		return true;
	walk->asked = walk->cursor.at;
	attn_status status = tiles_wanted(walk->executor);
	return status == ATTN_OK || problem_set_status(walk->problem, status);
}

bool json_walk_syntax(struct json_walk *walk, const char *expected)
{
	char pointer[JSON_POINTER_MAX], found[24] = "the end of the text";
	json_path_print(&walk->path, pointer);
	unsigned char byte = (unsigned char)json_peek(&walk->cursor);
	if (walk->cursor.at < walk->cursor.end)
		snprintf(found, sizeof(found), byte > 0x20 && byte < 0x7F ? "'%c'" : "byte 0x%02x", byte);
	return problem_note(walk->problem, PROBLEM_SYNTAX, pointer, "at byte %zu: expected %s, found %s",
	                    (size_t)(walk->cursor.at - walk->begin), expected, found);
}

/* ---- the envelope */

static bool envelope_grow(struct json_walk *walk, size_t wanted)
{
	size_t room =
	    walk->envelope_room < FIRST_ENVELOPE_ROOM ? FIRST_ENVELOPE_ROOM : walk->envelope_room * 2;
	room = room < wanted ? wanted : room;
	char *envelope = realloc(walk->out->envelope, room);
	if (envelope == NULL)
		return json_walk_memory(walk);
	walk->out->envelope = envelope;
	walk->envelope_room = room;
	return true;
}

static bool emit(struct json_walk *walk, const char *text, size_t length)
{
	if (walk->quiet || walk->envelope_over)
		return true;
	size_t after = walk->out->envelope_length + length;
	if (after > walk->limits->envelope) {
		char detail[160];
		snprintf(detail, sizeof(detail),
		         "what is not a tensor takes more than the limit of %zu bytes",
		         walk->limits->envelope);
		walk->envelope_over = true;
		return json_walk_note(walk, PROBLEM_BODY_TOO_LARGE, detail);
	}
	if (after >= walk->envelope_room && !envelope_grow(walk, after + 1))
		return false;
	memcpy(walk->out->envelope + walk->out->envelope_length, text, length);
	walk->out->envelope_length = after;
	walk->out->envelope[after] = '\0';
	return true;
}

/* ---- containers */

bool json_walk_open(struct json_walk *walk, bool object)
{
	if (!json_path_open(&walk->path, object)) {
		char pointer[JSON_POINTER_MAX];
		json_path_print(&walk->path, pointer);
		return problem_note(walk->problem, PROBLEM_TOO_DEEP, pointer,
		                    "at byte %zu: more than %d arrays and objects stand in one another",
		                    (size_t)(walk->cursor.at - walk->begin), JSON_MAX_DEPTH);
	}
	walk->cursor.at++;
	json_skip_space(&walk->cursor);
	return true;
}

bool json_walk_next(struct json_walk *walk, char close, bool *more)
{
	json_skip_space(&walk->cursor);
	char c = json_peek(&walk->cursor);
	if (c != ',' && c != close)
		return json_walk_syntax(walk, close == ']' ? "',' or ']'" : "',' or '}'");
	walk->cursor.at++;
	*more = c == ',';
	if (*more)
		json_skip_space(&walk->cursor);
	return json_walk_wanted(walk);
}

static bool take_string(struct json_walk *walk, char *name, size_t size)
{
	const char *start = walk->cursor.at;
	bool nul = false;
	if (!json_take_string(&walk->cursor, name, size, &nul))
		return json_walk_syntax(walk, "a well-formed string");
	if (nul)
		json_walk_note(walk, PROBLEM_NUL_ESCAPE, "the string holds \\u0000");
	return emit(walk, start, (size_t)(walk->cursor.at - start));
}

/* Whether pointer is the place of the rule, or of "data" or "base64" in it: *form. */
static bool rule_matches(const struct json_rule *rule, const char *pointer, enum json_form *form)
{
	size_t length = strlen(rule->pointer);
	if (strncmp(pointer, rule->pointer, length) != 0)
		return false;
	*form = strcmp(pointer + length, "/data") == 0     ? JSON_FORM_DATA
	        : strcmp(pointer + length, "/base64") == 0 ? JSON_FORM_BASE64
	                                                   : JSON_FORM_NESTED;
	return *form != JSON_FORM_NESTED || pointer[length] == '\0';
}

/* The rule of the place where the walk stands, or rule_count. */
static size_t find_rule(const struct json_walk *walk, enum json_form *form)
{
	size_t rule = walk->rule_count;
	if (walk->quiet || walk->rule_count == 0 || walk->path.depth > RULE_DEPTH)
		return rule;
	char pointer[JSON_POINTER_MAX];
	json_path_print(&walk->path, pointer);
	for (rule = 0; rule < walk->rule_count; rule++) {
		if (rule_matches(&walk->rules[rule], pointer, form))
			break;
	}
	return rule;
}

/* The envelope has the rule's number where the array stood. */
static bool emit_rule(struct json_walk *walk, size_t rule)
{
	char token[24];
	int length = snprintf(token, sizeof(token), "%zu", rule);
	return emit(walk, token, (size_t)length);
}

/* Tokens, by a rule where they are plain, or as any value. */
static bool walk_tokens(struct json_walk *walk, size_t rule, enum json_form form)
{
	struct json_array *out = &walk->out->arrays[rule];
	bool taken = false, nested = json_peek(&walk->cursor) == '[' && form == JSON_FORM_NESTED;
	if (nested && !out->present && !json_walk_tokens(walk, out, &taken))
		return false;
	return taken ? emit_rule(walk, rule) : json_walk_value(walk);
}

/* What stands at the place of a rule. */
static bool walk_tensor(struct json_walk *walk, size_t rule, enum json_form form)
{
	static const char *const expected[] = {
	    [JSON_FORM_NESTED] =
	        "a tensor must be a nested array, or an object with `shape` and `data` or `base64`",
	    [JSON_FORM_DATA] = "`data` must be a flat array",
	    [JSON_FORM_BASE64] = "`base64` must be a string",
	};
	char c = json_peek(&walk->cursor);
	if (walk->rules[rule].kind == JSON_TOKENS)
		return walk_tokens(walk, rule, form);
	if (c == '{' && form == JSON_FORM_NESTED)
		return json_walk_value(walk);
	if (c == '[' && form != JSON_FORM_BASE64)
		return json_walk_array(walk, rule, form) && emit_rule(walk, rule);
	if (c == '"' && form == JSON_FORM_BASE64)
		return json_walk_base64(walk, rule) && emit_rule(walk, rule);
	if (c != '\0' && strchr("\"[{tfn-0123456789", c) != NULL)
		json_walk_note(walk, PROBLEM_WRONG_TYPE, expected[form]);
	return json_walk_value(walk);
}

static bool walk_member(struct json_walk *walk)
{
	struct json_step *step = json_path_last(&walk->path);
	if (json_peek(&walk->cursor) != '"')
		return json_walk_syntax(walk, "a name in quotes");
	if (!take_string(walk, step->name, sizeof(step->name)))
		return false;
	step->begun = true;
	json_skip_space(&walk->cursor);
	if (json_peek(&walk->cursor) != ':')
		return json_walk_syntax(walk, "':'");
	walk->cursor.at++;
	json_skip_space(&walk->cursor);
	if (!emit(walk, ":", 1))
		return false;
	enum json_form form = JSON_FORM_NESTED;
	size_t rule = find_rule(walk, &form);
	return rule < walk->rule_count ? walk_tensor(walk, rule, form) : json_walk_value(walk);
}

static bool walk_element(struct json_walk *walk)
{
	struct json_step *step = json_path_last(&walk->path);
	step->index += step->begun ? 1 : 0;
	step->begun = true;
	return json_walk_value(walk);
}

static bool walk_container(struct json_walk *walk, bool object)
{
	const char close = object ? '}' : ']';
	if (!json_walk_open(walk, object) || !emit(walk, object ? "{" : "[", 1))
		return false;
	bool more = json_peek(&walk->cursor) != close;
	if (!more)
		walk->cursor.at++;
	while (more) {
		if (!(object ? walk_member(walk) : walk_element(walk)) || !json_walk_next(walk, close, &more))
			return false;
		if (more && !emit(walk, ",", 1))
			return false;
	}
	json_path_close(&walk->path);
	return emit(walk, &close, 1);
}

/* ---- values */

/* Whether a number of the grammar is an integer that int64 does not hold. */
static bool is_past_int64(const char *text, size_t length)
{
	static const char most[] = "9223372036854775807", least[] = "9223372036854775808";
	bool negative = text[0] == '-';
	const char *digits = text + (negative ? 1 : 0);
	size_t count = length - (negative ? 1 : 0);
	if (count < sizeof(most) - 1)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
	}
	return count > sizeof(most) - 1 || memcmp(digits, negative ? least : most, count) > 0;
}

static bool emit_number(struct json_walk *walk, const char *text, size_t length)
{
	return emit(walk, text, length) && (!is_past_int64(text, length) || emit(walk, ".0", 2));
}

static bool walk_number(struct json_walk *walk)
{
	const char *start = walk->cursor.at, *after;
	float value;
	enum number_result result = number_scan(start, walk->cursor.end, &value, &after);
	walk->cursor.at = after;
	if (result == NUMBER_SYNTAX)
		return json_walk_syntax(walk, "a number");
	if (result == NUMBER_OK)
		return emit_number(walk, start, (size_t)(after - start));
	json_walk_note(walk, PROBLEM_BEYOND_FLOAT32, "the number is beyond float32 (at most 3.4028235e38)");
	return emit(walk, "0", 1);
}

static bool walk_word(struct json_walk *walk)
{
	static const char *const words[] = {"true", "false", "null"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (json_take_word(&walk->cursor, words[i]))
			return emit(walk, words[i], strlen(words[i]));
	}
	return json_walk_syntax(walk, "a value");
}

bool json_walk_value(struct json_walk *walk)
{
	char c = json_peek(&walk->cursor);
	if (c == '{' || c == '[')
		return walk_container(walk, c == '{');
	if (c == '"')
		return take_string(walk, NULL, 0);
	if (json_take_not_finite(&walk->cursor)) {
		json_walk_note(walk, PROBLEM_NOT_FINITE, "JSON has no NaN and no infinity");
		return emit(walk, "0", 1);
	}
	if (c == '-' || (c >= '0' && c <= '9'))
		return walk_number(walk);
	return walk_word(walk);
}

/* The one value of a text, and nothing after it. */
static bool walk_text(struct json_walk *walk)
{
	json_skip_space(&walk->cursor);
	walk->out->object = json_peek(&walk->cursor) == '{';
	if (!json_walk_value(walk))
		return false;
	json_skip_space(&walk->cursor);
	return walk->cursor.at == walk->cursor.end || json_walk_syntax(walk, "the end of the text");
}

static size_t text_elements(const struct json_array *array)
{
	return array->form == JSON_FORM_BASE64 ? 0 : array->count;
}

/* Tells of the first array that does not fit the limit. */
static void note_elements(struct json_walk *walk)
{
	if (walk->elements <= walk->limits->elements)
		return;
	size_t sum = 0, rule = 0;
	while (rule + 1 < walk->rule_count &&
	       (sum += text_elements(&walk->out->arrays[rule])) <= walk->limits->elements)
		rule++;
	problem_note(walk->problem, PROBLEM_TOO_MANY_ELEMENTS, walk->rules[rule].pointer,
	             "the tensors hold %zu elements, the limit is %zu", walk->elements,
	             walk->limits->elements);
}

bool json_scan(const char *text, size_t length, const struct json_rule *rules, size_t rule_count,
               const struct json_limits *limits, attn_executor *executor, struct json_scan *out,
               struct problem *problem)
{
	assert(rule_count <= JSON_MAX_RULES && problem->code == PROBLEM_NONE);
	*out = (struct json_scan){0};
	struct json_walk walk = {.cursor = {text, text + length},
	                         .begin = text,
	                         .asked = text,
	                         .rules = rules,
	                         .rule_count = rule_count,
	                         .limits = limits,
	                         .executor = executor,
	                         .out = out,
	                         .problem = problem};
	if (!walk_text(&walk))
		return false;
	note_elements(&walk);
	if (walk.envelope_over) {
		free(out->envelope);
		out->envelope = NULL;
		out->envelope_length = 0;
	}
	return true;
}

void json_scan_clear(struct json_scan *scan)
{
	free(scan->envelope);
	for (size_t i = 0; i < JSON_MAX_RULES; i++) {
		free(scan->arrays[i].data);
		free(scan->arrays[i].lengths);
	}
	*scan = (struct json_scan){0};
}
