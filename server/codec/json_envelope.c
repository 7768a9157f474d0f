#include "codec/json_envelope.h"

/* A key stands twice. The walk over the envelope as far as the second one ends in its place. */
static void set_duplicate(const struct json_scan *scan, size_t position, struct problem *problem)
{
	const struct json_limits limits = {.elements = 0, .envelope = JSON_ENVELOPE_MAX};
	struct problem there = {.code = PROBLEM_NONE};
	struct json_scan copy;
	json_scan(scan->envelope, position, NULL, 0, &limits, &copy, &there);
	json_scan_clear(&copy);
	problem_set(problem, PROBLEM_DUPLICATE_KEY, there.pointer, "an object has this key twice");
}

json_t *json_envelope_read(const struct json_scan *scan, struct problem *problem)
{
	json_error_t error;
	json_t *envelope = json_loadb(scan->envelope, scan->envelope_length,
	                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (envelope != NULL)
		return envelope;
	if (json_error_code(&error) == json_error_duplicate_key)
		set_duplicate(scan, (size_t)error.position, problem);
	else
		problem_set_status(problem, ATTN_MEMORY);
	return NULL;
}
