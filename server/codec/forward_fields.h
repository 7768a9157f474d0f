/*
 * forward_fields.h - the fields of a forward request that are not inputs, as sent: typed and in the range
 * that needs no model to judge.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_FIELDS_H
#define ATTND_CODEC_FORWARD_FIELDS_H

#include "codec/forward_request.h"
#include "codec/json_body.h"
#include "codec/json_value.h"

/* Names of the kinds of attention, by number. */
extern const char *const forward_kind_names[ATTN_STACK_KINDS];

/* A head as `ablate` names it; indices may count from the end. */
struct forward_ablation {
	bool has_kind;
	size_t kind;
	int64_t layer, head;
};

struct forward_fields {
	bool text[ATTN_STACKS]; /* given */
	bool outputs[FORWARD_OUTPUTS];
	struct integer_list layers, heads, queries; /* values NULL: not given */
	size_t top_k, top_logits;                   /* 0: not given */
	bool has_pooling, has_normalize, has_output_dtype;
	attn_pooling pooling;
	bool normalize;
	struct forward_ablation *ablations;
	size_t ablation_count;
	bool rollout;
	bool statistics[ATTENTION_STATISTICS];
	attn_dtype output_dtype;
	int precision;       /* 0: shortest */
	uint64_t timeout_ms; /* 0: not given */
};

/* Reads every member of the envelope, an object, passing over tokens and embeddings. out is always set, and
 * cleared by the caller. */
bool forward_fields_read(const json_t *envelope, const struct attention_limits *limits,
                         struct forward_fields *out, struct problem *problem);
void forward_fields_clear(struct forward_fields *fields);

/* Which names are fields. */
body_field_known forward_fields_known;

#endif
