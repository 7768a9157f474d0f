#include "options.h"

#include "codec/nearest_name.h"
#include "options_table.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Where a value came from; a higher layer wins. */
enum layer { LAYER_DEFAULT, LAYER_FILE, LAYER_ENVIRONMENT, LAYER_FLAG };

struct reading {
	struct options *options;
	enum layer set_by[OPTION_COUNT];
	char *error;
	size_t error_size;
	bool failed; /* the first error is the one told */
};

/* The file while it is read. */
struct file_reading {
	struct reading *reading;
	FILE *file;
	const char *path;
	unsigned line;
	bool seen[OPTION_COUNT];
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reading *reading, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (!reading->failed)
		vsnprintf(reading->error, reading->error_size, format, arguments);
	va_end(arguments);
	reading->failed = true;
	return false;
}

/* Every value is checked, one that a higher layer has set already is not stored. */
static bool take(struct reading *reading, const struct option_row *row, const char *text, enum layer layer,
                 const char *origin)
{
	size_t index = (size_t)(row - option_rows);
	bool store = layer >= reading->set_by[index];
	if (reading->failed ||
	    !option_take(row, text, origin, store, reading->options, reading->error, reading->error_size)) {
		reading->failed = true;
		return false;
	}
	if (store)
		reading->set_by[index] = layer;
	return true;
}

static bool take_defaults(struct reading *reading)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_rows[i];
		if (row->fallback != NULL && !take(reading, row, row->fallback, LAYER_DEFAULT, row->name))
			return false;
	}
	return true;
}

/* ---- flags */

static bool fail_unknown_flag(struct reading *reading, const char *argument)
{
	const char *names[OPTION_COUNT];
	for (size_t i = 0; i < OPTION_COUNT; i++)
		names[i] = option_rows[i].name;
	char name[OPTION_NAME_MAX];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
	const char *nearest = nearest_name(name, names, OPTION_COUNT);
	if (nearest == NULL)
		return fail(reading, "%s: no such flag; --help lists them", argument);
	return fail(reading, "%s: no such flag; --%s is the nearest that there is", argument, nearest);
}

/* Takes the flag argv[*index], and its value when that is the next argument. */
static bool take_flag(struct reading *reading, char **argv, int *index)
{
	const char *argument = argv[*index];
	if (strncmp(argument, "--", 2) != 0 || argument[2] == '\0')
		return fail(reading, "%s: not a flag; --help lists them", argument);
	size_t length = strcspn(argument + 2, "=");
	char name[OPTION_NAME_MAX] = "", origin[OPTION_NAME_MAX + 2];
	if (length < sizeof name)
		memcpy(name, argument + 2, length);
	const struct option_row *row = option_find(name);
	if (row == NULL)
		return fail_unknown_flag(reading, argument);
	snprintf(origin, sizeof origin, "--%s", name);
	const char *value = argument[2 + length] == '=' ? argument + 3 + length : NULL;
	if (row->type == OPTION_SWITCH && value != NULL)
		return fail(reading, "%s: takes no value", origin);
	if (row->type != OPTION_SWITCH && value == NULL) {
		value = argv[*index + 1];
		if (value == NULL)
			return fail(reading, "%s: needs a value (%s)", origin, row->value);
		++*index;
	}
	return take(reading, row, value, LAYER_FLAG, origin);
}

/* ---- environment */

/* Variables that begin with ATTND_ and are no setting are left alone: container platforms make such names
 * from the name of a service. */
static bool take_environment(struct reading *reading, char **envp)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		char variable[OPTION_NAME_MAX];
		option_variable(&option_rows[i], variable);
		size_t length = strlen(variable);
		for (char **entry = envp; *entry != NULL && option_rows[i].place != OPTION_FLAG; entry++) {
			if (strncmp(*entry, variable, length) != 0 || (*entry)[length] != '=')
				continue;
			if (!take(reading, &option_rows[i], *entry + length + 1, LAYER_ENVIRONMENT, variable))
				return false;
		}
	}
	return true;
}

/* ---- file */

static bool fail_unknown_key(struct file_reading *file, const char *key)
{
	char keys[OPTION_COUNT][OPTION_NAME_MAX];
	const char *names[OPTION_COUNT];
	size_t count = 0;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (option_rows[i].place != OPTION_EVERYWHERE)
			continue;
		option_key(&option_rows[i], keys[count]);
		names[count] = keys[count];
		count++;
	}
	const char *nearest = nearest_name(key, names, count);
	if (nearest == NULL)
		return fail(file->reading, "%s:%u: there is no key \"%s\"", file->path, file->line, key);
	return fail(file->reading, "%s:%u: there is no key \"%s\"; \"%s\" is the nearest that there is",
	            file->path, file->line, key, nearest);
}

static const struct option_row *find_key(const char *key)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		char name[OPTION_NAME_MAX];
		option_key(&option_rows[i], name);
		if (option_rows[i].place == OPTION_EVERYWHERE && strcmp(name, key) == 0)
			return &option_rows[i];
	}
	return NULL;
}

