#include "model_json.h"

#include "error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (64 << 20)

static attn_status json_read(int fd, json_t **out, attn_error *err)
{
	struct stat info;
	if (fstat(fd, &info) != 0)
		return attn_error_set(err, ATTN_FILE, "%m");
	if (!S_ISREG(info.st_mode))
		return attn_error_set(err, ATTN_FILE, "not a regular file");
	if (info.st_size > FILE_MAX)
		return attn_error_set(err, ATTN_FORMAT, "%lld bytes are over the limit of %d",
		                      (long long)info.st_size, FILE_MAX);
	json_error_t error;
	json_t *root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return attn_error_set(err, ATTN_FORMAT, "line %d, column %d: %s", error.line, error.column,
		                      error.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return attn_error_set(err, ATTN_FORMAT, "not a JSON object");
	}
	*out = root;
	return ATTN_OK;
}

attn_status attn_model_json_load(const char *path, json_t **out, attn_error *err)
{
	attn_status status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is opened at once, and refused */
	if (fd < 0) {
		status = attn_error_set(err, ATTN_FILE, "%m");
	} else {
		status = json_read(fd, out, err);
		close(fd);
	}
	if (status != ATTN_OK)
		attn_error_prefix(err, path);
	return status;
}
