/* The attention operation without threads: what it charges, which jobs it lets share a call, and how it cuts.
 */
#include "pipeline/operation.h"

#include "observe/clock.h"
#include "model_files.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const struct attention_limits limits = {
    .sequence_length = 4096, .elements = 1 << 20, .reply_bytes = 1 << 24, .timeout_ms = 60000};

static struct budget budget;
static attn_kernels *kernels;
static attn_arena *scratch;
static attn_executor executor;

static void start(size_t bytes)
{
	budget_init(&budget, bytes);
	ck_assert_int_eq(attn_kernels_new("reference", &kernels), ATTN_OK);
	scratch = attn_arena_new(1 << 20);
	executor = attn_executor_serial(scratch);
}

static void stop(void)
{
	attn_arena_free(scratch);
	attn_kernels_free(kernels);
	ck_assert_uint_eq(budget_used(&budget), 0);
}

static struct job *job_of(const char *body)
{
	struct job *job = job_new(&operation_attention, &budget);
	job->body = strdup(body);
	job->body_length = strlen(body);
	job->arrived = 1000;
	job->deadline = 1000 + 60 * CLOCK_NS_PER_S;
	ck_assert_int_eq(job_charge(job, job->body_length), BUDGET_OK);
	return job;
}

static struct job *parsed(const char *body)
{
	struct job *job = job_of(body);
	operation_attention.parse(job, NULL, &limits, 32);
	ck_assert_msg(job->problem.code == PROBLEM_NONE, "%s %s", job->problem.pointer, job->problem.detail);
	ck_assert_ptr_null(job->body);
	return job;
}

static void compute(struct job **jobs, size_t count, size_t max_sequences, size_t max_scores)
{
	attn_arena_mark mark = attn_arena_here(scratch);
	operation_attention.compute(jobs, count, kernels, &executor, max_sequences, max_scores);
	attn_arena_rewind(scratch, mark);
}

/* The reply of a body computed alone in calls of any size; free it. */
static char *reply_alone(const char *body, size_t max_sequences, size_t max_scores, size_t *largest)
{
	struct job *job = parsed(body);
	compute(&job, 1, max_sequences, max_scores);
	*largest = job->batch_sequences;
	operation_attention.format(job, NULL);
	ck_assert_int_eq(job->problem.code, PROBLEM_NONE);
	char *reply = strndup(job->reply, job->reply_length);
	job_free(job);
	return reply;
}

static bool share(const char *a, const char *b)
{
	struct job *first = parsed(a), *second = parsed(b);
	bool same = memcmp(&first->key, &second->key, sizeof(first->key)) == 0;
	job_free(first);
	job_free(second);
	return same;
}

START_TEST(jobs_share_a_call_only_when_all_that_a_call_has_once_is_equal)
{
	start(SIZE_MAX);
	const char *plain = "{\"query\":[[1,2],[3,4]]}";
	ck_assert(share(plain, "{\"query\":[[5,6],[7,8]]}"));
	ck_assert(share(plain, "{\"query\":[[[1,2],[3,4]],[[1,2],[3,4]]]}"));
	ck_assert(
	    share(plain, "{\"query\":[[1,2],[3,4]],\"weights\":false,\"mask\":[[true,false],[true,true]]}"));
	ck_assert(share(plain, "{\"query\":[[1,2],[3,4]],\"key_lengths\":1}"));
	const char *others[] = {
	    "{\"query\":[[1,2],[3,4],[5,6]]}",
	    "{\"query\":[[1,2,3],[3,4,5]]}",
	    "{\"query\":[[1,2],[3,4]],\"heads\":2}",
	    "{\"query\":[[1,2],[3,4]],\"scale\":0.5}",
	    "{\"query\":[[1,2],[3,4]],\"causal\":true}",
	    "{\"query\":[[1,2],[3,4]],\"key\":[[1,2],[3,4]]}",
	    "{\"query\":[[1,2],[3,4]],\"key\":[[1,2],[3,4]],\"value\":[[1,2],[3,4]]}",
	    "{\"query\":[[1,2],[3,4]],\"key\":[[1,2],[3,4],[5,6]]}",
	    "{\"query\":[[[[1,2],[3,4]]]]}",
	    "{\"query\":[[1,2],[3,4]],\"projections\":{\"query\":[[1,0],[0,1]]}}",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ck_assert_msg(!share(plain, others[i]), "%s", others[i]);
		ck_assert_msg(!share(others[i], others[9]), "%s", others[i]);
	}
	stop();
}
END_TEST

