/*
 * Whole requests, the loading of models and the start of a pipeline, with each allocation refused in turn:
 * alone, and with all that follow. Every end is the right result or the problem out-of-memory, with nothing
 * kept.
 */
#include "kernel_sets.h"
#include "model_files.h"
#include "observe/clock.h"
#include "pipeline/job_coding.h"
#include "pipeline/operation.h"
#include "pipeline/pipeline.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <uv.h>
#include <zlib.h>

/* ---- the system's memory, for the program and the shared libraries it uses */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED)
#define SYSTEM(name) __interceptor_##name
#else
#define SYSTEM(name) __libc_##name
#endif
/* Called by the loader before a sanitizer has its own tables. */
#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))
#define ALLOCATOR BARE __attribute__((visibility("default")))

extern void *SYSTEM(malloc)(size_t);
extern void *SYSTEM(calloc)(size_t, size_t);
extern void *SYSTEM(realloc)(void *, size_t);
extern void *SYSTEM(memalign)(size_t, size_t);

/* Of the thread that sweeps: others, those of OpenBLAS and of sanitizers too, get what they ask for. */
static pthread_t sweeper;
static long allowed = -1; /* allocations until one is refused; -1: none is */
static bool for_good;     /* that one and all behind it */
static long refusals;

BARE static bool refused(void)
{
	if (!pthread_equal(pthread_self(), sweeper) || allowed < 0)
		return false;
	if (allowed > 0) {
		allowed--;
		return false;
	}
	allowed = for_good ? 0 : -1;
	refusals++;
	errno = ENOMEM;
	return true;
}

ALLOCATOR void *malloc(size_t size)
{
	return refused() ? NULL : SYSTEM(malloc)(size);
}

ALLOCATOR void *calloc(size_t count, size_t size)
{
	return refused() ? NULL : SYSTEM(calloc)(count, size);
}

ALLOCATOR void *realloc(void *block, size_t size)
{
	return refused() ? NULL : SYSTEM(realloc)(block, size);
}

ALLOCATOR void *aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : SYSTEM(memalign)(alignment, size);
}

ALLOCATOR int posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = aligned_alloc(alignment, size);
	return *out != NULL ? 0 : ENOMEM;
}

static void refuse_no_more(void)
{
	allowed = -1;
}

#define MOST_ALLOCATIONS 5000

/* Tries with allocation 0, 1, 2, ... refused until none is; how many that took. attempt refuses no more
 * before it judges, and returns whether all went as if nothing had been refused. */
static long sweep(bool (*attempt)(void *arg), void *arg)
{
	long count = 0;
	sweeper = pthread_self();
	for (int turn = 0; turn < 2; turn++) {
		bool whole = false;
		for_good = turn == 1;
		for (count = 0; count < MOST_ALLOCATIONS; count++) {
			refusals = 0;
			allowed = count;
			whole = attempt(arg);
			if (refusals == 0)
				break;
		}
		ck_assert_int_lt(count, MOST_ALLOCATIONS);
		ck_assert(whole);
	}
	return count;
}

/* ---- bodies */

struct body {
	char *bytes;
	size_t length;
};

/* JSON with single quotes for double ones. */
static struct body body_of_text(const char *text)
{
	struct body body = {strdup(text), strlen(text)};
	ck_assert_ptr_nonnull(body.bytes);
	for (char *c = body.bytes; *c != '\0'; c++)
		*c = (char)(*c == '\'' ? '"' : *c);
	return body;
}

/* safetensors: the header's text, float32 numbers, bytes 1, 0, 1, 0, ... */
static struct body body_of_tensors(const char *header, size_t floats, size_t booleans)
{
	struct body text = body_of_text(header);
	uint64_t length = text.length; /* little-endian, as this machine */
	struct body body = {.length = sizeof(length) + text.length + floats * sizeof(float) + booleans};
	char *at = body.bytes = malloc(body.length);
	ck_assert_ptr_nonnull(at);
	memcpy(at, &length, sizeof(length));
	memcpy(at + sizeof(length), text.bytes, text.length);
	at += sizeof(length) + text.length;
	for (size_t i = 0; i < floats; i++, at += sizeof(float))
		memcpy(at, &(float){(float)(i * i % 13) / 4 - 1.5f}, sizeof(float));
	for (size_t i = 0; i < booleans; i++)
		*at++ = i % 2 == 0;
	free(text.bytes);
	return body;
}