/* A key of the file: inih's handler, 1 when all is well. */
static int take_key(void *user, const char *section, const char *key, const char *value)
{
	struct file_reading *file = user;
	(void)section; /* read_line lets none through */
	const struct option_row *row = find_key(key);
	if (row == NULL)
		return fail_unknown_key(file, key);
	if (file->seen[row - option_rows])
		return fail(file->reading, "%s:%u: %s is given a second time", file->path, file->line, key);
	file->seen[row - option_rows] = true;
	char *origin = NULL;
	if (asprintf(&origin, "%s:%u: %s", file->path, file->line, key) < 0)
		return fail(file->reading, "%s: out of memory", file->path);
	bool taken = take(file->reading, row, value, LAYER_FILE, origin);
	free(origin);
	return taken;
}

/* fgets that counts lines and refuses those that do not fit or hold a byte of value 0, behind which their
 * rest would not be seen. NULL at the end of the file or when it is refused. */
static char *get_line(struct file_reading *file, char *line, int size)
{
	int length = 0, byte = 0;
	while (byte != '\n' && length < size - 1 && (byte = fgetc(file->file)) > '\0')
		line[length++] = (char)byte;
	line[length] = '\0';
	if (length == 0 && byte == EOF)
		return NULL;
	file->line++;
	if (byte == '\0')
		fail(file->reading, "%s:%u: a byte of value 0", file->path, file->line);
	else if (byte != '\n' && byte != EOF)
		fail(file->reading, "%s:%u: the line is longer than %d bytes", file->path, file->line,
		     size - 2);
	return file->reading->failed ? NULL : line;
}

/* inih's reader: lines, but no sections. */
static char *read_line(char *line, int size, void *stream)
{
	struct file_reading *file = stream;
	if (file->reading->failed || get_line(file, line, size) == NULL)
		return NULL;
	if (line[strspn(line, " \t")] == '[') {
		fail(file->reading, "%s:%u: a section; keys stand without", file->path, file->line);
		return NULL;
	}
	return line;
}

static bool take_file(struct reading *reading, const char *path)
{
	FILE *stream = fopen(path, "re");
	if (stream == NULL)
		return fail(reading, "%s: %s", path, strerror(errno));
	struct file_reading file = {.reading = reading, .file = stream, .path = path};
	int wrong = ini_parse_stream(read_line, &file, take_key, &file);
	if (ferror(stream))
		fail(reading, "%s: %s", path, strerror(errno));
	else if (wrong > 0)
		fail(reading, "%s:%d: not `key = value`", path, wrong);
	else if (wrong < 0)
		fail(reading, "%s: out of memory", path);
	fclose(stream);
	return !reading->failed;
}

/* ---- all of it */

enum options_result options_read(struct options *options, int argc, char **argv, char **envp, char *error,
                                 size_t error_size)
{
	memset(options, 0, sizeof *options);
	struct reading reading = {.options = options, .error = error, .error_size = error_size};
	bool good = take_defaults(&reading);
	for (int i = 1; good && i < argc; i++)
		good = take_flag(&reading, argv, &i);
	if (good && !options->help && !options->version)
		good = take_environment(&reading, envp) &&
		       (options->config == NULL || take_file(&reading, options->config));
	if (good)
		return OPTIONS_OK;
	options_clear(options);
	return OPTIONS_BAD;
}

void options_clear(struct options *options)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		enum option_type type = option_rows[i].type;
		if (type != OPTION_SIZE && type != OPTION_MS && type != OPTION_SWITCH)
			free(*(char **)((char *)options + option_rows[i].offset));
	}
	memset(options, 0, sizeof *options);
}

static void print_row(FILE *out, const struct option_row *row)
{
	char left[OPTION_NAME_MAX + 16];
	snprintf(left, sizeof left, "--%s%s%s", row->name, row->value ? " " : "",
	         row->value ? row->value : "");
	fprintf(out, "  %-28s %s", left, row->help);
	const char *open = " (";
	for (size_t i = 0; row->choices != NULL && row->choices(i) != NULL; i++) {
		fprintf(out, "%s%s", open, row->choices(i));
		open = ", ";
	}
	if (row->fallback != NULL)
		fprintf(out, "%sdefault %s)", row->choices != NULL ? "; " : " (", row->fallback);
	fputc('\n', out);
}

void options_print_help(FILE *out)
{
	fputs("Usage: attnd [--flag value | --flag=value]...\n\n", out);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		print_row(out, &option_rows[i]);
	fputs("\nBYTES and COUNT may end in K, M or G (1024, 1024^2, 1024^3); MS are milliseconds.\n"
	      "A flag such as --max-body is also ATTND_MAX_BODY in the environment and max_body in the file "
	      "that\n"
	      "--config names (a section is an error there). A flag wins over the environment, the "
	      "environment over\n"
	      "the file, the file over the default.\n",
	      out);
}