/* A query of two rows, of width 2, with `more` fields. */
#define WITH(more) "{\"query\":[[1,2],[3,4]]," more "}"
/* No query, one key of width 2. */
#define EMPTY(more) "{\"query\":{\"shape\":[0,2],\"data\":[]},\"key\":[[3,4]]," more "}"
#define PAST(row) WITH("\"past_key\":[[" row "]],\"past_value\":[[" row "]]")

START_TEST(outputs_of_a_jobs_own_do_not_keep_it_from_a_call)
{
	static const char *const pairs[][2] = {
	    {WITH("\"weights\":true"), WITH("\"weights\":{\"stage\":[\"scores\",\"masked\"]}")},
	    {WITH("\"weights\":true"), WITH("\"statistics\":[\"max\"],\"projected\":true")},
	    {WITH("\"positions\":\"alibi\""), WITH("\"positions\":\"alibi\"")},
	    {WITH("\"positions\":\"none\""), WITH("\"position_offset\":3")},
	    {WITH("\"weights\":{\"top_k\":1}"), WITH("\"weights\":{\"top_k\":1}")},
	    {WITH("\"weights\":{\"top_k\":2}"), WITH("\"weights\":{\"top_k\":7}")},
	    {WITH("\"positions\":\"rope\""), WITH("\"positions\":\"rope\",\"position_offset\":0")},
	    {PAST("[1,2]"), PAST("[5,6]")},
	};
	start(SIZE_MAX);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		ck_assert_msg(share(pairs[i][0], pairs[i][1]), "%s %s", pairs[i][0], pairs[i][1]);
	stop();
}
END_TEST

START_TEST(options_of_the_whole_call_keep_jobs_apart)
{
	static const char *const others[] = {
	    WITH("\"weights\":true"),
	    WITH("\"weights\":{\"top_k\":1}"),
	    WITH("\"weights\":{\"top_k\":2}"),
	    WITH("\"weights\":{\"heads\":[0]}"),
	    WITH("\"weights\":{\"queries\":[0]}"),
	    WITH("\"positions\":\"alibi\""),
	    WITH("\"positions\":\"sinusoidal\""),
	    WITH("\"positions\":\"rope\""),
	    WITH("\"positions\":\"rope_interleaved\""),
	    WITH("\"positions\":\"rope\",\"rope_theta\":500"),
	    WITH("\"positions\":\"rope\",\"position_offset\":1"),
	    PAST("[1,2]"),
	    PAST("[1,2],[1,2]"),
	    WITH("\"key\":[[1,2],[3,4],[5,6]]"),
	    WITH("\"key\":[[1,2],[3,4]],\"past_key\":[[[1,2]]],\"past_value\":[[[1,2]]]"),
	};
	start(SIZE_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		for (size_t j = 0; j < i; j++)
			ck_assert_msg(!share(others[i], others[j]), "%s %s", others[i], others[j]);
	}
	ck_assert(!share(others[3], others[3])); /* its list is its own */
	stop();
}
END_TEST

START_TEST(sizes_are_those_of_all_sequences_of_the_job)
{
	start(SIZE_MAX);
	struct job *job = parsed("{\"query\":[[[1,2],[3,4]],[[5,6],[7,8]]],"
	                         "\"key\":[[[1,2],[1,2],[1,2]],[[1,2],[1,2],[1,2]]],\"heads\":2}");
	ck_assert_uint_eq(job->sequences, 2);
	ck_assert_uint_eq(job->length, 3);
	ck_assert_uint_eq(job->tokens, 6);
	ck_assert_uint_eq(job->scores, 2 * 2 * 2 * 3);
	ck_assert_uint_eq(job->heads, 2);
	ck_assert_uint_eq(job->width, 2);
	ck_assert_double_gt(job->work, 0);
	job_free(job);
	stop();
}
END_TEST