static struct body body_packed(struct body plain)
{
	z_stream stream = {.next_in = (unsigned char *)plain.bytes, .avail_in = (uInt)plain.length};
	ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	struct body body = {.length = deflateBound(&stream, plain.length)};
	body.bytes = malloc(body.length);
	ck_assert_ptr_nonnull(body.bytes);
	stream.next_out = (unsigned char *)body.bytes;
	stream.avail_out = (uInt)body.length;
	ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	body.length = stream.total_out;
	deflateEnd(&stream);
	free(plain.bytes);
	return body;
}

/* ---- one request as a worker takes it */

static const struct attention_limits limits = {
    .sequence_length = 4096, .elements = 1 << 20, .reply_bytes = 1 << 24, .timeout_ms = 60000};
#define MAX_BODY ((size_t)1 << 20)
#define MOST_JOBS 4

struct trial {
	attn_kernels *kernels;
	const struct operation *operation;
	struct model_instance *model;
	struct body_forms forms;
	struct body body;
	enum coding body_coding, reply_coding;
	size_t jobs; /* of the same body, in one call */
	struct budget budget;
	struct queue *queue;
	attn_arena *scratch;
	char *wanted; /* the reply */
	size_t wanted_length;
};

/* NULL when the system refuses memory for the job. No ck_assert until judged: it allocates. */
static struct job *trial_job(struct trial *trial)
{
	struct job *job = job_new(trial->operation, &trial->budget);
	if (job == NULL || (job->body = malloc(trial->body.length)) == NULL) {
		if (job != NULL)
			job_free(job);
		return NULL;
	}
	memcpy(job->body, trial->body.bytes, trial->body.length);
	job->body_length = trial->body.length;
	job->body_coding = trial->body_coding;
	job->reply_coding = trial->reply_coding;
	job->forms = trial->forms;
	job->model = trial->model != NULL ? model_instance_retain(trial->model) : NULL;
	job->deadline = UINT64_MAX;
	if (job_charge(job, job->body_length) != BUDGET_OK)
		abort();
	return job;
}

/* The three tasks return how many of their jobs end with them. */

static size_t parse(struct trial *trial, struct job *job)
{
	attn_executor executor = attn_executor_serial(trial->scratch);
	job_decode(job, MAX_BODY);
	if (!job_over(job))
		job->operation->parse(job, &executor, &limits, 32);
	if (!job_over(job) && !queue_put_parsed(trial->queue, job, 0))
		problem_set_status(&job->problem, ATTN_MEMORY);
	return job_over(job);
}

static size_t compute(struct trial *trial, struct job **jobs, size_t count)
{
	attn_executor executor = attn_executor_serial(trial->scratch);
	attn_arena_mark mark = attn_arena_here(trial->scratch);
	size_t left = 0;
	jobs[0]->operation->compute(jobs, count, trial->kernels, &executor, 32, SIZE_MAX);
	attn_arena_rewind(trial->scratch, mark);
	for (size_t i = 0; i < count; i++) {
		if (!job_over(jobs[i]))
			jobs[left++] = jobs[i];
	}
	queue_put_computed(trial->queue, jobs, left, 0);
	return count - left;
}

static size_t format(struct trial *trial, struct job *job)
{
	attn_executor executor = attn_executor_serial(trial->scratch);
	job->operation->format(job, &executor);
	if (!job_over(job))
		job_encode(job);
	return 1;
}

/* All tasks that the queue has for a worker until that many jobs have ended. */
static void work(struct trial *trial, size_t jobs)
{
	struct job *batch[MOST_JOBS];
	struct task task = {.kind = TASK_NONE, .jobs = batch};
	for (size_t ended = 0; ended < jobs;) {
		queue_take(trial->queue, &task, 0);
		if (task.kind == TASK_PARSE)
			ended += parse(trial, task.jobs[0]);
		else if (task.kind == TASK_COMPUTE)
			ended += compute(trial, task.jobs, task.count);
		else if (task.kind == TASK_FORMAT)
			ended += format(trial, task.jobs[0]);
	}
}

/* ---- what came of it */

