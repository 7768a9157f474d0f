#include "pipeline/job_coding.h"

#include "codec/deflate.h"
#include "codec/inflate.h"

#include <stdlib.h>

#define FIRST_CAPACITY ((size_t)64 * 1024)
#define PIECE ((size_t)1 << 20) /* inflated between two looks at whether the job is over */

/* ---- the body */

/* What the body becomes, beside the compressed bytes that are charged already. */
struct growth {
	char *data;
	size_t length, capacity;
	size_t most;       /* bytes it may have */
	size_t compressed; /* charge of the body as it came */
	size_t limit;      /* on bodies; most is less where the budget is */
};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* More room, doubled; called when there is less than most. */
static bool grow(struct job *job, struct growth *growth)
{
	size_t doubled = growth->capacity <= growth->most / 2 ? growth->capacity * 2 : growth->most;
	size_t capacity = smaller(doubled > FIRST_CAPACITY ? doubled : FIRST_CAPACITY, growth->most);
	if (job_charge(job, growth->compressed + capacity) != BUDGET_OK)
		return problem_set(
		    &job->problem, PROBLEM_BUDGET_FULL, "",
		    "%zu bytes of the body inflated do not fit beside the requests in flight now", capacity);
	char *data = realloc(growth->data, capacity);
	if (data == NULL)
		return problem_set(&job->problem, PROBLEM_MEMORY, "",
		                   "the system refused %zu bytes for the body", capacity);
	growth->data = data;
	growth->capacity = capacity;
	return true;
}

static bool refuse_larger(struct job *job, const struct growth *growth)
{
	if (growth->most == growth->limit)
		return problem_set(&job->problem, PROBLEM_BODY_TOO_LARGE, "",
		                   "the body inflates to more than %zu bytes, the limit", growth->limit);
	return problem_set(&job->problem, PROBLEM_NEVER_FITS, "",
	                   "the body of %zu bytes inflates to more than the memory budget of %zu bytes holds",
	                   job->body_length, job->budget->limit);
}

static bool refuse_stream(struct job *job, enum inflate_result result)
{
	const char *coding = coding_text(job->body_coding);
	switch (result) {
	case INFLATE_CUT_SHORT:
		return problem_set(&job->problem, PROBLEM_BAD_ENCODING, "",
		                   "the %s stream of the body ends too early", coding);
	case INFLATE_TRAILING:
		return problem_set(&job->problem, PROBLEM_BAD_ENCODING, "",
		                   "the body goes on behind the end of its %s stream", coding);
	case INFLATE_MEMORY:
		return problem_set(&job->problem, PROBLEM_MEMORY, "",
		                   "the system refused memory to inflate the body");
	default:
		return problem_set(&job->problem, PROBLEM_BAD_ENCODING, "",
		                   "the body is not a sound %s stream", coding);
	}
}

/* The whole stream; a single byte beyond `most` is read to tell a body that just fits from one that does not.
 */
static bool inflate_body(struct job *job, struct inflater *inflater, struct growth *growth)
{
	enum inflate_result result = INFLATE_MORE;
	while (result == INFLATE_MORE && !job_over(job)) {
		char beyond;
		size_t written, room = growth->capacity - growth->length;
		if (room == 0 && growth->capacity < growth->most) {
			if (!grow(job, growth))
				return false;
			room = growth->capacity - growth->length;
		}
		char *out = room > 0 ? growth->data + growth->length : &beyond;
		result = inflater_read(inflater, out, room > 0 ? smaller(room, PIECE) : 1, &written);
		growth->length += written;
		if (growth->length > growth->most)
			return refuse_larger(job, growth);
	}
	if (result == INFLATE_MORE)
		return false;
	return result == INFLATE_END || refuse_stream(job, result);
}

/* The inflated body takes the place of the other, with no room left over. */
static void replace_body(struct job *job, struct growth *growth)
{
	char *fitting = realloc(growth->data, growth->length > 0 ? growth->length : 1);
	free(job->body);
	job->body = fitting != NULL ? fitting : growth->data;
	job->body_length = growth->length;
	growth->data = NULL;
	job_charge(job, growth->length);
}

void job_decode(struct job *job, size_t limit)
{
	if (job->body_coding == CODING_IDENTITY)
		return;
	size_t budget = job->budget->limit - job->charged;
	struct growth growth = {.most = smaller(limit, budget), .compressed = job->charged, .limit = limit};
	struct inflater *inflater = inflater_new(job->body_coding, job->body, job->body_length);
	if (inflater == NULL)
		refuse_stream(job, INFLATE_MEMORY);
	else if (inflate_body(job, inflater, &growth))
		replace_body(job, &growth);
	inflater_free(inflater);
	free(growth.data);
}

/* ---- the reply */

void job_encode(struct job *job)
{
	enum coding coding = job->reply_coding;
	if (coding == CODING_IDENTITY)
		return;
	job->reply_coding = CODING_IDENTITY;
	size_t held = job->charged, room = deflate_room(job->reply_length), length;
	if (job->reply_length < job->reply_coding_least || job_charge(job, held + room) != BUDGET_OK)
		return;
	char *out = malloc(room);
	if (out == NULL ||
	    !deflate_whole(coding, job->reply, job->reply_length, out, room, &length, &job->cancelled)) {
		free(out);
		job_charge(job, held);
		return;
	}
	char *fitting = realloc(out, length);
	free(job->reply);
	job->reply = fitting != NULL ? fitting : out;
	job->reply_length = length;
	job->reply_coding = coding;
	job_charge(job, length);
}
