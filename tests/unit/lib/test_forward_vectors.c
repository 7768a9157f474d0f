#include "attn.h"
#include "kernel_sets.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Checkpoints of every architecture with what torch, transformers and diffusers compute from them: folders
 * that tests/models/make_checkpoints.py made and describes. FORWARD_CASES names another folder of such
 * folders; FORWARD_TABLE=1 prints a line for each of them. */
#define FOLDER "tests/models"
#define WITHIN 1e-4 /* of the larger of 1 and the largest magnitude of the tensor */
enum { MOST_BATCH = 4, MOST_RESULTS = 512, NAME_MAX_BYTES = 64 };

static const char *const stack_names[ATTN_STACK_KINDS] = {"first", "second", "cross"};

/* One folder on one kernel set. */
struct run {
	const char *name;
	const attn_kernels *kernels;
	attn_arena *arena;
	attn_executor executor;
	attn_safetensors *vectors;
	attn_model *model;
	attn_model_info info;
	size_t batch;
	struct result {
		const attn_stored_tensor *expected;
		const float *actual;
	} results[MOST_RESULTS];
	size_t result_count;
	size_t layers; /* attention layers compared */
	double worst;
	const char *worst_name;
};

/* ------------------------------------------------------------------ expected tensors */

__attribute__((format(printf, 2, 3))) static const attn_stored_tensor *find(const struct run *run,
                                                                            const char *format, ...)
{
	char name[NAME_MAX_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	return attn_safetensors_find(run->vectors, name);
}

static size_t count_of(const attn_stored_tensor *tensor)
{
	size_t count = 0;
	ck_assert(attn_size_product(tensor->shape, tensor->rank, &count));
	return count;
}

static void *memory(const struct run *run, size_t count, size_t size)
{
	void *block = attn_arena_alloc(run->arena, count * size);
	ck_assert_ptr_nonnull(block);
	return memset(block, 0, count * size);
}

static const float *floats(const struct run *run, const attn_stored_tensor *tensor)
{
	float *out = memory(run, count_of(tensor), sizeof(float));
	ck_assert_int_eq(attn_to_float32(tensor->dtype, tensor->data, count_of(tensor), out), ATTN_OK);
	return out;
}

/* Room for a result of that shape, [batch, ...], to be compared; NULL where nothing is expected. */
static float *room(struct run *run, const attn_stored_tensor *expected)
{
	if (!expected)
		return NULL;
	ck_assert_msg(expected->shape[0] == run->batch, "%s: %s", run->name, expected->name);
	ck_assert_uint_lt(run->result_count, MOST_RESULTS);
	float *actual = memory(run, count_of(expected), sizeof(float));
	run->results[run->result_count++] = (struct result){expected, actual};
	return actual;
}

/* The part of a [batch, ...] result that belongs to a sequence. */
static float *part(const struct run *run, float *result, const attn_stored_tensor *expected, size_t sequence)
{
	return result ? result + sequence * (count_of(expected) / run->batch) : NULL;
}

/* ------------------------------------------------------------------ stacks */

static size_t layers_of(const struct run *run, size_t kind)
{
	return run->info.stacks[kind == ATTN_CROSS_STACKS ? ATTN_SECOND_STACK : kind].layers;
}

static void input_set(struct run *run, size_t stack, attn_forward_call *call,
                      attn_forward_sequence *sequences)
{
	const attn_stored_tensor *tokens = find(run, "%s.tokens", stack_names[stack]);
	const attn_stored_tensor *embeddings = find(run, "%s.embeddings", stack_names[stack]);
	const attn_stored_tensor *input = tokens ? tokens : embeddings;
	ck_assert_msg(input, "%s: no input for the stack %s", run->name, stack_names[stack]);
	run->batch = input->shape[0];
	ck_assert_uint_le(run->batch, MOST_BATCH);
	call->lengths[stack] = input->shape[1];
	size_t each = count_of(input) / run->batch;
	int64_t *ids = memory(run, count_of(input), sizeof(*ids));
	if (tokens)
		memcpy(ids, tokens->data, tokens->bytes);
	const float *rows = embeddings ? floats(run, embeddings) : NULL;
	for (size_t i = 0; i < run->batch; i++) {
		sequences[i].stacks[stack].tokens = tokens ? ids + i * each : NULL;
		sequences[i].stacks[stack].embeddings = rows ? rows + i * each : NULL;
	}
}

static void hidden_set(struct run *run, size_t stack, attn_forward_sequence *sequences)
{
	size_t states = layers_of(run, stack) + 1;
	float **pointers[MOST_BATCH];
	for (size_t i = 0; i < run->batch; i++)
		sequences[i].stacks[stack].hidden = pointers[i] = memory(run, states, sizeof(float *));
	for (size_t state = 0; state < states; state++) {
		const attn_stored_tensor *expected = find(run, "%s.hidden.%zu", stack_names[stack], state);
		float *result = room(run, expected);
		for (size_t i = 0; i < run->batch; i++)
			pointers[i][state] = part(run, result, expected, i);
	}
}

static void weights_set(struct run *run, size_t kind, attn_forward_sequence *sequences)
{
	attn_layer_results *results[MOST_BATCH];
	for (size_t i = 0; i < run->batch; i++)
		sequences[i].attention[kind] = results[i] =
		    memory(run, layers_of(run, kind), sizeof(attn_layer_results));
	for (size_t layer = 0; layer < layers_of(run, kind); layer++) {
		const attn_stored_tensor *expected = find(run, "%s.weights.%zu", stack_names[kind], layer);
		float *result = room(run, expected);
		for (size_t i = 0; i < run->batch; i++)
			results[i][layer].weights = part(run, result, expected, i);
		run->layers += result != NULL;
	}
}

static void stacks_run(struct run *run)
{
	attn_forward_call call = {.second = run->info.stacks[ATTN_SECOND_STACK].layers > 0};
	attn_forward_sequence sequences[MOST_BATCH] = {0};
	for (size_t stack = ATTN_FIRST_STACK; stack <= (size_t)call.second; stack++) {
		input_set(run, stack, &call, sequences);
		hidden_set(run, stack, sequences);
		weights_set(run, stack, sequences);
	}
	if (call.second)
		weights_set(run, ATTN_CROSS_STACKS, sequences);
	const attn_stored_tensor *expected = find(run, "logits");
	float *logits = room(run, expected);
	ck_assert_msg(run->info.logit_count == (logits ? expected->shape[2] : 0), "%s: numbers of a head",
	              run->name);
	for (size_t i = 0; i < run->batch; i++)
		sequences[i].logits_all = part(run, logits, expected, i);
	attn_status status =
	    attn_model_forward(run->model, run->kernels, &run->executor, &call, sequences, run->batch);
	ck_assert_msg(status == ATTN_OK, "%s: %s", run->name, attn_status_text(status));
}

/* ------------------------------------------------------------------ layers without a stack */

/* One input of a layer, [batch, rows, width]. */
struct input {
	const float *data;
	size_t rows, each; /* each: numbers of a sequence */
};

/* Input name of a layer, or where it is not there another one. */
static struct input input_of(struct run *run, size_t index, const char *name, struct input otherwise)
{
	const attn_stored_tensor *stored = find(run, "%zu.%s", index, name);
	if (!stored)
		return otherwise;
	run->batch = stored->shape[0];
	return (struct input){floats(run, stored), stored->shape[1], stored->shape[1] * stored->shape[2]};
}

/* A mask [queries, keys] of bytes shared by heads and sequences. */
static attn_mask mask_of(const struct run *run, size_t index)
{
	const attn_stored_tensor *stored = find(run, "%zu.mask", index);
	if (!stored)
		return (attn_mask){0};
	return (attn_mask){.data = stored->data, .query_stride = stored->shape[1], .key_stride = 1};
}

static void layer_run(struct run *run, size_t index, size_t number, attn_layer_kind kind)
{
	const struct input query = input_of(run, index, "query", (struct input){0});
	const struct input key = input_of(run, index, "key", query);
	const struct input value = input_of(run, index, "value", key);
	ck_assert_msg(query.data, "%s: no layer %zu expected", run->name, index);
	const attn_stored_tensor *outputs = find(run, "%zu.output", index);
	const attn_stored_tensor *weights = find(run, "%zu.weights", index);
	float *output = room(run, outputs), *weight = room(run, weights);
	attn_layer_sequence sequences[MOST_BATCH] = {0};
	for (size_t i = 0; i < run->batch; i++) {
		sequences[i].query = query.data + i * query.each;
		sequences[i].key = key.data + i * key.each;
		sequences[i].value = value.data + i * value.each;
		sequences[i].output = part(run, output, outputs, i);
		sequences[i].attend.weights = part(run, weight, weights, i);
		sequences[i].attend.mask = mask_of(run, index);
		sequences[i].attend.key_length = key.rows;
	}
	const attn_layer *layer = attn_model_layer(run->model, number, kind);
	const attn_options options = attn_model_options(run->model, number, kind);
	attn_status status = attn_layer_run(run->kernels, &run->executor, layer, query.rows,
	                                    key.rows + layer->appended, 0, &options, sequences, run->batch);
	ck_assert_msg(status == ATTN_OK, "%s: %s", run->name, attn_status_text(status));
	run->layers++;
}

static void layers_run(struct run *run)
{
	size_t index = 0;
	for (size_t i = 0; i < run->info.layers; i++)
		layer_run(run, index++, i, ATTN_SELF);
	for (size_t i = 0; i < run->info.cross_layers; i++)
		layer_run(run, index++, i, ATTN_CROSS);
}

/* ------------------------------------------------------------------ comparing */

/* Largest difference as a part of the larger of 1 and the tensor's largest magnitude; not a number is worst.
 */
static double difference(const struct result *result, const float *expected)
{
	double largest = 1, worst = 0;
	for (size_t i = 0; i < count_of(result->expected); i++) {
		double apart = fabs((double)result->actual[i] - (double)expected[i]);
		largest = fmax(largest, fabs((double)expected[i]));
		worst = isnan(apart) ? INFINITY : fmax(worst, apart);
	}
	return worst / largest;
}

static void results_compare(struct run *run)
{
	for (size_t i = 0; i < run->result_count; i++) {
		const struct result *result = &run->results[i];
		double apart = difference(result, floats(run, result->expected));
		if (apart >= run->worst) {
			run->worst = apart;
			run->worst_name = result->expected->name;
		}
	}
}

static bool is_input(const char *name)
{
	static const char *const endings[] = {".tokens", ".embeddings", ".query", ".key", ".value", ".mask"};
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const char *dot = strrchr(name, '.');
		if (dot && strcmp(dot, endings[i]) == 0)
			return true;
	}
	return false;
}

