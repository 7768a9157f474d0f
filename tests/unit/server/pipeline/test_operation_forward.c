/* The forward operation without threads: which jobs it lets share a call, what it charges, how it cuts, and
 * that what one job meets does not harm its mates. */
#include "pipeline/operation.h"

#include "model_files.h"
#include "observe/clock.h"
#include "suite.h"

#include <string.h>

static const struct attention_limits limits = {
    .sequence_length = 4096, .elements = 1 << 20, .reply_bytes = 1 << 24, .timeout_ms = 60000};

static struct budget budget;
static struct registry *registry;
static struct model_instance *decoder, *pair;
static attn_arena *scratch;
static attn_executor executor;

static void start(size_t bytes)
{
	attn_error err;
	budget_init(&budget, bytes);
	ck_assert_int_eq(registry_load("tests/models", plain_kernels(), &registry, &err), ATTN_OK);
	decoder = registry_find(registry, "gpt2-head");
	pair = registry_find(registry, "t5-relu");
	scratch = attn_arena_new(1 << 20);
	executor = attn_executor_serial(scratch);
}

static void stop(void)
{
	attn_arena_free(scratch);
	registry_free(registry);
	ck_assert_uint_eq(budget_used(&budget), 0);
}

static struct job *parsed_for(struct model_instance *model, const char *body)
{
	struct job *job = job_new(&operation_forward, &budget);
	job->model = model_instance_retain(model);
	job->body = strdup(body);
	job->body_length = strlen(body);
	for (char *c = job->body; *c != '\0'; c++)
		*c = (char)(*c == '\'' ? '"' : *c);
	job->arrived = 1000;
	job->deadline = 1000 + 60 * CLOCK_NS_PER_S;
	ck_assert_int_eq(job_charge(job, job->body_length), BUDGET_OK);
	operation_forward.parse(job, NULL, &limits, 32);
	ck_assert_ptr_null(job->body);
	return job;
}

static struct job *parsed(struct model_instance *model, const char *body)
{
	struct job *job = parsed_for(model, body);
	ck_assert_msg(job->problem.code == PROBLEM_NONE, "%s: %s %s", body, job->problem.pointer,
	              job->problem.detail);
	return job;
}

static void compute(struct job **jobs, size_t count, size_t max_sequences, size_t max_scores)
{
	attn_arena_mark mark = attn_arena_here(scratch);
	operation_forward.compute(jobs, count, plain_kernels(), &executor, max_sequences, max_scores);
	attn_arena_rewind(scratch, mark);
}

/* The reply of a computed job, which is freed. */
static char *reply_of(struct job *job)
{
	ck_assert_msg(job->problem.code == PROBLEM_NONE, "%s", job->problem.detail);
	operation_forward.format(job, NULL);
	ck_assert_int_eq(job->problem.code, PROBLEM_NONE);
	char *reply = strndup(job->reply, job->reply_length);
	job_free(job);
	return reply;
}

static bool share(struct model_instance *model, const char *a, const char *b)
{
	struct job *first = parsed(model, a), *second = parsed(model, b);
	bool same = memcmp(&first->key, &second->key, sizeof(first->key)) == 0;
	job_free(first);
	job_free(second);
	return same;
}

START_TEST(jobs_of_equal_lengths_and_options_share_a_call)
{
	start(SIZE_MAX);
	static const char *const mates[] = {
	    "{'tokens':[3,4]}",
	    "{'tokens':[[3,4],[5,6]]}",
	    "{'tokens':[3,4],'outputs':['weights','logits'],'layers':[1]}",
	    "{'tokens':[3,4],'statistics':'max'}",
	    "{'tokens':[3,4],'outputs':'pooled'}",
	};
	for (size_t i = 0; i < sizeof(mates) / sizeof(mates[0]); i++)
		ck_assert_msg(share(decoder, "{'tokens':[1,2]}", mates[i]), "%s", mates[i]);
	stop();
}
END_TEST

START_TEST(what_a_call_has_once_keeps_jobs_apart)
{
	start(SIZE_MAX);
	static const char *const others[] = {
	    "{'tokens':[1,2,3]}",
	    "{'tokens':[[1,2],[3]]}",
	    "{'tokens':[1,2],'outputs':'weights','top_k':1}",
	    "{'tokens':[1,2],'outputs':'weights','heads':[0]}",
	    "{'tokens':[1,2],'outputs':'weights','queries':[0]}",
	    "{'tokens':[1,2],'top_logits':1}",
	    "{'tokens':[1,2],'outputs':'pooled','pooling':'last'}",
	    "{'tokens':[1,2],'outputs':'pooled','normalize':true}",
	    "{'tokens':[1,2],'ablate':[[0,0]]}",
	    "{'tokens':[1,2],'rollout':true}",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!share(decoder, "{'tokens':[1,2]}", others[i]), "%s", others[i]);
	/* Lists are a job's own. */
	ck_assert(!share(decoder, others[3], others[3]));
	ck_assert(share(decoder, others[1], "{'tokens':[[7],[1,2,3,4]]}"));
	ck_assert(!share(pair, "{'tokens':[1,2]}", "{'tokens':[1,2],'decoder_tokens':[1]}"));
	stop();
}
END_TEST

