#include "codec/numbers_rows.h"

#include "codec/numbers.h"
#include "codec/numbers_avx2.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

size_t numbers_scan_row(const char **at, size_t before, const char *end, float *out, size_t count)
{
	const struct numbers_kernels *kernels = numbers_avx2();
	return kernels != NULL ? kernels->scan(at, before, end, out, count) : 0;
}

/* ---- printing */

static size_t print_each(const float *values, size_t count, char **at)
{
	char *out = *at;
	size_t done = 0;
	for (; done < count && isfinite(values[done]); done++) {
		out += number_print_shortest(values[done], out);
		*out++ = ',';
	}
	*at = out;
	return done;
}

/* The last of a row, at most eight: kernels write beyond what they print. */
static size_t print_last(const struct numbers_kernels *kernels, const float *values, size_t count, char **at)
{
	float padded[NUMBERS_PRINTED] = {0};
	char text[(NUMBERS_PRINTED + 1) * NUMBER_TEXT_MAX];
	memcpy(padded, values, count * sizeof(*values));
	const char *after = kernels->print(padded, count, text);
	if (after == NULL)
		return print_each(values, count, at);
	memcpy(*at, text, (size_t)(after - text));
	*at += after - text;
	return count;
}

size_t numbers_print_row(const float *values, size_t count, char **at)
{
	const struct numbers_kernels *kernels = numbers_avx2();
	if (kernels == NULL)
		return print_each(values, count, at);
	size_t done = 0;
	while (count - done > NUMBERS_PRINTED) {
		char *after = kernels->print(values + done, NUMBERS_PRINTED, *at);
		size_t printed = NUMBERS_PRINTED;
		if (after != NULL)
			*at = after;
		else
			printed = print_each(values + done, NUMBERS_PRINTED, at);
		done += printed;
		if (printed < NUMBERS_PRINTED)
			return done;
	}
	return done + print_last(kernels, values + done, count - done, at);
}

/* ---- marks */

static void mark_block(const char *text, struct numbers_marks *marks)
{
	*marks = (struct numbers_marks){0};
	for (int i = 0; i < NUMBERS_BLOCK; i++) {
		char c = text[i];
		bool bracket = c == '[' || c == ']' || c == '{' || c == '}' || c == '"';
		marks->commas |= (uint64_t)(c == ',') << i;
		marks->brackets |= (uint64_t)bracket << i;
		marks->comma_count += c == ',';
	}
}

void numbers_mark(const char *text, size_t blocks, struct numbers_marks *out)
{
	const struct numbers_kernels *kernels = numbers_avx2();
	if (kernels != NULL) {
		kernels->mark(text, blocks, out);
		return;
	}
	for (size_t i = 0; i < blocks; i++)
		mark_block(text + i * NUMBERS_BLOCK, &out[i]);
}