/* Every expected tensor was compared: the model has as many layers as the one it was taken from. */
static void all_compared(const struct run *run)
{
	size_t expected = 0;
	for (size_t i = 0; i < attn_safetensors_count(run->vectors); i++)
		expected += !is_input(attn_safetensors_at(run->vectors, i)->name);
	ck_assert_msg(expected == run->result_count, "%s: %zu results expected, %zu compared", run->name,
	              expected, run->result_count);
}

static void run_show(const struct run *run)
{
	if (getenv("FORWARD_TABLE"))
		printf("| %s | %s | %s | %zu | %.1e (%s) |\n", run->info.architecture, run->name,
		       attn_kernels_name(run->kernels), run->layers, run->worst, run->worst_name);
}

/* ------------------------------------------------------------------ folders */

static void folder_open(struct run *run, const char *root)
{
	char path[4096];
	attn_error err = {0};
	snprintf(path, sizeof(path), "%s/%s/vectors.safetensors", root, run->name);
	attn_status status = attn_safetensors_open(path, &run->vectors, &err);
	ck_assert_msg(status == ATTN_OK, "%s: %s", run->name, err.message);
	*strrchr(path, '/') = '\0';
	status = attn_model_open(path, run->kernels, &run->model, &err);
	ck_assert_msg(status == ATTN_OK, "%s: %s", run->name, err.message);
	run->info = attn_model_info_of(run->model);
}

