#include "codec/json_path.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool json_path_open(struct json_path *path, bool object)
{
	if (path->depth == JSON_MAX_DEPTH)
		return false;
	struct json_step *step = &path->steps[path->depth++];
	step->member = object;
	step->begun = false;
	step->index = 0;
	step->name[0] = '\0';
	return true;
}

void json_path_close(struct json_path *path)
{
	assert(path->depth > 0);
	path->depth--;
}

struct json_step *json_path_last(struct json_path *path)
{
	assert(path->depth > 0);
	return &path->steps[path->depth - 1];
}

/* Appends a slash and the name; what does not fit is left out. Returns the length after. */
static size_t append_name(const char *name, char out[JSON_POINTER_MAX], size_t length)
{
	if (length + 1 < JSON_POINTER_MAX)
		out[length++] = '/';
	for (const char *c = name; *c != '\0' && length + 2 < JSON_POINTER_MAX; c++) {
		if (*c == '~' || *c == '/') {
			out[length++] = '~';
			out[length++] = *c == '~' ? '0' : '1';
		} else {
			out[length++] = *c;
		}
	}
	return length;
}

static size_t append_index(size_t index, char out[JSON_POINTER_MAX], size_t length)
{
	size_t room = JSON_POINTER_MAX - length;
	size_t more = (size_t)snprintf(out + length, room, "/%zu", index);
	return more < room ? length + more : length;
}

void json_path_print(const struct json_path *path, char out[JSON_POINTER_MAX])
{
	size_t length = 0;
	for (size_t i = 0; i < path->depth && path->steps[i].begun; i++) {
		const struct json_step *step = &path->steps[i];
		length = step->member ? append_name(step->name, out, length)
		                      : append_index(step->index, out, length);
	}
	out[length] = '\0';
}

void json_pointer_member(const char *parent, const char *name, char out[JSON_POINTER_MAX])
{
	size_t length = strlen(parent);
	assert(length < JSON_POINTER_MAX);
	memcpy(out, parent, length);
	out[append_name(name, out, length)] = '\0';
}

void json_pointer_element(const char *parent, size_t index, char out[JSON_POINTER_MAX])
{
	size_t length = strnlen(parent, JSON_POINTER_MAX - 1);
	memcpy(out, parent, length);
	snprintf(out + length, JSON_POINTER_MAX - length, "/%zu", index);
}
