/*
 * attention_request.h - the body of an attention request, from bytes to validated tensors and back to a
 * reply.
 *
 * A worker parses a body into a struct attention_request, which owns its tensors and says everything the
 * computation needs; another task formats the reply from it. Every error of API.md that a body can hold is
 * found here, in the order syntax, overflow of a shape product, count of data against shape, limits, meaning.
 * One thread at a time; no I/O.
 */
#ifndef ATTND_CODEC_ATTENTION_REQUEST_H
#define ATTND_CODEC_ATTENTION_REQUEST_H

#include "attn.h"
#include "codec/body_form.h"
#include "codec/problem.h"
#include "codec/reply_output.h"
#include "codec/tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attention_limits {
	size_t sequence_length; /* of queries, and of keys */
	size_t elements;        /* numbers in all tensors of the request */
	size_t reply_bytes;     /* of the reply, by its upper bound */
	uint64_t timeout_ms;    /* longest deadline a request may ask for */
};

enum weights_form { WEIGHTS_NONE, WEIGHTS_PER_HEAD, WEIGHTS_MEAN, WEIGHTS_TOP };

/* Stages of the scores a reply may hold, under stages.NAME. */
enum attention_stage {
	ATTENTION_SCORES,
	ATTENTION_CAPPED,
	ATTENTION_MASKED,
	ATTENTION_SOFTMAX,
	ATTENTION_STAGES
};
enum attention_statistic { ATTENTION_ENTROPY, ATTENTION_LOGSUMEXP, ATTENTION_MAXIMUM, ATTENTION_STATISTICS };

struct attention_request {
	/* inputs; key.data and value.data are NULL where they default to query and key */
	struct tensor query, key, value;
	struct tensor projections[8]; /* query, key, value, output, and their biases, as sent */
	struct mask_tensor mask;      /* data NULL: all true; see attention_request_mask */
	struct tensor bias;           /* data NULL: none; see attention_request_bias */
	struct tensor sink;           /* of a binary body until its meaning is resolved; data NULL: none */
	float *sinks;                 /* [heads], where options.sink points, or NULL */
	int64_t *key_lengths;         /* [batch], or NULL: all keys */
	int64_t *causal_offsets;      /* [batch] for ATTN_CAUSAL_OFFSET, or NULL */

	/* what they mean */
	bool split_heads; /* rank 4: heads already split, no projections */
	bool model;       /* through a model's layer */
	size_t model_layer;
	attn_layer_kind model_kind;
	size_t batch;     /* sequences; 1 for one sequence without a batch dimension */
	attn_layer layer; /* views of the projections sent or of the model's; not used when split_heads */
	attn_shape shape;
	attn_options options;
	struct tensor past_key, past_value; /* [batch, kv_heads, past, width] or without batch; NULL: none */
	bool has_past;                      /* given, be it of no keys: present comes back */
	float *slopes;                      /* [heads] where options.slopes points, or NULL */
	size_t *head_list, *query_list;     /* where options.selection points, or NULL */
	attn_selection selection;
	enum weights_form weights;
	bool wants_stage[ATTENTION_STAGES]; /* reply under stages.NAME */
	bool wants_statistic[ATTENTION_STATISTICS];
	bool projected;
	enum body_form reply_form; /* by the Accept header */
	attn_dtype output_dtype;   /* of a binary reply */
	int precision;             /* significant digits, 0: shortest */
	uint64_t timeout_ms;       /* 0: not given */

	/* outputs: shaped by the parse (rank 0: not asked for; attention_outputs.h lists them), memory by
	 * attention_request_reserve; without a batch dimension where the request has none */
	struct reply_tensor context;     /* rank of query */
	struct reply_tensor weights_out; /* [batch, H', Lq', keys], or for the mean [batch, queries, keys] */
	struct reply_tensor top_indices,
	    top_values; /* [batch, H', Lq', k]; under stages.softmax with wants_stage */
	struct reply_tensor stages[ATTENTION_STAGES];
	struct reply_tensor statistics[ATTENTION_STATISTICS]; /* [batch, heads, queries] */
	struct reply_tensor used_query, used_key,
	    used_value; /* projected, and present_key and present_value */
};

/* Reads a body of forms.request, to be answered by forms.reply. model is the model named in the path (its
 * layer is picked by the fields `layer` and `kind`), or NULL for POST /v1/attention. NULL with the problem
 * set when it is refused. The body, at any alignment, is not needed any more after the call; the model must
 * outlive the request. executor: as json_scan. */
struct attention_request *attention_request_parse(const char *body, size_t length, struct body_forms forms,
                                                  const attn_model *model,
                                                  const struct attention_limits *limits,
                                                  attn_executor *executor, struct problem *problem);
void attention_request_free(struct attention_request *request);

/* Bytes the request holds now, will hold for its outputs, and its reply at most. SIZE_MAX on overflow. */
size_t attention_request_input_bytes(const struct attention_request *request);
size_t attention_request_output_bytes(const struct attention_request *request);
size_t attention_request_reply_bytes(const struct attention_request *request);

/* Allocates the outputs; false when the system refuses memory. */
bool attention_request_reserve(struct attention_request *request);

/* Keys, past ones too, without those that the model's layer appends: what masks and lengths count. */
size_t attention_request_own_keys(const struct attention_request *request);

/* The mask and the bias of one sequence (below batch), broadcast as numpy does against [batch, heads,
 * queries, keys]; data NULL where the request has none. */
attn_mask attention_request_mask(const struct attention_request *request, size_t sequence);
attn_bias attention_request_bias(const struct attention_request *request, size_t sequence);

/* Writes the reply in its form to malloc'd memory. NULL with MEMORY set, or, of text, RESULT_NOT_FINITE or,
 * when the executor was cancelled, DEADLINE. executor: as json_writer_open. */
char *attention_reply_format(const struct attention_request *request, attn_executor *executor, size_t *length,
                             struct problem *problem);

#endif
