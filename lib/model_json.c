#include "model_json.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (64 << 20)

/* ---- text */

/* `["xxx...",` and a new line, then the text, then `]`. */
struct feed {
	const char *text;
	size_t length;
	size_t pad;   /* number of x */
	size_t given; /* bytes of all this */
};

#define BEFORE_PAD 2 /* [" */
#define AFTER_PAD 3  /* ", and the new line */

static size_t feed_prefix(const struct feed *feed)
{
	return BEFORE_PAD + feed->pad + AFTER_PAD;
}

static char feed_prefix_byte(const struct feed *feed)
{
	if (feed->given < BEFORE_PAD)
		return "[\""[feed->given];
	if (feed->given < BEFORE_PAD + feed->pad)
		return 'x';
	return "\",\n"[feed->given - BEFORE_PAD - feed->pad];
}

/* jansson's reader. */
static size_t feed_give(void *buffer, size_t room, void *data)
{
	struct feed *feed = data;
	size_t count = 1, prefix = feed_prefix(feed);
	if (feed->given < prefix) {
		if (errno == ENOMEM)
			return (size_t)-1;
		*(char *)buffer = feed_prefix_byte(feed);
	} else if (feed->given < prefix + feed->length) {
		size_t left = prefix + feed->length - feed->given;
		count = left < room ? left : room;
		memcpy(buffer, feed->text + (feed->given - prefix), count);
	} else if (feed->given == prefix + feed->length) {
		*(char *)buffer = ']';
	} else {
		return 0;
	}
	feed->given += count;
	return count;
}

/* At least the longest word: the most bytes from one quote, start or end to the next. jansson's buffer, whose
 * sizes are powers of two, is not enlarged for the last quote of so long a string, after which nothing is
 * asked for. */
static size_t longest_word(const char *text, size_t length)
{
	size_t longest = 0, last = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == '"')
			last = i;
		longest = i - last > longest ? i - last : longest;
	}
	size_t pad = longest + 2; /* its last quote, or the byte that ends a number */
	return ((pad + 2) & (pad + 1)) == 0 ? pad + 1 : pad;
}

/* The error is told as one of the text alone. */
static void error_shift(json_error_t *error, const struct feed *feed)
{
	int prefix = (int)feed_prefix(feed);
	error->line--;
	error->position -= prefix;
	if (error->position <= (int)feed->length)
		return;
	error->position = (int)feed->length;
	snprintf(error->text, sizeof(error->text) - 1, "the text ends too early, or more follows its value");
}

json_t *attn_model_json_parse(const char *text, size_t length, json_error_t *error)
{
	struct feed feed = {.text = text, .length = length, .pad = longest_word(text, length)};
	errno = 0;
	json_t *both = json_load_callback(feed_give, &feed, JSON_REJECT_DUPLICATES, error);
	if (both == NULL && errno == ENOMEM) {
		error->text[0] = '\0';
		return NULL;
	}
	if (both == NULL || json_array_size(both) != 2) {
		json_decref(both);
		error_shift(error, &feed);
		return NULL;
	}
	json_t *value = json_incref(json_array_get(both, 1));
	json_decref(both);
	return value;
}

/* ---- files */

static attn_status text_read(int fd, size_t size, char **out, attn_error *err)
{
	char *text = malloc(size + 1);
	size_t length = 0;
	ssize_t got = 1;
	if (text == NULL)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	while (length < size && (got = read(fd, text + length, size - length)) > 0)
		length += (size_t)got;
	if (got <= 0 && size > 0) {
		free(text);
		return attn_error_set(err, ATTN_FILE, got < 0 ? "%m" : "the file has become shorter");
	}
	*out = text;
	return ATTN_OK;
}

static attn_status text_parse(const char *text, size_t length, json_t **out, attn_error *err)
{
	json_error_t error;
	json_t *root = attn_model_json_parse(text, length, &error);
	if (root == NULL && error.text[0] == '\0')
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	if (root == NULL)
		return attn_error_set(err, ATTN_FORMAT, "line %d, column %d: %s", error.line, error.column,
		                      error.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return attn_error_set(err, ATTN_FORMAT, "not a JSON object");
	}
	*out = root;
	return ATTN_OK;
}

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
	char *text = NULL;
	attn_status status = text_read(fd, (size_t)info.st_size, &text, err);
	if (status == ATTN_OK)
		status = text_parse(text, (size_t)info.st_size, out, err);
	free(text);
	return status;
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
