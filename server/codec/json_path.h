/*
 * json_path.h - where in a JSON text a walk stands, and that place as a JSON pointer (RFC 6901).
 *
 * Plain data, bounded: one step for each container that is open. One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_PATH_H
#define ATTND_CODEC_JSON_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Containers that may stand in one another. */
#define JSON_MAX_DEPTH 64
/* Names are kept to this many bytes, terminator included; longer than any name that a route knows. */
#define JSON_NAME_MAX 48
/* Room for a printed pointer, terminator included; what is longer is cut. */
#define JSON_POINTER_MAX 192

struct json_step {
	bool member; /* of an object: `name` counts; else of an array: `index` does */
	bool begun;  /* a member or an element has been met */
	size_t index;
	char name[JSON_NAME_MAX]; /* escapes decoded, cut to fit */
};

struct json_path {
	size_t depth;
	struct json_step steps[JSON_MAX_DEPTH];
};

/* Opens a container whose members have names, or indices; false when JSON_MAX_DEPTH are open. */
bool json_path_open(struct json_path *path, bool object);
void json_path_close(struct json_path *path);
/* The step of the innermost open container; there must be one. */
struct json_step *json_path_last(struct json_path *path);

void json_path_print(const struct json_path *path, char out[JSON_POINTER_MAX]);

/* The pointer of a member of what `parent` points at: '~' and '/' in name are ~0 and ~1; cut to fit. */
void json_pointer_member(const char *parent, const char *name, char out[JSON_POINTER_MAX]);
/* The pointer of an element of the list that `parent` points at; cut to fit. */
void json_pointer_element(const char *parent, size_t index, char out[JSON_POINTER_MAX]);

#endif
