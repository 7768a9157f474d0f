/*
 * Any bytes as the older tokenizer files, a name on a line of its own before each, in brackets, as in
 * "[vocab.json]": refused with a message, or a tokenizer that reads texts as one should.
 */
#include "tokenizer_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "vocab.txt",   "vocab.json",  "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
    "config.json", "spiece.model"};
#define NAMES (sizeof names / sizeof names[0])

static char folder[] = "/tmp/attnd-fuzz-XXXXXX";

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void clean(void)
{
	for (size_t i = 0; i < NAMES; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
}

static void leave(void)
{
	clean();
	rmdir(folder);
}

/* Where the name stands as a heading, or NULL. */
static const char *find_heading(const char *text, const char *end, const char *name)
{
	char heading[64];
	int length = snprintf(heading, sizeof heading, "[%s]\n", name);
	return memmem(text, (size_t)(end - text), heading, (size_t)length);
}

/* The first heading of any name from text on, or end. */
static const char *next_heading(const char *text, const char *end)
{
	const char *first = end;
	for (size_t i = 0; i < NAMES; i++) {
		const char *found = find_heading(text, first, names[i]);
		first = found != NULL ? found : first;
	}
	return first;
}

static void write_files(const char *text, const char *end)
{
	for (size_t i = 0; i < NAMES; i++) {
		char path[128];
		const char *begin = find_heading(text, end, names[i]);
		if (begin == NULL)
			continue;
		begin += strlen(names[i]) + 3;
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		FILE *file = fopen(path, "wb");
		expect(file != NULL);
		size_t length = (size_t)(next_heading(begin, end) - begin);
		expect(fwrite(begin, 1, length, file) == length);
		fclose(file);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int made;
	if (!made) {
		expect(mkdtemp(folder) != NULL);
		atexit(leave);
		made = 1;
	}
	static const char text[] = "It's caf\xC3\xA9 \xE4\xBD\xA0 7+5=<s> [MASK]";
	struct tokenizer *tokenizer = NULL;
	attn_error error = {.status = ATTN_OK};
	clean();
	write_files((const char *)data, (const char *)data + size);
	attn_status status = tokenizer_open(folder, &tokenizer, &error);
	if (status != ATTN_OK)
		expect(tokenizer == NULL && error.status == status && error.message[0] != '\0');
	if (tokenizer != NULL)
		check_tokenizer(tokenizer, text, sizeof text - 1);
	tokenizer_free(tokenizer);
	return 0;
}