static void expect_packed(const struct trial *trial, const struct job *job)
{
	z_stream stream = {.next_in = (unsigned char *)job->reply, .avail_in = (uInt)job->reply_length};
	char *plain = malloc(trial->wanted_length + 1);
	ck_assert_ptr_nonnull(plain);
	ck_assert_int_eq(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	stream.next_out = (unsigned char *)plain;
	stream.avail_out = (uInt)trial->wanted_length + 1;
	ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(stream.total_out, trial->wanted_length);
	ck_assert_mem_eq(plain, trial->wanted, trial->wanted_length);
	inflateEnd(&stream);
	free(plain);
}

/* The reply, by its bits, or the problem of memory; whether it is what comes when nothing is refused. */
static bool judge(const struct trial *trial, const struct job *job)
{
	if (job == NULL)
		return false;
	if (job->problem.code != PROBLEM_NONE) {
		ck_assert_msg(job->problem.code == PROBLEM_MEMORY, "%s at %s: %s",
		              problem_code_text(job->problem.code), job->problem.pointer,
		              job->problem.detail);
		ck_assert_ptr_null(job->reply);
		return false;
	}
	ck_assert_ptr_nonnull(job->reply);
	if (job->reply_coding == CODING_IDENTITY) {
		ck_assert_uint_eq(job->reply_length, trial->wanted_length);
		ck_assert_mem_eq(job->reply, trial->wanted, trial->wanted_length);
	} else {
		expect_packed(trial, job);
	}
	return job->reply_coding == trial->reply_coding;
}

static bool trial_run(void *arg)
{
	struct trial *trial = arg;
	struct job *jobs[MOST_JOBS] = {NULL};
	size_t submitted = 0;
	bool whole = true;
	for (size_t i = 0; i < trial->jobs; i++) {
		jobs[i] = trial_job(trial);
		if (jobs[i] != NULL && queue_submit(trial->queue, jobs[i], 0))
			submitted++;
	}
	work(trial, submitted);
	refuse_no_more();
	for (size_t i = 0; i < trial->jobs; i++) {
		whole = judge(trial, jobs[i]) && whole;
		if (jobs[i] != NULL)
			job_free(jobs[i]);
	}
	ck_assert_uint_eq(budget_used(&trial->budget), 0);
	ck_assert_ptr_null(attn_arena_here(trial->scratch).chunk);
	return whole;
}

/* Runs the body as it is, for the reply to compare with. */
static void trial_learn(struct trial *trial)
{
	struct job *job = trial_job(trial);
	ck_assert_ptr_nonnull(job);
	ck_assert(queue_submit(trial->queue, job, 0));
	work(trial, 1);
	ck_assert_msg(job->problem.code == PROBLEM_NONE, "%s: %s", job->problem.pointer, job->problem.detail);
	trial->wanted = job->reply;
	trial->wanted_length = job->reply_length;
	job->reply = NULL;
	job_free(job);
}

/* The arena keeps nothing, so that it asks the system anew in each run. */
static void trial_open(struct trial *trial, attn_kernels *kernels)
{
	const struct queue_config config = {
	    .limit = MOST_JOBS, .caps = {MOST_JOBS, 32, SIZE_MAX, SIZE_MAX}, .rules = {0, UINT64_MAX}};
	trial->kernels = kernels;
	budget_init(&trial->budget, (size_t)1 << 30);
	trial->queue = queue_new(&config);
	trial->scratch = attn_arena_new(0);
	ck_assert(trial->queue != NULL && trial->scratch != NULL);
}

static void trial_close(struct trial *trial)
{
	queue_free(trial->queue);
	attn_arena_free(trial->scratch);
	free(trial->wanted);
	free(trial->body.bytes);
}

/* Sweeps over requests of that body, which is taken over: plain and, both ways, compressed. */
static void sweep_body(attn_kernels *kernels, struct trial trial, struct body body)
{
	trial_open(&trial, kernels);
	trial.body = body;
	trial_learn(&trial);
	ck_assert_int_gt(sweep(trial_run, &trial), 10);
	trial.body = body_packed(body);
	trial.body_coding = trial.reply_coding = CODING_GZIP;
	ck_assert_int_gt(sweep(trial_run, &trial), 12);
	trial_close(&trial);
}

static void sweep_texts(attn_kernels *kernels, struct trial trial, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (enum body_form reply = BODY_JSON; reply < BODY_FORMS; reply++) {
			trial.forms = (struct body_forms){BODY_JSON, reply};
			sweep_body(kernels, trial, body_of_text(texts[i]));
		}
	}
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- requests */

#define QUERY "'query':[[1,2,3,4],[0,1,0,-1],[2,0.5,-3,1]]"
#define MATRIX(scale) "[[" #scale ",0,1,0],[0," #scale ",0,2],[1,0," #scale ",0],[0,1,0," #scale "]]"

static void a_json_request_ends_right_or_with_memory(attn_kernels *kernels)
{
	static const char *const texts[] = {
	    "{" QUERY "}",
	    ("{" QUERY ",'heads':2,'projections':{'query':" MATRIX(2) ",'query_bias':[1,2,3,4],'key':" MATRIX(
	        3) ",'value':" MATRIX(1) ",'output':" MATRIX(4) "},'projection_layout':'out_in',"
	                                                        "'weights':'mean','precision':4}"),
	    ("{" QUERY ",'heads':2,'kv_heads':1,'key':[[1,2],[3,4]],'value':{'shape':[2,2],'data':[5,6,7,8]},"
	     "'mask':[[true,false],[true,true],[false,false]],'bias':[[[0,1]],[[2,3]]],'key_lengths':2,"
	     "'causal':[1],'window':[2,-1],'softcap':2,'sink':[0.5,-1],'scale':0.5,"
	     "'weights':{'heads':[1,-2],'queries':[-1],'stage':['scores','capped','masked','softmax']},"
	     "'statistics':['entropy','logsumexp','max'],'projected':true}"),
	    ("{" QUERY ",'heads':2,'past_key':[[[1,2]],[[3,4]]],'past_value':[[[5,6]],[[7,8]]],"
	     "'positions':'rope','causal':true,'weights':{'top_k':2,'heads':[0],'queries':[0,2]}}"),
	    ("{'embeddings':[[[1,2],[3,4]],[[5,6],[7,8]]],'positions':'sinusoidal','key_lengths':[1,2],"
	     "'projections':{'query':{'shape':[2,2],'dtype':'float32','base64':"
	     "'AACAPwAAAEAAAEBAAACAQA=='}},'weights':{'stage':'softmax','top_k':1}}"),
	    ("{'query':[[[[1,2],[3,4]],[[5,6],[7,8]]]],'past_key':{'shape':[1,2,0,2],'data':[]},"
	     "'past_value':{'shape':[1,2,0,2],'data':[]},'positions':'alibi','timeout_ms':500}"),
	};
	sweep_texts(kernels, (struct trial){.operation = &operation_attention, .jobs = 1}, texts,
	            COUNT(texts));
}
ON_EACH_SET(a_json_request_ends_right_or_with_memory)

static void a_safetensors_request_ends_right_or_with_memory(attn_kernels *kernels)
{
	const struct body bodies[] = {
	    body_of_tensors("{'query':{'dtype':'F32','shape':[3,4],'data_offsets':[0,48]}}", 12, 0),
	    body_of_tensors(
	        ("{'__metadata__':{'heads':'2','causal':'top_left','weights':'{\\'top_k\\':2,\\'stage\\':"
	         "[\\'softmax\\']}','statistics':'[\\'max\\']','output_dtype':'bfloat16','format':'np',"
	         "'positions':'rope_interleaved'},"
	         "'query':{'dtype':'F32','shape':[3,4],'data_offsets':[0,48]},"
	         "'projections.query':{'dtype':'F32','shape':[4,4],'data_offsets':[48,112]},"
	         "'projections.query_bias':{'dtype':'F32','shape':[4],'data_offsets':[112,128]},"
	         "'past_key':{'dtype':'F32','shape':[2,1,2],'data_offsets':[128,144]},"
	         "'past_value':{'dtype':'F32','shape':[2,1,2],'data_offsets':[144,160]},"
	         "'sink':{'dtype':'F32','shape':[2],'data_offsets':[160,168]},"
	         "'bias':{'dtype':'F32','shape':[1,4],'data_offsets':[168,184]},"
	         "'mask':{'dtype':'BOOL','shape':[3,4],'data_offsets':[184,196]}}"),
	        46, 12),
	};
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct trial trial = {.operation = &operation_attention,
		                      .jobs = 1,
		                      .forms = {BODY_SAFETENSORS, BODY_SAFETENSORS}};
		sweep_body(kernels, trial, bodies[i]);
	}
}
ON_EACH_SET(a_safetensors_request_ends_right_or_with_memory)

