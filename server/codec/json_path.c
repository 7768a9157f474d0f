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

/* One step with its leading slash; '~' and '/' in names are ~0 and ~1. */
static size_t print_step(const struct json_step *step, char *out)
{
	if (!step->member)
		return (size_t)sprintf(out, "/%zu", step->index);
	size_t length = 0;
	out[length++] = '/';
	for (const char *c = step->name; *c != '\0'; c++) {
		if (*c == '~' || *c == '/') {
			out[length++] = '~';
			out[length++] = *c == '~' ? '0' : '1';
		} else {
			out[length++] = *c;
		}
	}
	return length;
}

void json_path_print(const struct json_path *path, char out[JSON_POINTER_MAX])
{
	char step[2 * JSON_NAME_MAX + 2];
	size_t length = 0;
	for (size_t i = 0; i < path->depth && path->steps[i].begun; i++) {
		size_t more = print_step(&path->steps[i], step);
		if (length + more >= JSON_POINTER_MAX)
			break;
		memcpy(out + length, step, more);
		length += more;
	}
	out[length] = '\0';
}