START_TEST(sizes_count_the_sequences_that_are_computed)
{
	start(SIZE_MAX);
	struct job *job = parsed(decoder, "{'tokens':[[1,2,3],[],[4],[5,6,7]]}");
	ck_assert_uint_eq(job->sequences, 3);
	ck_assert_uint_eq(job->tokens, 7);
	ck_assert_uint_eq(job->scores, 3 * (9 + 1 + 9));
	ck_assert_uint_eq(job->length, 3);
	ck_assert_uint_eq(job->heads, 3);
	ck_assert_uint_eq(job->width, 24);
	ck_assert(job->work > 0);
	job_free(job);
	job = parsed(pair, "{'tokens':[1,2,3],'decoder_tokens':[4,5,6,7]}");
	ck_assert_uint_eq(job->length, 4);
	ck_assert_uint_eq(job->scores, 3 * 16);
	job_free(job);
	stop();
}
END_TEST

START_TEST(caps_cut_calls_and_change_no_bit)
{
	static const char body[] =
	    "{'tokens':[[1,2],[3,4],[5,6],[7,8],[9,1]],'outputs':['hidden','weights']}";
	static const struct {
		size_t sequences, scores, largest;
	} caps[] = {{32, SIZE_MAX, 5}, {2, SIZE_MAX, 2}, {1, SIZE_MAX, 1}, {32, 24, 2}, {32, 1, 1}};
	start(SIZE_MAX);
	char *wanted = NULL;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct job *job = parsed(decoder, body);
		compute(&job, 1, caps[i].sequences, caps[i].scores);
		ck_assert_uint_eq(job->batch_sequences, caps[i].largest);
		char *reply = reply_of(job);
		if (wanted != NULL)
			ck_assert_str_eq(reply, wanted);
		free(wanted);
		wanted = reply;
	}
	free(wanted);
	stop();
}
END_TEST

START_TEST(ragged_jobs_meet_by_length)
{
	static const char *const bodies[] = {"{'tokens':[[1,2],[3]],'outputs':['hidden','logits']}",
	                                     "{'tokens':[[4],[5],[6,7],[8,9,1]],'outputs':'logits_all'}"};
	start(SIZE_MAX);
	char *alone[2];
	struct job *jobs[2];
	for (size_t i = 0; i < 2; i++) {
		struct job *job = parsed(decoder, bodies[i]);
		compute(&job, 1, 32, SIZE_MAX);
		alone[i] = reply_of(job);
		jobs[i] = parsed(decoder, bodies[i]);
	}
	compute(jobs, 2, 32, SIZE_MAX);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(jobs[i]->batch_sequences, 3); /* the three of length 1 */
		char *reply = reply_of(jobs[i]);
		ck_assert_str_eq(reply, alone[i]);
		free(reply);
		free(alone[i]);
	}
	stop();
}
END_TEST

START_TEST(what_one_job_meets_does_not_harm_its_mates)
{
	start(SIZE_MAX);
	struct job *jobs[3];
	for (size_t i = 0; i < 3; i++)
		jobs[i] = parsed(decoder, "{'tokens':[1,2]}");
	/* A token that the parse would have refused makes the library refuse the call. */
	jobs[1]->forward->inputs[ATTN_FIRST_STACK].rows.values[1] = 1000;
	compute(jobs, 3, 32, SIZE_MAX);
	ck_assert_int_eq(jobs[1]->problem.code, PROBLEM_INTERNAL);
	job_free(jobs[1]);
	char *first = reply_of(jobs[0]), *last = reply_of(jobs[2]);
	ck_assert_str_eq(first, last);
	free(first);
	free(last);
	stop();
}
END_TEST

START_TEST(a_charge_holds_all_until_the_reply_which_is_charged_by_its_size)
{
	start(SIZE_MAX);
	struct job *job = parsed(decoder, "{'tokens':[[1,2,3],[4,5,6]],'outputs':'weights'}");
	size_t outputs = forward_request_output_bytes(job->forward);
	ck_assert_uint_eq(outputs, 2 * 2 * 3 * 9 * sizeof(float));
	ck_assert_uint_ge(job->charged, outputs + forward_request_reply_bytes(job->forward));
	compute(&job, 1, 32, SIZE_MAX);
	operation_forward.format(job, NULL);
	ck_assert_uint_eq(job->charged, job->reply_length);
	job_free(job);
	stop();
}
END_TEST

START_TEST(what_can_never_fit_is_told_what_takes_the_most)
{
	start(20000);
	struct job *job =
	    parsed_for(decoder, "{'tokens':[[1,2,3,4,5,6,7,8,9,1]],'outputs':['hidden','weights']}");
	ck_assert_int_eq(job->problem.code, PROBLEM_NEVER_FITS);
	ck_assert_msg(strstr(job->problem.detail, "`weights`") && strstr(job->problem.detail, "20000"), "%s",
	              job->problem.detail);
	job_free(job);
	stop();
}
END_TEST

START_TEST(a_deadline_of_the_body_only_shortens)
{
	start(SIZE_MAX);
	struct job *job = parsed(decoder, "{'tokens':[1],'timeout_ms':5}");
	ck_assert_uint_eq(job->deadline, 1000 + 5 * CLOCK_NS_PER_MS);
	job_free(job);
	stop();
}
END_TEST

SUITE_MAIN("operation_forward", jobs_of_equal_lengths_and_options_share_a_call,
           what_a_call_has_once_keeps_jobs_apart, sizes_count_the_sequences_that_are_computed,
           caps_cut_calls_and_change_no_bit, ragged_jobs_meet_by_length,
           what_one_job_meets_does_not_harm_its_mates,
           a_charge_holds_all_until_the_reply_which_is_charged_by_its_size,
           what_can_never_fit_is_told_what_takes_the_most, a_deadline_of_the_body_only_shortens)