static void requests_of_one_call_end_right_or_with_memory_each(attn_kernels *kernels)
{
	static const char *const texts[] = {
	    "{" QUERY ",'heads':2,'statistics':['entropy']}",
	    "{'query':[[[[1,2],[3,4]]]],'weights':false}",
	};
	sweep_texts(kernels, (struct trial){.operation = &operation_attention, .jobs = 3}, texts,
	            COUNT(texts));
}
ON_EACH_SET(requests_of_one_call_end_right_or_with_memory_each)

static void a_request_through_a_model_ends_right_or_with_memory(attn_kernels *kernels)
{
	static const char *const texts[] = {
	    "{'layer':0,'kind':'self','query':{'shape':[1,16],'data':[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]},"
	    "'past_key':{'shape':[4,0,4],'data':[]},'past_value':{'shape':[4,0,4],'data':[]}}",
	};
	struct registry *registry = NULL;
	attn_error error;
	char *models = folder_of_model("config/models/tiny-mha");
	ck_assert_int_eq(registry_load(models, kernels, &registry, &error), ATTN_OK);
	folder_remove(models);
	sweep_texts(kernels,
	            (struct trial){.operation = &operation_model_attention,
	                           .model = registry_at(registry, 0),
	                           .jobs = 2},
	            texts, COUNT(texts));
	registry_free(registry);
}
ON_EACH_SET(a_request_through_a_model_ends_right_or_with_memory)