START_TEST(sequences_without_results_are_not_computed)
{
	start(SIZE_MAX);
	struct job *empty = parsed("{\"query\":{\"shape\":[1000000,0,2],\"data\":[]},\"weights\":false}");
	ck_assert_uint_eq(empty->sequences, 0);
	ck_assert_double_eq(empty->work, 0);
	compute(&empty, 1, 32, SIZE_MAX);
	ck_assert_uint_eq(empty->batch_sequences, 0);
	ck_assert_int_eq(empty->problem.code, PROBLEM_NONE);
	operation_attention.format(empty, NULL);
	ck_assert_mem_eq(empty->reply, "{\"context\":[[],[],", strlen("{\"context\":[[],[],"));
	job_free(empty);

	/* keys are a result where they are asked for, and those of a batch mate are not in the way */
	struct job *jobs[] = {parsed(EMPTY("\"weights\":false")), parsed(EMPTY("\"projected\":true"))};
	ck_assert_mem_eq(&jobs[0]->key, &jobs[1]->key, sizeof(jobs[0]->key));
	compute(jobs, 2, 32, SIZE_MAX);
	operation_attention.format(jobs[1], NULL);
	ck_assert_ptr_nonnull(strstr(jobs[1]->reply, "\"key\":[[[3,4]]]"));
	job_free(jobs[0]);
	job_free(jobs[1]);
	stop();
}
END_TEST

START_TEST(a_deadline_of_the_body_counts_from_arrival_and_only_shortens)
{
	start(SIZE_MAX);
	struct job *job = parsed("{\"query\":[[1]],\"timeout_ms\":5}");
	ck_assert_uint_eq(job->deadline, 1000 + 5 * CLOCK_NS_PER_MS);
	job_free(job);
	job = job_of("{\"query\":[[1]],\"timeout_ms\":5000}");
	job->deadline = 2000; /* of the header */
	operation_attention.parse(job, NULL, &limits, 32);
	ck_assert_uint_eq(job->deadline, 2000);
	job_free(job);
	stop();
}
END_TEST

/* {"query": zeros of [1, length, 1]}, with more fields. */
static char *zeros_body(size_t length, const char *more)
{
	size_t size = 100 + 2 * length + strlen(more);
	char *body = malloc(size);
	int at = snprintf(body, size, "{\"query\":{\"shape\":[1,%zu,1],\"data\":[0", length);
	for (size_t i = 1; i < length; i++)
		at += snprintf(body + at, size - (size_t)at, ",0");
	snprintf(body + at, size - (size_t)at, "]}%s}", more);
	return body;
}

START_TEST(a_request_that_can_never_fit_is_told_what_would)
{
	start(700000);
	char *body = zeros_body(200, "");
	struct job *job = job_of(body);
	operation_attention.parse(job, NULL, &limits, 32);
	ck_assert_int_eq(job->problem.code, PROBLEM_NEVER_FITS);
	ck_assert_ptr_nonnull(strstr(job->problem.detail, "700000"));
	ck_assert_ptr_nonnull(strstr(job->problem.detail, "\"weights\": false"));
	ck_assert_uint_eq(budget_used(&budget), job->body_length);
	job_free(job);
	free(body);

	body = zeros_body(200, ",\"weights\":false"); /* as it said */
	job = parsed(body);
	job_free(job);
	free(body);
	stop();
}
END_TEST

START_TEST(a_request_that_does_not_fit_now_is_told_so)
{
	start(300000);
	ck_assert_int_eq(budget_grow(&budget, 0, 290000), BUDGET_OK);
	char *body = zeros_body(20, "");
	struct job *job = job_of(body);
	operation_attention.parse(job, NULL, &limits, 32);
	ck_assert_int_eq(job->problem.code, PROBLEM_BUDGET_FULL);
	ck_assert_int_eq(problem_status(job->problem.code), 429);
	budget_give_back(&budget, 290000);
	job_free(job);
	free(body);
	stop();
}
END_TEST

START_TEST(after_formatting_only_the_reply_is_charged)
{
	start(SIZE_MAX);
	struct job *job = parsed("{\"query\":[[1,2],[3,4]]}");
	ck_assert_uint_gt(budget_used(&budget), job->body_length);
	compute(&job, 1, 32, SIZE_MAX);
	operation_attention.format(job, NULL);
	ck_assert_uint_eq(budget_used(&budget), job->reply_length);
	ck_assert_str_eq(job->content_type, "application/json");
	ck_assert_ptr_null(job->attention);
	job_free(job);
	stop();
}
END_TEST

#define FIVE                                                                                                 \
	"[[[1,2],[3,4],[0,1]],[[2,2],[-1,4],[0,1]],[[1,0],[3,1],[2,1]],[[0,2],[3,1],[0,5]],[[4,2],[3,4],[1," \
	"1]]]"

