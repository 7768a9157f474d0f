#include "model_room.h"

#include "error.h"
#include "rounding.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after `word` and white space at the start of a line of the file; false when there is none. An
 * empty word is before the first number. */
static bool number_read(const char *folder, const char *name, const char *word, size_t *out)
{
	char path[PATH_MAX], line[256];
	bool found = false;
	unsigned long long number = 0;
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strncmp(line, word, strlen(word)) == 0 &&
		        sscanf(line + strlen(word), "%llu", &number) == 1;
	fclose(file);
	*out = (size_t)number;
	return found;
}

/* What a limit leaves beside what is used and is not a mere copy of files. */
static size_t left(size_t limit, size_t used, size_t cache)
{
	used -= attn_smaller(used, cache);
	return limit - attn_smaller(limit, used);
}

/* Of one group, whichever version's files it has. */
static size_t group_room(const char *folder)
{
	size_t limit = 0, used = 0, cache = 0, shared = 0;
	if (number_read(folder, "memory.max", "", &limit)) {
		number_read(folder, "memory.current", "", &used);
		number_read(folder, "memory.stat", "file ", &cache);
	} else if (number_read(folder, "memory.limit_in_bytes", "", &limit)) {
		number_read(folder, "memory.usage_in_bytes", "", &used);
		number_read(folder, "memory.stat", "total_cache ", &cache);
	} else {
		return SIZE_MAX;
	}
	number_read(folder, "memory.stat", "shmem ", &shared);
	return left(limit, used, cache - attn_smaller(cache, shared));
}

/* Of the group at base/path and of each above it, base itself included. */
static size_t branch_room(const char *base, const char *path)
{
	char folder[PATH_MAX];
	size_t room = SIZE_MAX, root = strlen(base);
	if (snprintf(folder, sizeof(folder), "%s%s", base, path) >= (int)sizeof(folder))
		return SIZE_MAX;
	for (;;) {
		room = attn_smaller(room, group_room(folder));
		char *slash = strrchr(folder, '/');
		if (!slash || slash < folder + root)
			return room;
		*slash = '\0';
	}
}

/* Of one line of membership: "4:memory:/path", or "0::/path" of version 2. */
static size_t line_room(char *line, const char *root)
{
	char base[PATH_MAX];
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return SIZE_MAX;
	*path++ = '\0';
	controllers++;
	if (*controllers != '\0' && strcmp(controllers, "memory") != 0)
		return SIZE_MAX;
	const char *slash = *controllers == '\0' ? "" : "/";
	if (snprintf(base, sizeof(base), "%s/sys/fs/cgroup%s%s", root, slash, controllers) >=
	    (int)sizeof(base))
		return SIZE_MAX;
	return branch_room(base, path);
}

static size_t groups_room(const char *root)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= (int)sizeof(path))
		return SIZE_MAX;
	FILE *file = fopen(path, "re");
	if (!file)
		return SIZE_MAX;
	size_t room = SIZE_MAX, size = 0;
	char *line = NULL;
	while (getline(&line, &size, file) > 0)
		room = attn_smaller(room, line_room(line, root));
	free(line);
	fclose(file);
	return room;
}

size_t attn_model_room(const char *root)
{
	size_t kilobytes, room = SIZE_MAX;
	if (number_read(root, "proc/meminfo", "MemAvailable:", &kilobytes) &&
	    !attn_size_mul(kilobytes, 1024, &room))
		room = SIZE_MAX;
	return attn_smaller(room, groups_room(root));
}

attn_status attn_model_room_check(size_t numbers, attn_error *err)
{
	size_t bytes = SIZE_MAX, room = attn_model_room("");
	if (!attn_size_mul(numbers, sizeof(float), &bytes))
		bytes = SIZE_MAX;
	if (bytes <= room)
		return ATTN_OK;
	return attn_error_set(err, ATTN_MEMORY, "the model takes %zu bytes of memory, there are %zu", bytes,
	                      room);
}
