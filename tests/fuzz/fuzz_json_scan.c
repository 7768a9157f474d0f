/*
 * Any bytes as a JSON text: our scanner and jansson agree on what is JSON, and the envelope that the scanner
 * leaves is JSON, of which our tree is jansson's. So is that of lib's careful way to read.
 *
 * Set aside, since the two differ there on purpose: duplicate keys, escaped NULs, depth, numbers out of
 * range.
 */
#include "codec/json_envelope.h"
#include "model_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_rule rules[] = {
    {"/query", JSON_FLOATS}, {"/projections/key", JSON_FLOATS}, {"/mask", JSON_BOOLEANS}};
static const struct json_limits limits = {.elements = 1 << 16, .envelope = 1 << 16};

static void expect(int holds)
{
	if (!holds)
		abort();
}

/* What jansson says of the text: 1 JSON, 0 not, -1 where its answer does not count. */
static int oracle(const char *text, size_t length)
{
	if (memchr(text, 0, length))
		return 0; /* jansson takes a zero byte after a lone number for the end */
	json_error_t error;
	json_t *root = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
	if (root) {
		json_decref(root);
		return 1;
	}
	enum json_error_code code = json_error_code(&error);
	if (code == json_error_null_character || code == json_error_null_byte_in_key ||
	    code == json_error_stack_overflow || code == json_error_numeric_overflow)
		return -1;
	return 0;
}

static void check_envelope(const struct json_scan *scan)
{
	if (!scan->envelope)
		return;
	json_error_t error;
	struct problem problem = {.code = PROBLEM_NONE};
	json_t *root = json_loadb(scan->envelope, scan->envelope_length,
	                          JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	json_t *tree = json_envelope_read(scan, &problem);
	if (root != NULL)
		expect(json_equal(root, tree));
	else if (json_error_code(&error) == json_error_duplicate_key)
		expect(tree == NULL && problem.code == PROBLEM_DUPLICATE_KEY);
	else
		expect(json_error_code(&error) == json_error_null_character ||
		       json_error_code(&error) == json_error_null_byte_in_key);
	json_decref(root);
	json_decref(tree);
}

static void check_careful_reader(const char *text, size_t length)
{
	json_error_t error, other;
	json_t *root = json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	json_t *tree = attn_model_json_parse(text, length, &other);
	bool deep = root == NULL && json_error_code(&error) == json_error_stack_overflow;
	expect(deep || (tree == NULL) == (root == NULL));
	expect(tree == NULL || json_equal(root, tree));
	expect(tree != NULL || (other.text[0] != '\0' && other.position <= (int)length));
	json_decref(root);
	json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_scan plain, scan;
	struct problem problem = {.code = PROBLEM_NONE};
	const char *text = (const char *)data;
	if (memchr(text, 0, size) == NULL)
		check_careful_reader(text, size);
	bool whole = json_scan(text, size, NULL, 0, &limits, NULL, &plain, &problem);
	bool json = whole && problem.code != PROBLEM_NOT_FINITE;
	int wanted = oracle(text, size);
	if (wanted >= 0 && problem.code != PROBLEM_TOO_DEEP)
		expect(json == (wanted == 1));
	if (json)
		check_envelope(&plain);
	json_scan_clear(&plain);

	struct problem second = {.code = PROBLEM_NONE};
	bool same =
	    json_scan(text, size, rules, sizeof(rules) / sizeof(rules[0]), &limits, NULL, &scan, &second);
	expect(same == whole);
	if (same && second.code == PROBLEM_NONE)
		check_envelope(&scan);
	json_scan_clear(&scan);
	return 0;
}
