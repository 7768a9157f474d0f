/*
 * attention_readers.h - readers of single fields, for the table of attention_fields.c, by topic: masks,
 * outputs, tensors.
 *
 * Each reads one value of the envelope, whose place is pointer, into the fields; false with the problem set.
 * One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_READERS_H
#define ATTND_CODEC_ATTENTION_READERS_H

#include "codec/attention_fields.h"

/* What a reader of a field gets and fills. */
struct reading {
	const struct attention_limits *limits;
	struct attention_fields *out;
	struct problem *problem;
};

/* attention_masking_fields.c */
bool attention_read_causal(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_key_lengths(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_window(const json_t *value, const char *pointer, struct reading *reading);

/* attention_output_fields.c */
bool attention_read_weights(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_statistics(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_projected(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_output_dtype(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_precision(const json_t *value, const char *pointer, struct reading *reading);

/* attention_tensor_fields.c: what stands beside the numbers of tensors; the numbers are json_tensor.c's */
bool attention_read_tensor(const json_t *value, const char *pointer, struct reading *reading);
bool attention_read_projections(const json_t *value, const char *pointer, struct reading *reading);

#endif
