/*
 * operation.h - what the pipeline does with one kind of job: parse, compute with its batch, format.
 *
 * Workers call these; each sets job->problem instead of failing. An operation holds no state.
 */
#ifndef ATTND_PIPELINE_OPERATION_H
#define ATTND_PIPELINE_OPERATION_H

#include "attn.h"
#include "codec/attention_request.h"
#include "observe/metrics.h"
#include "pipeline/job.h"

#include <stddef.h>

struct operation {
	enum metrics_operation metric;

	/* From job->body: the request, batch key, sequences, tokens, scores, work, length, heads, width;
	 * charges the job for tensors, scratch and worst-case reply (413 when it can never fit, 429 when not
	 * now) and frees the body, giving its charge back. Jobs of different operations have different keys.
	 * A call will hold at most max_sequences sequences (so scratch is charged for no more). A deadline
	 * that the body asks for becomes job->deadline where it is earlier. The executor, or NULL,
	 * helps with a large body and says when the job is cancelled. */
	void (*parse)(struct job *job, attn_executor *executor, const struct attention_limits *limits,
	              size_t max_sequences);

	/* All jobs share a batch key. At most max_sequences sequences and max_scores score elements a library
	 * call, save that a lone sequence over max_scores runs alone; more run as several calls. Cancelled
	 * jobs may be left out. A failure sets the problem of the jobs it hit and of no other. Sets
	 * batch_sequences. Scratch is rewound by the caller. */
	void (*compute)(struct job **batch, size_t count, const attn_kernels *kernels,
	                attn_executor *executor, size_t max_sequences, size_t max_scores);

	/* job->reply, reply_length and content_type from the outputs; frees the request. The executor as in
	 * parse. */
	void (*format)(struct job *job, attn_executor *executor);
};

extern const struct operation operation_attention;       /* POST /v1/attention */
extern const struct operation operation_model_attention; /* POST /v1/models/{model}/attention */
extern const struct operation operation_forward;         /* POST /v1/models/{model}/forward */

#endif
