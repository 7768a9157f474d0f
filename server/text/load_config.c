#include "text/load_config.h"

#include "codec/json_envelope.h"
#include "codec/json_scan.h"
#include "codec/json_value.h"
#include "codec/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)64 << 20)

attn_status load_failed(attn_error *err, attn_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(err->message, sizeof err->message, format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof err->message)
		err->message[utf8_cut(err->message, sizeof err->message - 1)] = '\0';
	err->status = status;
	return status;
}

attn_status load_no_memory(attn_error *err)
{
	return load_failed(err, ATTN_MEMORY, "out of memory");
}

/* ---- members */

static const json_t *member(const json_t *config, const char *key)
{
	const json_t *value = json_object_get(config, key);
	return json_is_null(value) ? NULL : value;
}

attn_status load_flag(const json_t *config, const char *key, bool fallback, bool *out, attn_error *err)
{
	const json_t *value = member(config, key);
	*out = value == NULL ? fallback : json_is_true(value);
	if (value != NULL && !json_is_boolean(value))
		return load_failed(err, ATTN_CONFIG, "%s is %s, true or false is expected", key,
		                   json_value_kind(value));
	return ATTN_OK;
}

attn_status load_string(const json_t *config, const char *key, const char *fallback, const char **out,
                        attn_error *err)
{
	const json_t *value = member(config, key);
	*out = value == NULL ? fallback : json_string_value(value);
	if (value != NULL && *out == NULL)
		return load_failed(err, ATTN_CONFIG, "%s is %s, a string is expected", key,
		                   json_value_kind(value));
	return ATTN_OK;
}

attn_status load_count(const json_t *config, const char *key, size_t fallback, size_t most, size_t *out,
                       attn_error *err)
{
	const json_t *value = member(config, key);
	struct problem problem = {.code = PROBLEM_NONE};
	int64_t number = (int64_t)fallback;
	if (value != NULL && !json_value_integer(value, "", 0, (int64_t)most, &number, &problem))
		return load_failed(err, ATTN_CONFIG, "%s: %s", key, problem.detail);
	*out = (size_t)number;
	return ATTN_OK;
}

attn_status load_type(const json_t *config, const char *what, const char **out, attn_error *err)
{
	*out = json_string_value(json_object_get(config, "type"));
	if (*out == NULL)
		return load_failed(err, ATTN_CONFIG, "a %s has no type", what);
	return ATTN_OK;
}

size_t load_choice(const char *word, const char *const *words)
{
	size_t index = 0;
	while (words[index] != NULL && strcmp(words[index], word) != 0)
		index++;
	return index;
}

/* ---- files */

static attn_status read_all(int fd, const char *name, char **out, size_t *length, attn_error *err)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
		return load_failed(err, ATTN_FILE, "%s: not a regular file", name);
	if ((size_t)facts.st_size > FILE_MAX)
		return load_failed(err, ATTN_FORMAT, "%s: %lld bytes are over the limit of %zu", name,
		                   (long long)facts.st_size, FILE_MAX);
	size_t size = (size_t)facts.st_size, got = 0;
	char *text = malloc(size + 1);
	if (text == NULL)
		return load_no_memory(err);
	ssize_t more = 1;
	while (got < size && (more = read(fd, text + got, size - got)) > 0)
		got += (size_t)more;
	if (more < 0) {
		free(text);
		return load_failed(err, ATTN_FILE, "%s: %m", name);
	}
	text[got] = '\0';
	*out = text;
	*length = got;
	return ATTN_OK;
}

attn_status load_file(const char *directory, const char *name, char **out, size_t *length, attn_error *err)
{
	char *path = NULL;
	*out = NULL;
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return load_no_memory(err);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is opened at once, and refused */
	free(path);
	if (fd < 0)
		return errno == ENOENT ? ATTN_OK : load_failed(err, ATTN_FILE, "%s: %m", name);
	attn_status status = read_all(fd, name, out, length, err);
	close(fd);
	return status;
}

attn_status load_json_text(const char *name, const char *text, size_t length, json_t **out, attn_error *err)
{
	const struct json_limits limits = {.elements = 0, .envelope = SIZE_MAX / 2};
	struct problem problem = {.code = PROBLEM_NONE};
	struct json_scan scan;
	json_t *root = NULL;
	if (json_scan(text, length, NULL, 0, &limits, NULL, &scan, &problem) && problem.code == PROBLEM_NONE)
		root = json_envelope_read(&scan, &problem);
	json_scan_clear(&scan);
	if (root != NULL && !json_is_object(root))
		problem_set(&problem, PROBLEM_WRONG_TYPE, "", "not a JSON object");
	if (problem.code == PROBLEM_NONE) {
		*out = root;
		return ATTN_OK;
	}
	json_decref(root);
	if (problem.code == PROBLEM_MEMORY)
		return load_no_memory(err);
	return load_failed(err, ATTN_FORMAT, "%s: %s%s%s", name, problem.pointer,
	                   problem.pointer[0] != '\0' ? ": " : "", problem.detail);
}

attn_status load_json(const char *directory, const char *name, json_t **out, attn_error *err)
{
	char *text;
	size_t length;
	*out = NULL;
	attn_status status = load_file(directory, name, &text, &length, err);
	if (status == ATTN_OK && text != NULL)
		status = load_json_text(name, text, length, out, err);
	free(text);
	return status;
}
