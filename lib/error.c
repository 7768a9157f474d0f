#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUOTE_MAX 160

/* The largest cut <= length of text that does not part a UTF-8 character. */
static size_t character_cut(const char *text, size_t length)
{
	while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
		length--;
	return length;
}

/* Ends a message that snprintf would have made `wanted` bytes long. The byte snprintf put its end over is
 * lost, so the last character goes unless it is ASCII. */
static void message_end(attn_error *err, int wanted)
{
	size_t most = sizeof(err->message) - 1;
	if (wanted < 0 || (size_t)wanted <= most)
		return;
	size_t last = most - 1;
	if ((unsigned char)err->message[last] >= 0x80)
		err->message[character_cut(err->message, last)] = '\0';
}

attn_status attn_error_set(attn_error *err, attn_status status, const char *format, ...)
{
	if (!err)
		return status;
	va_list args;
	va_start(args, format);
	int wanted = vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	message_end(err, wanted);
	err->status = status;
	return status;
}

void attn_error_prefix(attn_error *err, const char *prefix)
{
	if (!err)
		return;
	char text[sizeof(err->message)];
	memcpy(text, err->message, sizeof(text));
	message_end(err, snprintf(err->message, sizeof(err->message), "%s: %s", prefix, text));
}

int attn_error_quote(const char *name)
{
	size_t length = strnlen(name, QUOTE_MAX + 1);
	return (int)(length <= QUOTE_MAX ? length : character_cut(name, QUOTE_MAX));
}