static void a_forward_request_ends_right_or_with_memory(attn_kernels *kernels)
{
	static const char *const texts[] = {
	    ("{'tokens':[[1,2],[3],[4,5]],'outputs':['hidden','hidden_all','weights','logits','pooled'],"
	     "'layers':[-1],'queries':[0],'heads':[0],'top_logits':2,'statistics':'entropy','rollout':true,"
	     "'ablate':[[0,1]]}"),
	    "{'tokens':{'shape':[1],'dtype':'int32','base64':'AQAAAA=='},'outputs':'weights','top_k':1}",
	    ("{'embeddings':{'shape':[1,24],'data':[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]},"
	     "'outputs':'logits_all'}"),
	};
	struct registry *registry = NULL;
	attn_error error;
	ck_assert_int_eq(registry_load("tests/models", kernels, &registry, &error), ATTN_OK);
	sweep_texts(kernels,
	            (struct trial){.operation = &operation_forward,
	                           .model = registry_find(registry, "gpt2-head"),
	                           .jobs = 2},
	            texts, COUNT(texts));
	registry_free(registry);
}
ON_EACH_SET(a_forward_request_ends_right_or_with_memory)

static void a_binary_forward_request_ends_right_or_with_memory(attn_kernels *kernels)
{
	static const char header[] =
	    "{'tokens':{'dtype':'I32','shape':[2],'data_offsets':[0,8]},"
	    "'__metadata__':{'outputs':'[\\'weights\\',\\'hidden\\']','layers':'[0]'}}";
	struct registry *registry = NULL;
	attn_error error;
	ck_assert_int_eq(registry_load("tests/models", kernels, &registry, &error), ATTN_OK);
	struct body body = body_of_tensors(header, 2, 0);
	memset(body.bytes + body.length - 8, 0, 8); /* both tokens are 0 */
	sweep_body(kernels,
	           (struct trial){.operation = &operation_forward,
	                          .model = registry_find(registry, "bert-plain"),
	                          .forms = {BODY_SAFETENSORS, BODY_SAFETENSORS},
	                          .jobs = 1},
	           body);
	registry_free(registry);
}
ON_EACH_SET(a_binary_forward_request_ends_right_or_with_memory)

/* ---- what stands before requests */

struct loading {
	const char *models; /* a folder with one model */
	size_t parameters;  /* of it */
};

static bool load(void *arg)
{
	const struct loading *loading = arg;
	struct registry *registry = NULL;
	attn_error error = {.status = ATTN_OK};
	attn_status status = registry_load(loading->models, plain_kernels(), &registry, &error);
	refuse_no_more();
	if (status != ATTN_OK) {
		ck_assert_msg(status == ATTN_MEMORY && error.status == status, "%d: %s", status,
		              error.message);
		return false;
	}
	if (registry_failures(registry) > 0) {
		const attn_error *failure = registry_failure(registry, 0);
		ck_assert_msg(failure->status == ATTN_MEMORY, "%d: %s", failure->status, failure->message);
		ck_assert_uint_le(registry_count(registry), 1);
		registry_free(registry);
		return false;
	}
	ck_assert_uint_eq(registry_count(registry), 1);
	const attn_model *model = model_instance_model(registry_at(registry, 0));
	ck_assert_uint_eq(attn_model_info_of(model).parameters, loading->parameters);
	registry_free(registry);
	return true;
}