START_TEST(a_job_over_the_caps_runs_as_several_calls_with_the_same_reply)
{
	static const char *const bodies[] = {
	    "{\"query\":" FIVE ",\"heads\":2}",
	    "{\"query\":" FIVE ",\"weights\":\"mean\",\"heads\":2,\"key_lengths\":[3,2,1,0,3]}",
	    ("{\"query\":" FIVE
	     ",\"mask\":[[[[true,true,false]]],[[[true,true,true]]],[[[false,true,false]]],"
	     "[[[true,false,true]]],[[[true,true,true]]]]}"),
	    ("{\"query\":{\"shape\":[5,1,3,2],\"data\":[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,"
	     "9,"
	     "1,2,3]}}"),
	};
	start(SIZE_MAX);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		size_t largest, heads = i < 2 ? 2 : 1;
		char *whole = reply_alone(bodies[i], 32, SIZE_MAX, &largest);
		ck_assert_uint_eq(largest, 5);
		char *twos = reply_alone(bodies[i], 2, SIZE_MAX, &largest);
		ck_assert_uint_eq(largest, 2);
		char *threes = reply_alone(bodies[i], 32, 3 * 9 * heads, &largest);
		ck_assert_uint_eq(largest, 3);
		char *ones = reply_alone(bodies[i], 32, 1, &largest); /* a lone sequence may be over */
		ck_assert_uint_eq(largest, 1);
		ck_assert_str_eq(whole, twos);
		ck_assert_str_eq(whole, threes);
		ck_assert_str_eq(whole, ones);
		free(whole);
		free(twos);
		free(threes);
		free(ones);
	}
	stop();
}
END_TEST

/* Where the numbers of a reply's context begin. */
static const char *context_of(const struct job *job)
{
	const char *at = strstr(job->reply, "\"context\":");
	ck_assert_ptr_nonnull(at);
	return at + strlen("\"context\":") + strspn(at + strlen("\"context\":"), " [");
}

/* ---- against plain loops in double precision, with an indexing of their own */

static double input_at(const struct attention_request *request, const float *data, size_t heads, size_t rows,
                       size_t width, const size_t at[4])
{
	size_t row = at[0] * rows + at[2];
	if (request->split_heads)
		return (double)data[((at[0] * heads + at[1]) * rows + at[2]) * width + at[3]];
	return (double)data[row * heads * width + at[1] * width + at[3]];
}

static bool mask_at(const struct mask_tensor *mask, const size_t at[4])
{
	size_t index = 0;
	if (mask->data == NULL)
		return true;
	for (size_t i = 0; i < mask->rank; i++)
		index = index * mask->dims[i] + at[4 - mask->rank + i] % mask->dims[i];
	return mask->data[index] != 0;
}

/* The weights of one row to out; at holds sequence, head and query. */
static void expect_weights(const struct attention_request *request, const size_t at[4], double *out)
{
	const attn_shape *shape = &request->shape;
	const struct tensor *key = request->key.data != NULL ? &request->key : &request->query;
	size_t valid = request->key_lengths != NULL ? (size_t)request->key_lengths[at[0]] : shape->keys;
	double sum = 0;
	for (size_t k = 0; k < shape->keys; k++) {
		double score = 0;
		for (size_t d = 0; d < shape->head_width; d++)
			score += input_at(request, request->query.data, shape->heads, shape->queries,
			                  shape->head_width, (size_t[]){at[0], at[1], at[2], d}) *
			         input_at(request, key->data, shape->heads, shape->keys, shape->head_width,
			                  (size_t[]){at[0], at[1], k, d});
		bool allowed = k < valid && mask_at(&request->mask, (size_t[]){at[0], at[1], at[2], k});
		out[k] = allowed ? exp(score / sqrt((double)shape->head_width)) : 0;
		sum += out[k];
	}
	for (size_t k = 0; k < shape->keys; k++)
		out[k] = sum > 0 ? out[k] / sum : 0;
}

static double context_at(const struct attention_request *request, const size_t at[4])
{
	const attn_shape *shape = &request->shape;
	return input_at(request, request->context.data, shape->heads, shape->queries, shape->value_width, at);
}

