/*
 * attention_fields.h - the fields of an attention request that are not tensors, as sent: typed and in the
 * range that needs no shapes to judge.
 *
 * One table says which fields there are and on which route. One thread at a time.
 */
#ifndef ATTND_CODEC_ATTENTION_FIELDS_H
#define ATTND_CODEC_ATTENTION_FIELDS_H

#include "codec/attention_request.h"
#include "codec/json_body.h"
#include "codec/json_value.h"

/* Offsets and windows are kept within this: far beyond any sequence, and safe to add up. */
#define ATTENTION_FAR ((int64_t)1 << 40)

enum attention_positions {
	POSITIONS_NONE,
	POSITIONS_SINUSOIDAL,
	POSITIONS_ROPE,
	POSITIONS_ROPE_INTERLEAVED,
	POSITIONS_ALIBI,
};

struct attention_fields {
	size_t heads, kv_heads; /* 0: not given */
	attn_layout layout;
	bool has_causal;
	attn_causal causal;
	bool causal_is_list, key_lengths_is_list;
	struct integer_list causal_offsets; /* one, or a list; for ATTN_CAUSAL_OFFSET */
	struct integer_list key_lengths;    /* likewise; values NULL: not given */
	bool sink_is_list;
	struct float_list sinks; /* likewise */
	bool has_scale;
	float scale, softcap; /* softcap 0: not given */
	bool has_window;
	int64_t window_left, window_right; /* -1: unbounded */
	enum attention_positions positions;
	double rope_theta;
	bool has_position_offset;
	int64_t position_offset;
	enum weights_form weights;
	struct integer_list head_list, query_list; /* of weights; negative from the end; values NULL: all */
	size_t top_k;                              /* 0: not given */
	bool stages[ATTENTION_STAGES];
	bool statistics[ATTENTION_STATISTICS];
	bool projected;
	bool has_output_dtype;
	attn_dtype output_dtype;
	int precision;       /* 0: shortest */
	uint64_t timeout_ms; /* 0: not given */
	size_t layer;
	attn_layer_kind kind;
};

/* Reads every member of the envelope, an object. Tensors are passed over, but for members of them and of
 * `projections` that are not known. model: the route through a model's layer. out is always set, and cleared
 * by the caller. */
bool attention_fields_read(const json_t *envelope, bool model, const struct attention_limits *limits,
                           struct attention_fields *out, struct problem *problem);
void attention_fields_clear(struct attention_fields *fields);

/* Which names are fields on the route. */
body_field_known *attention_fields_of(bool model);

#endif
