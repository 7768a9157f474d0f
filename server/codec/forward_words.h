/*
 * forward_words.h - what of a forward reply is not tensors: numbers of layers, and texts of tokens, as JSON.
 *
 * In a JSON reply members of those names, in a binary one metadata. One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_WORDS_H
#define ATTND_CODEC_FORWARD_WORDS_H

#include "codec/forward_request.h"

#define FORWARD_WORDS_MAX 3

struct forward_words {
	const char *names[FORWARD_WORDS_MAX];
	char *texts[FORWARD_WORDS_MAX]; /* JSON */
	size_t count;
};

/* Notes in the inputs, which are resolved, how much room the texts of their tokens may take. */
void forward_words_measure(struct forward_request *request);
/* Bytes of all, names and escapes in either form of reply included, at most. */
size_t forward_words_bytes(const struct forward_request *request);
/* false: no memory. Cleared by the caller in either case. */
bool forward_words_make(const struct forward_request *request, struct forward_words *out);
void forward_words_clear(struct forward_words *words);

#endif