static void check_row(const struct attention_request *request, size_t b, size_t h, size_t q, double *mean)
{
	const attn_shape *shape = &request->shape;
	const struct tensor *value = request->value.data != NULL ? &request->value
	                             : request->key.data != NULL ? &request->key
	                                                         : &request->query;
	double weights[16];
	expect_weights(request, (size_t[]){b, h, q, 0}, weights);
	for (size_t d = 0; d < shape->value_width; d++) {
		double sum = 0;
		for (size_t k = 0; k < shape->keys; k++)
			sum += weights[k] * input_at(request, value->data, shape->heads, shape->keys,
			                             shape->value_width, (size_t[]){b, h, k, d});
		ck_assert_double_eq_tol(context_at(request, (size_t[]){b, h, q, d}), sum, 2e-5);
	}
	for (size_t k = 0; k < shape->keys; k++) {
		size_t row = (b * shape->heads + h) * shape->queries + q;
		mean[k] += weights[k] / (double)shape->heads;
		if (request->weights == WEIGHTS_PER_HEAD)
			ck_assert_double_eq_tol((double)request->weights_out.data[row * shape->keys + k],
			                        weights[k], 2e-6);
	}
}

static void check_query(const struct attention_request *request, size_t b, size_t q)
{
	const attn_shape *shape = &request->shape;
	double mean[16] = {0};
	for (size_t h = 0; h < shape->heads; h++)
		check_row(request, b, h, q, mean);
	size_t row = b * shape->queries + q;
	for (size_t k = 0; request->weights == WEIGHTS_MEAN && k < shape->keys; k++)
		ck_assert_double_eq_tol((double)request->weights_out.data[row * shape->keys + k], mean[k],
		                        2e-6);
}

#define QUERIES "[[[1,-2],[0.3,0.4]],[[-0.5,0.6],[0.7,2]],[[1.5,1.6],[-0.7,-1]]]"
#define KEYS "[[[0.1,0.2],[0.3,2],[1,1]],[[3,0.2],[-1,0.5],[1,0]],[[0.1,-0.2],[-1.3,2],[0.5,1]]]"
#define VALUES "[[[1,2],[3,4],[5,6]],[[7,8],[9,1],[2,3]],[[4,5],[6,7],[8,9]]]"

START_TEST(each_sequence_is_computed_from_its_own_tensors)
{
	static const char *const bodies[] = {
	    "{\"query\":" QUERIES ",\"heads\":2}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"heads\":2}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"value\":" VALUES "}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"value\":" VALUES ",\"heads\":2,\"weights\":\"mean\"}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"value\":" VALUES ",\"key_lengths\":[3,1,2]}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"mask\":[[[[true,false,true]]]],\"heads\":2}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS ",\"mask\":[[[[true,false,true]]],[[[true,true,false]]],"
	    "[[[false,false,false]]]],\"heads\":2}",
	    "{\"query\":" QUERIES ",\"key\":" KEYS
	    ",\"mask\":[[[true],[false]],[[true],[true]]],\"heads\":2}",
	    "{\"query\":[" QUERIES "],\"key\":[" KEYS "],\"value\":[" VALUES "]}",
	    "{\"query\":[" QUERIES "," QUERIES "],\"key\":[" KEYS "," VALUES "],\"weights\":\"mean\"}",
	};
	start(SIZE_MAX);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct job *job = parsed(bodies[i]);
		compute(&job, 1, 2, SIZE_MAX);
		ck_assert_int_eq(job->problem.code, PROBLEM_NONE);
		for (size_t b = 0; b < job->attention->batch; b++) {
			for (size_t q = 0; q < job->attention->shape.queries; q++)
				check_query(job->attention, b, q);
		}
		job_free(job);
	}
	stop();
}
END_TEST

START_TEST(masks_broadcast_as_numpy_does)
{
	/* Q = K = 0, one value column 10, 20, 60: the mean of the allowed values. */
	static const struct {
		const char *fields;
		double first;
	} cases[] = {
	    {"", 30},
	    {",\"mask\":[[true,false,false]]", 10},
	    {",\"mask\":[[false,true,true]]", 40},
	    {",\"mask\":[[[true,true,false]]]", 15},
	    {",\"mask\":[[[[false,true,false]]]]", 20},
	    {",\"key_lengths\":2", 15},
	};
	start(SIZE_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char body[300];
		snprintf(body, sizeof(body),
		         "{\"query\":[[0],[0]],\"key\":[[0],[0],[0]],\"value\":[[10],[20],[60]]%s}",
		         cases[i].fields);
		struct job *job = parsed(body);
		compute(&job, 1, 32, SIZE_MAX);
		operation_attention.format(job, NULL);
		ck_assert_double_eq_tol(strtod(context_of(job), NULL), cases[i].first, 1e-5);
		job_free(job);
	}
	stop();
}
END_TEST