/* Whether all results of a folder are within the limit; says which is furthest away if not. */
static bool folder_run(const char *root, const char *name, const attn_kernels *kernels)
{
	struct run *run = calloc(1, sizeof(*run));
	ck_assert_ptr_nonnull(run);
	run->name = name;
	run->kernels = kernels;
	run->arena = attn_arena_new(0);
	attn_arena *scratch = attn_arena_new(0);
	run->executor = attn_executor_serial(scratch);
	folder_open(run, root);
	if (run->info.stacks[ATTN_FIRST_STACK].layers > 0)
		stacks_run(run);
	else
		layers_run(run);
	all_compared(run);
	results_compare(run);
	run_show(run);
	const bool within = run->worst <= WITHIN;
	if (!within)
		printf("%s on %s: %s is %g away\n", name, attn_kernels_name(kernels), run->worst_name,
		       run->worst);
	attn_safetensors_free(run->vectors);
	attn_model_free(run->model);
	attn_arena_free(run->arena);
	attn_arena_free(scratch);
	free(run);
	return within;
}

static int is_case(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_REG &&
	       strcmp(entry->d_name, "__pycache__") != 0;
}

static void a_forward_pass_gives_what_its_framework_gives(attn_kernels *kernels)
{
	const char *root = getenv("FORWARD_CASES") ? getenv("FORWARD_CASES") : FOLDER;
	struct dirent **entries;
	int count = scandir(root, &entries, is_case, alphasort), away = 0;
	ck_assert_msg(count > 0, "no models in %s", root);
	for (int i = 0; i < count; i++) {
		away += !folder_run(root, entries[i]->d_name, kernels);
		free(entries[i]);
	}
	free(entries);
	fflush(stdout);
	ck_assert_msg(away == 0, "%d of %d models are over %g away", away, count, WITHIN);
}
ON_EACH_SET(a_forward_pass_gives_what_its_framework_gives)

SUITE_MAIN("forward vectors", EACH_SET(a_forward_pass_gives_what_its_framework_gives))
