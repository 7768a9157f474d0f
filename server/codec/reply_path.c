#include "codec/reply_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_place(const char *part)
{
	return *part >= '0' && *part <= '9';
}

/* Bytes that two paths share from their start, to the end of a group. */
static size_t shared_groups(const char *before, const char *path)
{
	size_t shared = 0;
	for (size_t i = 0; before[i] != '\0' && before[i] == path[i]; i++) {
		if (path[i] == '.')
			shared = i + 1;
	}
	return shared;
}

/* A bracket for each group that is open, the innermost first. */
void reply_path_leave(struct json_writer *writer, const char *before)
{
	for (size_t i = strlen(before); i > 0; i--) {
		if (before[i - 1] == '.')
			json_writer_text(writer, "%s", is_place(before + i) ? "]" : "}");
	}
}

void reply_path_write(struct json_writer *writer, const char *before, const char *path)
{
	size_t shared = shared_groups(before, path);
	reply_path_leave(writer, before + shared);
	if (*before != '\0')
		json_writer_text(writer, ",");
	const char *part = path + shared;
	for (size_t length; *part != '\0'; part += length) {
		length = strcspn(part, ".");
		if (!is_place(part))
			json_writer_text(writer, "\"%.*s\":", (int)length, part);
		if (part[length] == '.')
			json_writer_text(writer, "%s", is_place(part + ++length) ? "[" : "{");
	}
}

void reply_path_pointer(const char *path, const size_t *index, size_t rank, char out[JSON_POINTER_MAX])
{
	size_t length = (size_t)snprintf(out, JSON_POINTER_MAX, "/%s", path);
	for (size_t i = 0; i < length; i++)
		out[i] = out[i] == '.' ? '/' : out[i];
	for (size_t i = 0; i < rank; i++)
		length += (size_t)snprintf(out + length, JSON_POINTER_MAX - length, "/%zu", index[i]);
}
