#include "codec/json_envelope.h"

#include "codec/json_text.h"

#include <stdlib.h>
#include <string.h>

/* The tree is built here and not by the JSON library's reader: where memory is refused to a word that it
 * reads, that one goes on without the bytes that had no room. The scan has checked the grammar and left no
 * white space. */
struct building {
	struct json_cursor cursor;
	const char *begin;
	char *names;      /* decoded names of the open objects, then one string */
	size_t used;      /* by the names of open objects */
	size_t room;      /* of names */
	size_t duplicate; /* bytes up to the end of a name that stands again, or 0 */
};

/* The string at the cursor, decoded behind the names of the open objects. */
static char *take_text(struct building *building)
{
	char *text = building->names + building->used;
	bool nul = false; /* which the scan has noted */
	json_take_string(&building->cursor, text, building->room - building->used, &nul);
	return text;
}

static json_t *build_value(struct building *building);

/* false when the name is there already, or for want of memory. */
static bool build_member(struct building *building, json_t *object)
{
	const char *name = take_text(building);
	size_t used = building->used;
	if (json_object_get(object, name) != NULL) {
		building->duplicate = (size_t)(building->cursor.at - building->begin);
		return false;
	}
	building->used += strlen(name) + 1;
	building->cursor.at++; /* the colon */
	json_t *value = build_value(building);
	building->used = used;
	return value != NULL && json_object_set_new_nocheck(object, name, value) == 0;
}

static bool build_element(struct building *building, json_t *array)
{
	json_t *value = build_value(building);
	return value != NULL && json_array_append_new(array, value) == 0;
}

/* An object or array, from its bracket to past the other one. */
static json_t *build_container(struct building *building, bool object)
{
	json_t *container = object ? json_object() : json_array();
	const char close = object ? '}' : ']';
	bool good = container != NULL;
	building->cursor.at++;
	while (good && json_peek(&building->cursor) != close) {
		if (json_peek(&building->cursor) == ',')
			building->cursor.at++;
		good = object ? build_member(building, container) : build_element(building, container);
	}
	if (good) {
		building->cursor.at++;
		return container;
	}
	json_decref(container);
	return NULL;
}

/* An integer within int64, or a real: those beyond have a fraction in the envelope. */
static json_t *build_number(struct building *building)
{
	char *end;
	const char *text = building->cursor.at;
	size_t length = strspn(text, "+-.0123456789Ee");
	building->cursor.at += length;
	if (strspn(text, "-0123456789") == length) /* not one that looks behind the number */
		return json_integer(strtoll(text, &end, 10));
	return json_real(strtod(text, &end));
}

/* The value at the cursor; NULL with duplicate set, or for want of memory. */
static json_t *build_value(struct building *building)
{
	switch (json_peek(&building->cursor)) {
	case '{':
		return build_container(building, true);
	case '[':
		return build_container(building, false);
	case '"':
		return json_string_nocheck(take_text(building));
	default:
		break;
	}
	if (json_take_word(&building->cursor, "true"))
		return json_true();
	if (json_take_word(&building->cursor, "false"))
		return json_false();
	return json_take_word(&building->cursor, "null") ? json_null() : build_number(building);
}

/* A key stands twice. The walk over the envelope as far as the second one ends in its place. */
static void set_duplicate(const struct json_scan *scan, size_t position, struct problem *problem)
{
	const struct json_limits limits = {.elements = 0, .envelope = JSON_ENVELOPE_MAX};
	struct problem there = {.code = PROBLEM_NONE};
	struct json_scan copy;
	json_scan(scan->envelope, position, NULL, 0, &limits, NULL, &copy, &there);
	json_scan_clear(&copy);
	if (there.code == PROBLEM_MEMORY)
		problem_set_status(problem, ATTN_MEMORY);
	problem_set(problem, PROBLEM_DUPLICATE_KEY, there.pointer, "an object has this key twice");
}

json_t *json_envelope_read(const struct json_scan *scan, struct problem *problem)
{
	json_t *envelope = NULL;
	struct building building = {.cursor = {scan->envelope, scan->envelope + scan->envelope_length},
	                            .begin = scan->envelope,
	                            .names = malloc(scan->envelope_length + 1),
	                            .room = scan->envelope_length + 1};
	if (building.names != NULL)
		envelope = build_value(&building);
	free(building.names);
	if (building.duplicate > 0)
		set_duplicate(scan, building.duplicate, problem);
	else if (envelope == NULL)
		problem_set_status(problem, ATTN_MEMORY);
	return envelope;
}
