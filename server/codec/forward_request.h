/*
 * forward_request.h - the body of a forward request, from bytes to validated inputs and back to a reply.
 *
 * A worker parses a body into a struct forward_request, which owns its inputs and says everything the
 * computation needs; another task formats the reply from it. Every error of API.md that a body can hold is
 * found here, in the order syntax, overflow of a shape product, count of data against shape, limits, meaning.
 * One thread at a time; no I/O.
 *
 * A sequence is what one row of the batch gives to the stacks of the model. Sequences of a request may differ
 * in length (it is ragged then); groups (forward_groups.h) gather those that do not.
 */
#ifndef ATTND_CODEC_FORWARD_REQUEST_H
#define ATTND_CODEC_FORWARD_REQUEST_H

#include "attn.h"
#include "codec/attention_request.h"
#include "codec/body_form.h"
#include "codec/forward_groups.h"
#include "codec/json_value.h"
#include "codec/problem.h"
#include "codec/tensor.h"
#include "codec/text_reader.h"
#include "codec/token_rows.h"

/* What `outputs` may name. */
enum forward_output {
	FORWARD_HIDDEN,
	FORWARD_HIDDEN_ALL,
	FORWARD_WEIGHTS,
	FORWARD_LOGITS,
	FORWARD_LOGITS_ALL,
	FORWARD_POOLED,
	FORWARD_OUTPUTS
};

/* What a stack reads. */
struct forward_input {
	bool given;
	struct token_rows rows;   /* of tokens, or (values NULL) the lengths of embeddings */
	struct tensor embeddings; /* [L, width] or [batch, L, width]; data NULL: tokens */
	size_t *starts;           /* [batch]: positions of all sequences before each */
	bool ragged;              /* lengths differ */
	int64_t *ranges;    /* of tokens of text, [rows.count, 2]: the bytes of its text that each stands for;
	                       else NULL */
	size_t words_bytes; /* of the texts of the tokens in a reply, at most; 0: they are not told */
};

struct forward_member; /* forward_members.h */

struct forward_request {
	attn_model_info info;      /* of the model */
	struct text_reader reader; /* its tokenizer */
	struct forward_input inputs[ATTN_STACKS];
	bool batched; /* the inputs have a dimension of sequences */
	size_t batch; /* sequences; 1 without that dimension */
	struct forward_groups groups;

	/* what is asked for */
	bool wants[FORWARD_OUTPUTS];
	bool wants_statistic[ATTENTION_STATISTICS];
	bool rollout;
	size_t top_k, top_logits;              /* 0: none */
	bool layers_given;                     /* the reply lists them */
	size_t *layers[ATTN_STACK_KINDS];      /* of weights and statistics, by kind */
	size_t layer_counts[ATTN_STACK_KINDS]; /* 0: the kind is not computed */
	size_t *heads[ATTN_STACK_KINDS];       /* of weights, by kind; NULL: all */
	size_t head_count;
	struct integer_list queries; /* of weights, negative from the end; values NULL: all */
	attn_ablation *ablations;
	size_t ablation_count;
	attn_pooling pooling;
	bool normalize;
	enum body_form reply_form; /* by the Accept header */
	attn_dtype output_dtype;   /* of a binary reply */
	int precision;             /* significant digits, 0: shortest */
	uint64_t timeout_ms;       /* 0: not given */

	/* outputs: listed by the parse, memory by forward_request_reserve */
	struct forward_member *members;
	size_t member_count;
};

/* Reads a body of forms.request, to be answered by forms.reply, for the model and its tokenizer, which must
 * outlive the request. NULL with the problem set when it is refused. The body, at any alignment, is not
 * needed any more after the call. executor: as json_scan. */
struct forward_request *forward_request_parse(const char *body, size_t length, struct body_forms forms,
                                              const attn_model *model, const struct text_reader *reader,
                                              const struct attention_limits *limits, attn_executor *executor,
                                              struct problem *problem);
void forward_request_free(struct forward_request *request);

/* Kinds of attention and stacks that the model has beside the first: encoder and decoder have names then. */
bool forward_request_has_kinds(const struct forward_request *request);
/* Whether the model has a tokenizer whose tokens are those of the stack: it is the first stack's. */
bool forward_request_reads(const struct forward_request *request, size_t stack);
/* Heads of each layer of a kind; the stack whose positions are its queries, and its keys. */
size_t forward_request_heads(const struct forward_request *request, size_t kind);
size_t forward_kind_queries(size_t kind);
size_t forward_kind_keys(size_t kind);

/* Bytes the request holds now, will hold for its outputs, and its reply at most. SIZE_MAX on overflow. */
size_t forward_request_input_bytes(const struct forward_request *request);
size_t forward_request_output_bytes(const struct forward_request *request);
size_t forward_request_reply_bytes(const struct forward_request *request);

/* Allocates the outputs, zeroed; false when the system refuses. */
bool forward_request_reserve(struct forward_request *request);

/* Which output takes the most bytes of the reply, what to do about it, and the bytes without it. */
struct forward_advice {
	const char *output, *instead;
	size_t without;
};
struct forward_advice forward_request_advice(const struct forward_request *request);

/* Writes the reply in its form to malloc'd memory. NULL with MEMORY set, or, of text, RESULT_NOT_FINITE or,
 * when the executor was cancelled, DEADLINE. executor: as json_writer_open. */
char *forward_reply_format(const struct forward_request *request, attn_executor *executor, size_t *length,
                           struct problem *problem);

#endif