START_TEST(a_mask_with_a_row_for_each_sequence_head_and_query_reaches_each)
{
	/* [2, 2, 2, 3] of one allowed key each; weights must be that key. */
	start(SIZE_MAX);
	struct job *job = parsed("{\"query\":[[[0,0],[0,0]],[[0,0],[0,0]]],"
	                         "\"key\":[[[0,0],[0,0],[0,0]],[[0,0],[0,0],[0,0]]],\"heads\":2,"
	                         "\"mask\":[[[[true,false,false],[false,true,false]],"
	                         "[[false,false,true],[false,true,false]]],"
	                         "[[[false,true,false],[false,false,true]],"
	                         "[[true,false,false],[false,false,true]]]]}");
	static const size_t allowed[8] = {0, 1, 2, 1, 1, 2, 0, 2};
	compute(&job, 1, 32, SIZE_MAX);
	for (size_t row = 0; row < 8; row++) {
		for (size_t key = 0; key < 3; key++)
			ck_assert_float_eq(job->attention->weights_out.data[3 * row + key],
			                   key == allowed[row]);
	}
	job_free(job);
	stop();
}
END_TEST

START_TEST(a_batch_gives_each_job_what_it_gets_alone)
{
	static const char *const bodies[] = {
	    "{\"query\":[[1,2],[3,4],[5,6]]}",
	    "{\"query\":" FIVE ",\"weights\":false}",
	    ("{\"query\":[[1,0],[0,4],[1,6]],\"mask\":[[true,true,false],[false,false,false],[true,true,true]"
	     "]"
	     "}"),
	    "{\"query\":{\"shape\":[0,3,2],\"data\":[]}}",
	    "{\"query\":[[7,1],[8,1],[9,1]],\"weights\":\"mean\",\"key_lengths\":2}",
	};
	struct job *jobs[5];
	start(SIZE_MAX);
	for (size_t i = 0; i < 5; i++)
		jobs[i] = parsed(bodies[i]);
	compute(jobs, 5, 32, SIZE_MAX);
	for (size_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(jobs[i]->batch_sequences, 8);
		size_t alone;
		char *reply = reply_alone(bodies[i], 32, SIZE_MAX, &alone);
		operation_attention.format(jobs[i], NULL);
		ck_assert_uint_eq(jobs[i]->reply_length, strlen(reply));
		ck_assert_mem_eq(jobs[i]->reply, reply, strlen(reply));
		free(reply);
		job_free(jobs[i]);
	}
	stop();
}
END_TEST

/* Refuses the first calls, then runs tiles one after the other. */
struct refusing {
	attn_executor face;
	attn_status status;
	size_t refuse;
};

static attn_status refuse_or_run(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct refusing *refusing = (struct refusing *)self;
	if (refusing->refuse == 0)
		return executor.parallel_for(&executor, tiles, run, arg);
	refusing->refuse--;
	return refusing->status;
}

START_TEST(memory_refused_to_a_batch_is_asked_for_job_by_job)
{
	start(SIZE_MAX);
	struct refusing refusing = {
	    .face = {.parallel_for = refuse_or_run, .scratch = scratch}, .status = ATTN_MEMORY, .refuse = 2};
	struct job *jobs[3];
	for (size_t i = 0; i < 3; i++)
		jobs[i] = parsed("{\"query\":[[1,2],[3,4]]}");
	operation_attention.compute(jobs, 3, kernels, &refusing.face, 32, SIZE_MAX);
	ck_assert_int_eq(jobs[0]->problem.code, PROBLEM_MEMORY);
	for (size_t i = 1; i < 3; i++) {
		ck_assert_int_eq(jobs[i]->problem.code, PROBLEM_NONE);
		ck_assert_uint_eq(jobs[i]->batch_sequences, 1);
	}
	for (size_t i = 0; i < 3; i++)
		job_free(jobs[i]);
	stop();
}
END_TEST

