/* The pipeline with the attention operation: replies do not depend on workers, mates or moments. */
#include "pipeline/pipeline.h"

#include "observe/clock.h"
#include "pipeline/operation.h"
#include "suite.h"

#include <string.h>
#include <uv.h>

#define KINDS 8
#define EACH 6
#define JOBS (KINDS * EACH)

struct house {
	uv_loop_t loop;
	struct budget budget;
	struct pipeline *pipeline;
	attn_kernels *kernels;
	size_t returned, failed;
	char *replies[JOBS];
	size_t batch[JOBS];
	struct job *jobs[JOBS];
};

static size_t numbers[JOBS];

static void house_returned(void *context, struct job *job)
{
	struct house *house = context;
	size_t number = *(size_t *)job->exchange;
	house->returned++;
	house->failed += job->problem.code != PROBLEM_NONE;
	house->batch[number] = job->batch_sequences;
	if (job->reply != NULL)
		house->replies[number] = strndup(job->reply, job->reply_length);
	house->jobs[number] = NULL;
	job_free(job);
}

static void house_deadline(void *context, struct job *job)
{
	(void)context;
	(void)job;
}

static void house_open(struct house *house, const char *kernels, size_t workers, size_t max_batch)
{
	memset(house, 0, sizeof(*house));
	budget_init(&house->budget, (size_t)1 << 30);
	uv_loop_init(&house->loop);
	ck_assert_int_eq(attn_kernels_new(kernels, &house->kernels), ATTN_OK);
	struct pipeline_config config = {
	    .workers = workers,
	    .queue_limit = 1000,
	    .max_batch = max_batch,
	    .max_batch_tokens = 1 << 20,
	    .max_batch_scores = 1 << 24,
	    .batch_max_age_ns = 50 * CLOCK_NS_PER_MS,
	    .limits = {.sequence_length = 4096,
	               .elements = 1 << 22,
	               .reply_bytes = 1 << 26,
	               .timeout_ms = 60000},
	    .kernels = house->kernels,
	    .budget = &house->budget,
	};
	struct pipeline_events events = {
	    .context = house, .returned = house_returned, .deadline = house_deadline};
	attn_error err;
	house->pipeline = pipeline_new(&house->loop, &config, &events, &err);
	ck_assert_ptr_nonnull(house->pipeline);
}

static void house_submit(struct house *house, size_t number, const char *body)
{
	struct job *job = job_new(&operation_attention, &house->budget);
	numbers[number] = number;
	job->exchange = &numbers[number];
	job->body = strdup(body);
	job->body_length = strlen(body);
	job->arrived = clock_now();
	job->deadline = job->arrived + 60 * CLOCK_NS_PER_S;
	ck_assert_int_eq(job_charge(job, job->body_length), BUDGET_OK);
	house->jobs[number] = job;
	ck_assert(pipeline_submit(house->pipeline, job));
}

static void ignore_closed(void *context)
{
	(void)context;
}

static void house_close(struct house *house, size_t jobs)
{
	while (house->returned < jobs)
		uv_run(&house->loop, UV_RUN_ONCE);
	pipeline_stop(house->pipeline, ignore_closed, NULL);
	uv_run(&house->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&house->loop), 0);
	ck_assert_uint_eq(house->returned, jobs);
	ck_assert_uint_eq(budget_used(&house->budget), 0);
	attn_kernels_free(house->kernels);
}

static void forget_replies(struct house *house)
{
	for (size_t i = 0; i < JOBS; i++)
		free(house->replies[i]);
}

/* ---- bodies */

struct text {
	char *at, *end;
};

static void say(struct text *text, const char *words)
{
	text->at += snprintf(text->at, (size_t)(text->end - text->at), "%s", words);
}

/* "name":{"shape":[...],"data":[...]} of numbers in [-1, 1]. */
static void say_tensor(struct text *text, const char *name, const size_t *dims, size_t rank, unsigned *seed)
{
	size_t count = 1;
	char number[40];
	snprintf(number, sizeof(number), "\"%s\":{\"shape\":[", name);
	say(text, number);
	for (size_t i = 0; i < rank; i++) {
		snprintf(number, sizeof(number), "%s%zu", i > 0 ? "," : "", dims[i]);
		say(text, number);
		count *= dims[i];
	}
	say(text, "],\"data\":[");
	for (size_t i = 0; i < count; i++) {
		snprintf(number, sizeof(number), "%s%.4f", i > 0 ? "," : "",
		         (double)(rand_r(seed) % 20001) / 1e4 - 1);
		say(text, number);
	}
	say(text, "]}");
}

/* The body of one of KINDS requests, of those that share calls and those that do not; free it. */
static char *body_of(size_t kind, unsigned seed)
{
	size_t length = kind == 0 ? 70 : 8 + kind % 2, size = 1 << 20;
	char *body = malloc(size);
	struct text text = {.at = body, .end = body + size};
	say(&text, "{");
	if (kind == 7)
		say_tensor(&text, "query", (size_t[]){1, 4, length, 8}, 4, &seed);
	else if (kind == 6)
		say_tensor(&text, "query", (size_t[]){3, length, 32}, 3, &seed);
	else
		say_tensor(&text, "query", (size_t[]){length, 32}, 2, &seed);
	if (kind == 5) {
		say(&text, ",");
		say_tensor(&text, "key", (size_t[]){13, 32}, 2, &seed);
	}
	if (kind == 4) {
		say(&text, ",\"projections\":{");
		say_tensor(&text, "query", (size_t[]){32, 32}, 2, &seed);
		say(&text, ",");
		say_tensor(&text, "output", (size_t[]){32, 16}, 2, &seed);
		say(&text, "}");
	}
	say(&text, kind == 3 ? ",\"causal\":true" : "");
	say(&text, kind == 7 ? "}" : ",\"heads\":4}");
	return body;
}

