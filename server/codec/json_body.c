#include "codec/json_body.h"

#include "codec/json_envelope.h"
#include "codec/json_path.h"

#include <string.h>

/* A field that is over the limit of the envelope because the route does not know it is an unknown field. */
static void blame_unknown_field(body_field_known *known, struct problem *problem)
{
	struct problem unknown = {.code = PROBLEM_NONE};
	char name[JSON_NAME_MAX];
	size_t length = strcspn(problem->pointer + 1, "/");
	if (problem->code != PROBLEM_BODY_TOO_LARGE || problem->pointer[0] != '/' || length >= sizeof(name))
		return;
	memcpy(name, problem->pointer + 1, length);
	name[length] = '\0';
	if (!known(name, &unknown))
		*problem = unknown;
}

json_t *json_body_read(const char *body, size_t length, const struct json_rule *places, size_t place_count,
                       size_t elements, body_field_known *known, attn_executor *executor,
                       struct json_scan *scan, struct problem *problem)
{
	const struct json_limits bounds = {.elements = elements, .envelope = JSON_ENVELOPE_MAX};
	if (!json_scan(body, length, places, place_count, &bounds, executor, scan, problem))
		return NULL;
	if (!scan->object)
		problem_note(problem, PROBLEM_NOT_AN_OBJECT, "", "the body must be a JSON object");
	if (!scan->object || problem->code == PROBLEM_NOT_FINITE || problem->code == PROBLEM_NUL_ESCAPE)
		return NULL;
	if (scan->envelope == NULL) {
		blame_unknown_field(known, problem);
		return NULL;
	}
	struct problem duplicate = {.code = PROBLEM_NONE};
	json_t *envelope = json_envelope_read(scan, &duplicate);
	if (envelope == NULL && problem->code != PROBLEM_DUPLICATE_KEY)
		*problem = duplicate;
	return envelope;
}