START_TEST(a_cancelled_call_is_not_tried_again)
{
	start(SIZE_MAX);
	struct refusing refusing = {.face = {.parallel_for = refuse_or_run, .scratch = scratch},
	                            .status = ATTN_CANCELLED,
	                            .refuse = 1};
	struct job *jobs[2] = {parsed("{\"query\":[[1,2],[3,4]]}"), parsed("{\"query\":[[1,2],[3,4]]}")};
	operation_attention.compute(jobs, 2, kernels, &refusing.face, 32, SIZE_MAX);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(jobs[i]->problem.code, PROBLEM_DEADLINE);
		job_free(jobs[i]);
	}
	stop();
}
END_TEST

START_TEST(a_body_that_is_refused_leaves_its_problem_and_no_request)
{
	start(SIZE_MAX);
	struct job *job = job_of("{\"query\":[[1,2],[3]]}");
	operation_attention.parse(job, NULL, &limits, 32);
	ck_assert_int_eq(job->problem.code, PROBLEM_RAGGED);
	ck_assert_ptr_null(job->attention);
	ck_assert_ptr_null(job->body);
	job_free(job);
	stop();
}
END_TEST

/* ---- through a model */

static struct job *model_job(struct registry *registry, unsigned seed, size_t sequences)
{
	struct model_instance *instance = registry_at(registry, 0);
	size_t width = attn_model_info_of(model_instance_model(instance)).width;
	struct job *job = job_new(&operation_model_attention, &budget);
	char *body = malloc(100 + 20 * sequences * 3 * width);
	int at = sprintf(body, "{\"query\":{\"shape\":[%zu,3,%zu],\"data\":[", sequences, width);
	for (size_t i = 0; i < sequences * 3 * width; i++)
		at +=
		    sprintf(body + at, "%s%.3f", i > 0 ? "," : "", (double)(rand_r(&seed) % 2001) / 1e3 - 1);
	strcpy(body + at, "]}}");
	job->body = body;
	job->body_length = strlen(body);
	job->model = model_instance_retain(instance);
	job->deadline = UINT64_MAX;
	operation_model_attention.parse(job, NULL, &limits, 32);
	ck_assert_msg(job->problem.code == PROBLEM_NONE, "%s", job->problem.detail);
	return job;
}

START_TEST(jobs_of_one_model_layer_share_a_call_and_keep_their_bits)
{
	struct registry *registry;
	attn_error err;
	start(SIZE_MAX);
	char *models = folder_of_model("config/models/tiny-mha");
	ck_assert_int_eq(registry_load(models, kernels, &registry, &err), ATTN_OK);
	folder_remove(models);
	struct job *jobs[3], *alone[3];
	for (unsigned i = 0; i < 3; i++) {
		jobs[i] = model_job(registry, i, i + 1);
		alone[i] = model_job(registry, i, i + 1);
		ck_assert_mem_eq(&jobs[i]->key, &jobs[0]->key, sizeof(jobs[0]->key));
		compute(&alone[i], 1, 1, SIZE_MAX);
	}
	registry_free(registry); /* the jobs hold the model */
	compute(jobs, 3, 32, SIZE_MAX);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(jobs[i]->batch_sequences, 6);
		ck_assert_uint_eq(alone[i]->batch_sequences, 1);
		const struct reply_tensor *context = &jobs[i]->attention->context;
		ck_assert_mem_eq(context->data, alone[i]->attention->context.data,
		                 context->count * sizeof(float));
		job_free(jobs[i]);
		job_free(alone[i]);
	}
	stop();
}
END_TEST

SUITE_MAIN("operation_attention", jobs_of_one_model_layer_share_a_call_and_keep_their_bits,
           each_sequence_is_computed_from_its_own_tensors,
           jobs_share_a_call_only_when_all_that_a_call_has_once_is_equal,
           outputs_of_a_jobs_own_do_not_keep_it_from_a_call, options_of_the_whole_call_keep_jobs_apart,
           sizes_are_those_of_all_sequences_of_the_job, sequences_without_results_are_not_computed,
           a_deadline_of_the_body_counts_from_arrival_and_only_shortens,
           a_request_that_can_never_fit_is_told_what_would, a_request_that_does_not_fit_now_is_told_so,
           after_formatting_only_the_reply_is_charged,
           a_job_over_the_caps_runs_as_several_calls_with_the_same_reply, masks_broadcast_as_numpy_does,
           a_mask_with_a_row_for_each_sequence_head_and_query_reaches_each,
           a_batch_gives_each_job_what_it_gets_alone, memory_refused_to_a_batch_is_asked_for_job_by_job,
           a_cancelled_call_is_not_tried_again, a_body_that_is_refused_leaves_its_problem_and_no_request)