static void run_all(struct house *house, const char *kernels, size_t workers, size_t max_batch)
{
	house_open(house, kernels, workers, max_batch);
	for (size_t i = 0; i < JOBS; i++) {
		char *body = body_of(i % KINDS, (unsigned)i);
		house_submit(house, i, body);
		free(body);
	}
	house_close(house, JOBS);
	ck_assert_uint_eq(house->failed, 0);
}

static void replies_depend_on_nothing(const char *kernels)
{
	static struct house alone, other;
	static const size_t workers[] = {1, 2, 8};
	run_all(&alone, kernels, 1, 1);
	for (size_t i = 0; i < JOBS; i++)
		ck_assert_uint_eq(alone.batch[i], 1);
	for (size_t w = 0; w < 3; w++) {
		run_all(&other, kernels, workers[w], 32);
		for (size_t i = 0; i < JOBS; i++)
			ck_assert_str_eq(other.replies[i], alone.replies[i]);
		forget_replies(&other);
	}
	forget_replies(&alone);
}

START_TEST(a_reply_does_not_depend_on_workers_or_batch_mates_with_plain_kernels)
{
	replies_depend_on_nothing("reference");
}
END_TEST

START_TEST(a_reply_does_not_depend_on_workers_or_batch_mates_with_blas_kernels)
{
	replies_depend_on_nothing("blas");
}
END_TEST

START_TEST(a_reply_does_not_depend_on_workers_or_batch_mates_with_the_fastest_kernels)
{
	replies_depend_on_nothing(attn_kernels_list(0));
}
END_TEST

START_TEST(the_textbook_s_four_embeddings_come_back_as_the_textbook_says)
{
	static struct house house;
	static const float weights[16] = {.176179f, .268531f, .207091f, .348199f, .116131f, .269791f,
	                                  .160458f, .453621f, .087223f, .262751f, .133715f, .516311f,
	                                  .151182f, .270862f, .188270f, .389686f};
	house_open(&house, attn_kernels_list(0), 2, 32);
	house_submit(&house, 0,
	             "{\"embeddings\":[[0,1,0],[1,0,1],[0,1,1],[1,1,0]],\"projections\":{"
	             "\"query\":[[0.1,0.2,0.3],[0.4,0.5,0.6],[0.7,0.8,0.9]],"
	             "\"key\":[[0.9,0.8,0.7],[0.6,0.5,0.4],[0.3,0.2,0.1]],"
	             "\"value\":[[0.2,0.4,0.6],[0.8,1.0,1.2],[1.4,1.6,1.8]]}}");
	house_close(&house, 1);
	const char *at = strstr(house.replies[0], "\"weights\":");
	ck_assert_ptr_nonnull(at);
	at += strlen("\"weights\":");
	for (size_t i = 0; i < 16; i++) {
		char *after;
		at += strspn(at, "[], ");
		ck_assert_double_eq_tol(strtod(at, &after), (double)weights[i], 1e-6);
		at = after;
	}
	free(house.replies[0]);
}
END_TEST

START_TEST(a_big_call_computed_by_many_workers_is_the_same_to_the_bit)
{
	static struct house one, many;
	unsigned seed = 5;
	size_t size = (size_t)1 << 20;
	char *body = malloc(size);
	struct text text = {.at = body, .end = body + size};
	say(&text, "{");
	say_tensor(&text, "query", (size_t[]){500, 64}, 2, &seed);
	say(&text, ",\"heads\":4,\"weights\":\"mean\"}");
	house_open(&one, attn_kernels_list(0), 1, 32);
	house_submit(&one, 0, body);
	house_close(&one, 1);
	house_open(&many, attn_kernels_list(0), 8, 32);
	house_submit(&many, 0, body);
	house_close(&many, 1);
	ck_assert_str_eq(one.replies[0], many.replies[0]);
	free(one.replies[0]);
	free(many.replies[0]);
	free(body);
}
END_TEST

START_TEST(cutting_some_jobs_leaves_the_others_their_bits)
{
	static struct house whole, cut;
	run_all(&whole, attn_kernels_list(0), 2, 32);
	house_open(&cut, attn_kernels_list(0), 2, 32);
	for (size_t i = 0; i < JOBS; i++) {
		char *body = body_of(i % KINDS, (unsigned)i);
		house_submit(&cut, i, body);
		free(body);
		if (i % 5 == 4 && cut.jobs[i - 2] != NULL)
			pipeline_cut(cut.pipeline, cut.jobs[i - 2]);
		uv_run(&cut.loop, UV_RUN_NOWAIT);
	}
	house_close(&cut, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		if ((i + 2) % 5 != 4)
			ck_assert_str_eq(cut.replies[i], whole.replies[i]);
	}
	forget_replies(&cut);
	forget_replies(&whole);
}
END_TEST

SUITE_MAIN("pipeline_attention", a_reply_does_not_depend_on_workers_or_batch_mates_with_plain_kernels,
           a_reply_does_not_depend_on_workers_or_batch_mates_with_blas_kernels,
           a_reply_does_not_depend_on_workers_or_batch_mates_with_the_fastest_kernels,
           the_textbook_s_four_embeddings_come_back_as_the_textbook_says,
           a_big_call_computed_by_many_workers_is_the_same_to_the_bit,
           cutting_some_jobs_leaves_the_others_their_bits)
