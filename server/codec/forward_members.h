/*
 * forward_members.h - the results of a forward request: which there are, their shapes, their places in the
 * reply and their memory.
 *
 * A member is one result of every sequence: the weights of one layer, say. Where the sequences have equal
 * lengths in all its dimensions it is one tensor [batch, ...] in the order of the request; else it is ragged:
 * one tensor a sequence, those of a group of sequences side by side in memory. Compute and every form of
 * reply go by one list. One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_MEMBERS_H
#define ATTND_CODEC_FORWARD_MEMBERS_H

#include "codec/forward_request.h"
#include "codec/reply_output.h"

/* Bytes of a path, at most, terminator included: of a member, and of a sequence in it. */
#define FORWARD_MEMBER_PATH_MAX 64
#define FORWARD_PATH_MAX 96
#define FORWARD_MEMBER_RANK 3

enum forward_result {
	FORWARD_RESULT_TOKENS, /* as they were sent */
	FORWARD_RESULT_RANGES, /* of tokens of text */
	FORWARD_RESULT_HIDDEN,
	FORWARD_RESULT_ROLLOUT,
	FORWARD_RESULT_WEIGHTS,
	FORWARD_RESULT_TOP_INDICES,
	FORWARD_RESULT_TOP_VALUES,
	FORWARD_RESULT_ENTROPY,
	FORWARD_RESULT_LOGSUMEXP,
	FORWARD_RESULT_MAXIMUM,
	FORWARD_RESULT_POOLED,
	FORWARD_RESULT_LOGITS,
	FORWARD_RESULT_LOGITS_ALL,
	FORWARD_RESULT_TOP_LOGIT_INDICES,
	FORWARD_RESULT_TOP_LOGIT_VALUES,
};

/* A dimension: a number, the length of a stack, or that length but at most a number. */
struct forward_dim {
	enum { DIM_FIXED, DIM_LENGTH, DIM_AT_MOST } extent;
	size_t number, stack;
};

struct forward_member {
	enum forward_result result;
	size_t stack; /* or the kind of attention, of those that come by layer */
	size_t layer; /* or the hidden state, 0 for the embedded input */
	char path[FORWARD_MEMBER_PATH_MAX];
	bool integers; /* indices hold it, not data */
	bool lowest;   /* text writes -infinity as the lowest float32 */
	bool ragged;
	size_t rank;
	struct forward_dim dims[FORWARD_MEMBER_RANK];
	size_t count;   /* elements of all sequences; SIZE_MAX on overflow */
	size_t *starts; /* of a ragged one, [groups]: elements before each group's */
	size_t owner;   /* number of the member whose memory it is: its own, or one of the same result */
	float *data;
	int64_t *indices;
};

/* Lists what the request, resolved but for this, asks for. false: no memory. */
bool forward_members_list(struct forward_request *request);
bool forward_members_reserve(struct forward_request *request);
void forward_members_clear(struct forward_request *request);

/* Bytes of their memory; SIZE_MAX on overflow. */
size_t forward_members_bytes(const struct forward_request *request);

/* Dimensions of one sequence of those lengths; the product is returned, SIZE_MAX on overflow. */
size_t forward_member_dims(const struct forward_member *member, const size_t lengths[ATTN_STACKS],
                           size_t dims[FORWARD_MEMBER_RANK]);
/* Where in its memory the member has the results of a sequence. */
size_t forward_member_offset(const struct forward_request *request, const struct forward_member *member,
                             size_t sequence);

/* The tensors of a reply in order. {.request = request} begins a walk. */
struct forward_walk {
	const struct forward_request *request;
	size_t member, sequence;
	char paths[2][FORWARD_PATH_MAX]; /* of the last output and the one before it */
	bool second;
};
/* false past the last. The output's path, and the one before, last until the next but one. */
bool forward_walk_next(struct forward_walk *walk, struct reply_output *out);

#endif
