/*
 * job.h - one request on its way through the pipeline.
 *
 * Life: made by http on the loop when a body is complete, handed to pipeline_submit, and back on the loop
 * exactly once through pipeline_events.returned, whose callee frees it (job_free gives back its bytes and its
 * model). In between it has one owner at a time: a queue, or the worker that took it. Only `cancelled` is
 * touched by others meanwhile (the loop sets it), and `exchange`, which only the loop reads or writes.
 */
#ifndef ATTND_PIPELINE_JOB_H
#define ATTND_PIPELINE_JOB_H

#include "codec/attention_request.h"
#include "codec/coding.h"
#include "codec/forward_request.h"
#include "codec/problem.h"
#include "observe/metrics.h"
#include "pipeline/budget.h"
#include "pipeline/registry.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What jobs must share to be computed in one call: words filled by the operation, compared and hashed whole.
 */
#define BATCH_KEY_WORDS 32
struct batch_key {
	uint64_t words[BATCH_KEY_WORDS];
};

/* Where a job is; written under the queue's lock. JOB_OUTSIDE: not submitted, or taken out while it waited.
 */
enum job_place {
	JOB_OUTSIDE,
	JOB_WAITS_PARSE,
	JOB_PARSING,
	JOB_WAITS_BATCH,
	JOB_COMPUTING,
	JOB_WAITS_FORMAT,
	JOB_FORMATTING,
};

struct operation; /* operation.h: how to parse, compute and format this kind of job */
struct job;

/* An entry of the mailbox; see mailbox.h. */
struct mail {
	enum { MAIL_RETURNED, MAIL_DEADLINE } kind;
	struct job *job;
	struct mail *next;
};

struct job {
	const struct operation *operation;
	struct model_instance *model; /* retained, or NULL */

	/* input: the body, malloc'd; freed after parsing */
	char *body;
	size_t body_length;
	struct body_forms forms;
	enum coding body_coding;

	/* between parse and format */
	struct attention_request *attention; /* one of these, by the operation */
	struct forward_request *forward;
	struct batch_key key;
	size_t sequences; /* of this job to compute, 0 where they have no results */
	size_t tokens;    /* sequences * max(queries, keys) */
	size_t scores;    /* score elements: sequences * heads * queries * keys */
	double work;      /* floating point operations, for estimates */
	size_t length;    /* max(queries, keys), for labels */
	size_t heads, width;

	/* result: problem.code != PROBLEM_NONE, or a reply body (malloc'd) */
	struct problem problem;
	char *reply;
	size_t reply_length;
	enum coding reply_coding;  /* asked for; once formatted, that of reply */
	size_t reply_coding_least; /* bytes below which a reply stays as it is */
	const char *content_type;
	size_t batch_sequences; /* of the largest call that computed it */

	/* times, nanoseconds of clock_now */
	uint64_t arrived;        /* headers read */
	uint64_t deadline;       /* never 0; may only become shorter, by the parse task before its mail */
	uint64_t stage_begun;    /* when it entered the place it is in */
	uint64_t stages[STAGES]; /* durations; queue adds up every wait */

	atomic_bool cancelled; /* nobody waits for the answer any more */
	struct budget *budget; /* where `charged` bytes are held */
	size_t charged;

	void *exchange; /* loop only; NULL once cut */
	enum job_place place;
	struct job *next, *previous;
	struct mail mail_returned, mail_deadline;
};

/* A job with nothing but its operation, budget and mail entries set; NULL: no memory. */
struct job *job_new(const struct operation *operation, struct budget *budget);
/* Frees everything the job owns, gives back its bytes and its model. Not while it is in a queue. */
void job_free(struct job *job);

/* Frees the body and the request, which nobody needs once the job is over; its charge stays until job_free.
 */
void job_drop_work(struct job *job);

/* Whether there is nothing left to do: it was cancelled or has a problem. */
bool job_over(const struct job *job);

/* Makes `charged` exactly `bytes`: gives back what is over, or grows it (a failure changes nothing). */
enum budget_result job_charge(struct job *job, size_t bytes);

/* The same for what a parsed request needs: BUDGET_FULL is set where it does not fit now; where it never
 * will, the problem is the caller's to tell. */
enum budget_result job_charge_parsed(struct job *job, size_t bytes);

/* Takes what was formatted (reply_length is set), in the form asked for, and gives back what is charged
 * beyond it; NULL: the problem is set. The request is freed already. */
void job_take_reply(struct job *job, char *reply);

/* Brings the deadline forward to timeout_ms (0: none) after the arrival. */
void job_shorten_deadline(struct job *job, uint64_t timeout_ms);

/* Jobs in order, linked through next and previous: a job is in one list at a time. {0} is empty. */
struct job_list {
	struct job *first, *last;
	size_t count;
};
void job_list_append(struct job_list *list, struct job *job);
void job_list_remove(struct job_list *list, struct job *job);
struct job *job_list_take_first(struct job_list *list); /* NULL when empty */

#endif