START_TEST(models_are_loaded_whole_or_end_with_memory)
{
	attn_model *model = NULL;
	attn_error error;
	ck_assert_int_eq(attn_model_open("config/models/tiny-mha", plain_kernels(), &model, &error), ATTN_OK);
	char *models = folder_of_model("config/models/tiny-mha");
	struct loading loading = {models, attn_model_info_of(model).parameters};
	attn_model_free(model);
	ck_assert_int_gt(sweep(load, &loading), 20);
	folder_remove(models);
}
END_TEST

struct opening {
	const char *folder;
	const attn_kernels *kernels;
};

static bool open_model(void *arg)
{
	const struct opening *opening = arg;
	attn_model *model = NULL;
	attn_error error = {.status = ATTN_OK};
	attn_status status = attn_model_open(opening->folder, opening->kernels, &model, &error);
	refuse_no_more();
	ck_assert_msg(status == ATTN_OK || status == ATTN_MEMORY, "%d: %s", status, error.message);
	ck_assert(error.status == status && (status == ATTN_OK) == (model != NULL));
	attn_model_free(model);
	return status == ATTN_OK;
}

static void stacks_are_loaded_or_end_with_memory(attn_kernels *kernels)
{
	static const char *const folders[] = {
	    "tests/models/gpt2-head",          "tests/models/llama-bfloat16-sharded",
	    "tests/models/marian-swish",       "tests/models/t5-relu",
	    "tests/models/torch-mha-appended", "tests/models/torch-transformer-pre-norm",
	    "tests/models/unet-heads-by-block"};
	for (size_t i = 0; i < COUNT(folders); i++)
		ck_assert_int_gt(sweep(open_model, &(struct opening){folders[i], kernels}), 20);
}
ON_EACH_SET(stacks_are_loaded_or_end_with_memory)

/* A tokenizer of a folder, and what it makes of a text. */
struct words {
	const char *folder, *text;
	struct text_tokens wanted;
	char *decoded;
};

static bool read_text(struct tokenizer *tokenizer, const struct words *words)
{
	struct problem problem = {.code = PROBLEM_NONE};
	struct text_tokens found;
	char *decoded = NULL;
	size_t length;
	bool read = tokenizer_encode(tokenizer, words->text, strlen(words->text), true, "", &found, &problem);
	bool back =
	    read && tokenizer_decode(tokenizer, found.ids, found.count, true, &decoded, &length, &problem);
	refuse_no_more();
	ck_assert(back || problem.code == PROBLEM_MEMORY);
	if (read) {
		ck_assert_uint_eq(found.count, words->wanted.count);
		ck_assert_mem_eq(found.ids, words->wanted.ids, found.count * sizeof(*found.ids));
		ck_assert_mem_eq(found.ranges, words->wanted.ranges, found.count * sizeof(*found.ranges));
	}
	if (back)
		ck_assert_str_eq(decoded, words->decoded);
	text_tokens_clear(&found);
	free(decoded);
	return back;
}

static bool open_and_read(void *arg)
{
	struct tokenizer *tokenizer = NULL;
	attn_error error = {.status = ATTN_OK};
	const struct words *words = arg;
	attn_status status = tokenizer_open(words->folder, &tokenizer, &error);
	if (status != ATTN_OK) {
		refuse_no_more();
		ck_assert_msg(status == ATTN_MEMORY && error.status == status, "%d: %s", status,
		              error.message);
		return false;
	}
	bool read = read_text(tokenizer, words);
	tokenizer_free(tokenizer);
	return read;
}

static void sweep_words(const char *folder, const char *text)
{
	struct words words = {.folder = folder, .text = text};
	struct problem problem = {.code = PROBLEM_NONE};
	struct tokenizer *tokenizer = NULL;
	attn_error error;
	size_t length;
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &error), ATTN_OK);
	ck_assert(tokenizer_encode(tokenizer, text, strlen(text), true, "", &words.wanted, &problem));
	ck_assert(tokenizer_decode(tokenizer, words.wanted.ids, words.wanted.count, true, &words.decoded,
	                           &length, &problem));
	tokenizer_free(tokenizer);
	ck_assert_int_gt(sweep(open_and_read, &words), 20);
	text_tokens_clear(&words.wanted);
	free(words.decoded);
}

static void sweep_files(const char *vocabulary, const char *merges, const char *config, const char *text)
{
	char *folder = folder_make();
	if (merges != NULL)
		folder_write_text(folder, "merges.txt", merges);
	folder_write_text(folder, vocabulary[0] == '{' ? "vocab.json" : "vocab.txt", vocabulary);
	folder_write_text(folder, "tokenizer_config.json", config);
	sweep_words(folder, text);
	folder_remove(folder);
}

START_TEST(tokenizers_are_opened_and_read_right_or_end_with_memory)
{
	static const char *const corpus[] = {"bert",  "bytes",  "forms", "replace",  "splits", "metaspace",
	                                     "added", "suffix", "bpe",   "template", "roberta"};
	for (size_t i = 0; i < COUNT(corpus); i++) {
		char path[128];
		size_t size;
		char *folder = folder_make();
		snprintf(path, sizeof(path), "tests/fuzz/corpus/tokenizer_json/%s", corpus[i]);
		char *json = file_read(path, &size);
		folder_write_text(folder, "tokenizer.json", json);
		sweep_words(folder, "ab a <s> caf\xC3\xA9 [MASK] Ab 12");
		free(json);
		folder_remove(folder);
	}
	sweep_files("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\n##b\n", NULL, "{\"do_lower_case\":true}",
	            "Ab [MASK]");
	sweep_files("{\"<|startoftext|>\":0,\"<|endoftext|>\":1,\"a\":2,\"a</w>\":3,\"aa</w>\":4}",
	            "a a</w>\n", "{\"tokenizer_class\":\"CLIPTokenizer\"}", "aa a");
	sweep_files(
	    "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}", "a b\n",
	    "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true,\"added_tokens_decoder\":{\"3\":{"
	    "\"content\":\"<|endoftext|>\",\"special\":true}}}",
	    "ab");
	sweep_files("{\"<unk>\":0,\"7\":1,\"+\":2,\"<s>\":3}", NULL, "{}", "7+8<s>");
}
END_TEST

static void ignore_job(void *context, struct job *job)
{
	(void)context, (void)job;
}

static void ignore_closed(void *context)
{
	(void)context;
}

struct ground {
	uv_loop_t loop;
	struct budget budget;
};

static bool start(void *arg)
{
	struct ground *ground = arg;
	const struct pipeline_config config = {.workers = 3,
	                                       .queue_limit = 1,
	                                       .max_batch = 2,
	                                       .max_batch_tokens = 1,
	                                       .max_batch_scores = 1,
	                                       .limits = limits,
	                                       .budget = &ground->budget};
	const struct pipeline_events events = {.returned = ignore_job, .deadline = ignore_job};
	attn_error error = {.status = ATTN_OK};
	struct pipeline *pipeline = pipeline_new(&ground->loop, &config, &events, &error);
	refuse_no_more();
	if (pipeline == NULL)
		ck_assert_msg(error.status == ATTN_MEMORY && error.message[0] != '\0', "%s", error.message);
	else
		pipeline_stop(pipeline, ignore_closed, NULL);
	uv_run(&ground->loop, UV_RUN_DEFAULT);
	return pipeline != NULL;
}

/* The loop has had a pipeline before: libuv ends the program where a loop's first memory is refused. */
START_TEST(a_pipeline_starts_whole_or_ends_with_memory)
{
	struct ground ground;
	budget_init(&ground.budget, 1 << 20);
	ck_assert_int_eq(uv_loop_init(&ground.loop), 0);
	ck_assert(start(&ground));
	ck_assert_int_gt(sweep(start, &ground), 5);
	ck_assert_int_eq(uv_loop_close(&ground.loop), 0);
}
END_TEST

SUITE_MAIN("allocation_sweep", EACH_SET(a_json_request_ends_right_or_with_memory),
           EACH_SET(a_safetensors_request_ends_right_or_with_memory),
           EACH_SET(requests_of_one_call_end_right_or_with_memory_each),
           EACH_SET(a_request_through_a_model_ends_right_or_with_memory),
           EACH_SET(a_forward_request_ends_right_or_with_memory),
           EACH_SET(stacks_are_loaded_or_end_with_memory),
           EACH_SET(a_binary_forward_request_ends_right_or_with_memory),
           tokenizers_are_opened_and_read_right_or_end_with_memory,
           models_are_loaded_whole_or_end_with_memory, a_pipeline_starts_whole_or_ends_with_memory)
