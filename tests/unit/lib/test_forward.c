#include "kernel_sets.h"
#include "model_files.h"
#include "small_models.h"

#include <math.h>
#include <string.h>

/* What attn_model_forward promises beside the numbers that test_forward_vectors.c compares. */

/* One model on one thread. */
struct fixture {
	struct draw draw;
	const attn_kernels *kernels;
	attn_arena *scratch;
	attn_executor executor;
	attn_model *model;
	attn_model_info info;
};

static void fixture_open(struct fixture *fixture, const attn_kernels *kernels, const char *name)
{
	*fixture = (struct fixture){
	    .draw = {.state = 7, .arena = attn_arena_new(0)},
	    .kernels = kernels,
	    .scratch = attn_arena_new(0),
	    .model = small_model_open(name, kernels),
	};
	fixture->executor = attn_executor_serial(fixture->scratch);
	fixture->info = attn_model_info_of(fixture->model);
}

static void fixture_close(struct fixture *fixture)
{
	attn_arena_free(fixture->draw.arena);
	attn_arena_free(fixture->scratch);
	attn_model_free(fixture->model);
}

static void forward(struct fixture *fixture, const attn_forward_call *call,
                    const attn_forward_sequence *sequence)
{
	ck_assert_int_eq(
	    attn_model_forward(fixture->model, fixture->kernels, &fixture->executor, call, sequence, 1),
	    ATTN_OK);
}

static attn_forward_sequence everything(struct fixture *fixture, const attn_forward_call *call,
                                        const attn_forward_sequence *sequence)
{
	return small_results(&fixture->draw, fixture->model, call, sequence, 100);
}

static void close_to(const float *actual, const float *want, size_t count, double within)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(fabs((double)actual[i] - (double)want[i]) <= within, "%zu: %.9g, not %.9g", i,
		              (double)actual[i], (double)want[i]);
}

/* ---- ablation */

/* A copy of bert-plain in which the output projection of a layer has zeros for a head, whose width is 6. */
static char *folder_without_head(size_t layer, size_t head)
{
	char name[96], *folder = folder_make();
	attn_safetensors *file = NULL;
	attn_error err;
	size_t size = 0, length = 0;
	char *bytes = file_read("tests/models/bert-plain/model.safetensors", &size);
	char *config = file_read("tests/models/bert-plain/config.json", &length);
	ck_assert_int_eq(attn_safetensors_parse(bytes, size, &file, &err), ATTN_OK);
	snprintf(name, sizeof(name), "encoder.layer.%zu.attention.output.dense.weight", layer);
	const attn_stored_tensor *weight = attn_safetensors_find(file, name);
	ck_assert(weight && weight->dtype == ATTN_FLOAT32 && weight->shape[1] == 24);
	char *at = bytes + ((const char *)weight->data - bytes);
	for (size_t row = 0; row < weight->shape[0]; row++)
		memset(at + (row * 24 + head * 6) * sizeof(float), 0, 6 * sizeof(float));
	folder_write(folder, "model.safetensors", bytes, size);
	folder_write(folder, "config.json", config, length);
	attn_safetensors_free(file);
	free(bytes);
	free(config);
	return folder;
}

static void an_ablated_head_weighs_nothing_and_adds_nothing(attn_kernels *kernels)
{
	enum { LAYER = 1, HEAD = 2, LENGTH = 7, HEADS = 4 };
	struct fixture fixture;
	fixture_open(&fixture, kernels, "bert-plain");
	attn_forward_call call = small_call(fixture.model, LENGTH, 0);
	const attn_forward_sequence input = small_sequence(&fixture.draw, fixture.model, &call);
	const attn_forward_sequence whole = everything(&fixture, &call, &input);
	const attn_forward_sequence less = everything(&fixture, &call, &input);
	const attn_forward_sequence want = everything(&fixture, &call, &input);
	forward(&fixture, &call, &whole);
	const attn_ablation ablation = {ATTN_FIRST_STACK, LAYER, HEAD};
	call.ablations = &ablation;
	call.ablation_count = 1;
	forward(&fixture, &call, &less);
	const size_t head = (size_t)LENGTH * LENGTH;
	for (size_t layer = 0; layer <= LAYER; layer++) {
		for (size_t h = 0; h < HEADS; h++) {
			const float *before = whole.attention[0][layer].weights + h * head;
			const float *after = less.attention[0][layer].weights + h * head;
			if (layer != LAYER || h != HEAD)
				ck_assert_mem_eq(before, after, head * sizeof(float));
			for (size_t i = 0; layer == LAYER && h == HEAD && i < head; i++)
				ck_assert(after[i] == 0);
		}
	}
	char *folder = folder_without_head(LAYER, HEAD);
	attn_model *model = NULL;
	attn_error err;
	ck_assert_int_eq(attn_model_open(folder, kernels, &model, &err), ATTN_OK);
	call.ablation_count = 0;
	ck_assert_int_eq(attn_model_forward(model, kernels, &fixture.executor, &call, &want, 1), ATTN_OK);
	for (size_t i = 0; i <= fixture.info.stacks[0].layers; i++)
		close_to(less.stacks[0].hidden[i], want.stacks[0].hidden[i], LENGTH * 24, 2e-6);
	attn_model_free(model);
	folder_remove(folder);
	fixture_close(&fixture);
}
ON_EACH_SET(an_ablated_head_weighs_nothing_and_adds_nothing)

/* ---- rollout */

enum { ROLLED = 6 };

/* One layer up, in double: half of the mean over heads and half the identity, times what was below. */
static void rollout_step(const float *weights, size_t heads, double rollout[ROLLED][ROLLED])
{
	double next[ROLLED][ROLLED] = {{0}};
	for (size_t i = 0; i < ROLLED; i++) {
		for (size_t k = 0; k < ROLLED; k++) {
			double share = i == k ? 0.5 : 0;
			for (size_t h = 0; h < heads; h++)
				share += 0.5 * (double)weights[(h * ROLLED + i) * ROLLED + k] / (double)heads;
			for (size_t j = 0; j < ROLLED; j++)
				next[i][j] += share * rollout[k][j];
		}
	}
	memcpy(rollout, next, sizeof(next));
}

static void rollouts_multiply_upwards(attn_kernels *kernels)
{
	for (size_t m = 0; small_models[m] != NULL; m++) {
		struct fixture fixture;
		double want[ROLLED][ROLLED] = {{0}};
		fixture_open(&fixture, kernels, small_models[m]);
		const attn_forward_call call = small_call(fixture.model, ROLLED, ROLLED);
		const attn_forward_sequence input = small_sequence(&fixture.draw, fixture.model, &call);
		const attn_forward_sequence result = everything(&fixture, &call, &input);
		forward(&fixture, &call, &result);
		for (size_t i = 0; i < ROLLED; i++)
			want[i][i] = 1;
		for (size_t i = 0; i < fixture.info.stacks[0].layers; i++)
			rollout_step(result.attention[0][i].weights, fixture.info.stacks[0].heads, want);
		for (size_t i = 0; i < ROLLED * ROLLED; i++)
			ck_assert_double_eq_tol((double)result.stacks[0].rollout[i],
			                        want[i / ROLLED][i % ROLLED], 1e-6);
		fixture_close(&fixture);
	}
}
ON_EACH_SET(rollouts_multiply_upwards)

/* ---- pooling */

static void pooled_by_definition(const float *hidden, size_t length, size_t width, attn_pooling pooling,
                                 bool normalize, double *out)
{
	double squares = 0;
	for (size_t i = 0; i < width; i++) {
		double sum = 0;
		for (size_t row = 0; row < length; row++)
			sum += (double)hidden[row * width + i] / (double)length;
		const size_t row = pooling == ATTN_POOL_FIRST ? 0 : length - 1;
		out[i] = pooling == ATTN_POOL_MEAN ? sum : (double)hidden[row * width + i];
		squares += out[i] * out[i];
	}
	for (size_t i = 0; normalize && i < width; i++)
		out[i] /= sqrt(squares);
}

static void pooled_vectors_are_of_the_last_hidden_states(attn_kernels *kernels)
{
	enum { WIDEST = 64 };
	struct fixture fixture;
	fixture_open(&fixture, kernels, "bert-plain");
	const size_t width = fixture.info.width;
	ck_assert_uint_le(width, WIDEST);
	for (int pooling = ATTN_POOL_MEAN; pooling <= ATTN_POOL_LAST; pooling++) {
		for (int normalize = 0; normalize < 2; normalize++) {
			attn_forward_call call = small_call(fixture.model, 5, 0);
			call.pooling = (attn_pooling)pooling;
			call.normalize = normalize;
			const attn_forward_sequence input =
			    small_sequence(&fixture.draw, fixture.model, &call);
			const attn_forward_sequence result = everything(&fixture, &call, &input);
			double want[WIDEST];
			forward(&fixture, &call, &result);
			const float *last = result.stacks[0].hidden[fixture.info.stacks[0].layers];
			pooled_by_definition(last, 5, width, call.pooling, normalize, want);
			for (size_t i = 0; i < width; i++)
				ck_assert_double_eq_tol((double)result.pooled[i], want[i], 1e-6);
		}
	}
	fixture_close(&fixture);
}
ON_EACH_SET(pooled_vectors_are_of_the_last_hidden_states)

/* ---- logits */

static void logits_of_the_last_position_are_those_of_all(attn_kernels *kernels)
{
	for (size_t m = 0; small_models[m] != NULL; m++) {
		struct fixture fixture;
		fixture_open(&fixture, kernels, small_models[m]);
		const size_t vocabulary = fixture.info.logit_count;
		attn_forward_call call = small_call(fixture.model, 5, 4);
		call.top_logits = fixture.info.logits ? vocabulary : 0;
		const size_t length = call.lengths[call.second ? ATTN_SECOND_STACK : ATTN_FIRST_STACK];
		const attn_forward_sequence input = small_sequence(&fixture.draw, fixture.model, &call);
		const attn_forward_sequence result = everything(&fixture, &call, &input);
		forward(&fixture, &call, &result);
		ck_assert(fixture.info.logits == (result.logits != NULL));
		if (fixture.info.logits)
			ck_assert_mem_eq(result.logits, result.logits_all + (length - 1) * vocabulary,
			                 vocabulary * sizeof(float));
		for (size_t i = 0; i < call.top_logits; i++) {
			const size_t token = (size_t)result.top_logit_indices[i];
			ck_assert(result.top_logit_values[i] == result.logits[token]);
			ck_assert(i == 0 || result.top_logit_values[i - 1] >= result.top_logit_values[i]);
		}
		fixture_close(&fixture);
	}
}
ON_EACH_SET(logits_of_the_last_position_are_those_of_all)

static void a_decoder_without_positions_has_no_logits(attn_kernels *kernels)
{
	struct fixture fixture;
	float untouched = 5;
	fixture_open(&fixture, kernels, "t5-relu");
	const attn_forward_call call = small_call(fixture.model, 3, 0);
	attn_forward_sequence sequence = small_sequence(&fixture.draw, fixture.model, &call);
	sequence.logits_all = &untouched;
	ck_assert(call.second && fixture.info.logits);
	forward(&fixture, &call, &sequence);
	ck_assert(untouched == 5);
	fixture_close(&fixture);
}
ON_EACH_SET(a_decoder_without_positions_has_no_logits)

/* ---- inputs */

static void embeddings_stand_in_for_tokens_before_positions(attn_kernels *kernels)
{
	static const struct {
		const char *folder, *table;
	} models[] = {{"bert-plain", "embeddings.word_embeddings.weight"},
	              {"gpt2-head", "transformer.wte.weight"},
	              {"llama-grouped", "model.embed_tokens.weight"},
	              {"clip-text", "text_model.embeddings.token_embedding.weight"}};
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		struct fixture fixture;
		char path[128];
		attn_safetensors *file = NULL;
		attn_error err;
		fixture_open(&fixture, kernels, models[m].folder);
		const size_t width = fixture.info.width;
		const attn_forward_call call = small_call(fixture.model, 6, 0);
		const attn_forward_sequence input = small_sequence(&fixture.draw, fixture.model, &call);
		const attn_forward_sequence want = everything(&fixture, &call, &input);
		attn_forward_sequence result = everything(&fixture, &call, &input);
		forward(&fixture, &call, &want);
		snprintf(path, sizeof(path), "tests/models/%s/model.safetensors", models[m].folder);
		ck_assert_int_eq(attn_safetensors_open(path, &file, &err), ATTN_OK);
		const attn_stored_tensor *table = attn_safetensors_find(file, models[m].table);
		ck_assert_msg(table && table->dtype == ATTN_FLOAT32, "%s", models[m].folder);
		float *rows = draw_floats(&fixture.draw, 6 * width);
		for (size_t i = 0; i < 6; i++)
			memcpy(rows + i * width,
			       (const char *)table->data +
			           (size_t)input.stacks[0].tokens[i] * width * sizeof(float),
			       width * sizeof(float));
		result.stacks[0].tokens = NULL;
		result.stacks[0].embeddings = rows;
		forward(&fixture, &call, &result);
		for (size_t i = 0; i <= fixture.info.stacks[0].layers; i++)
			ck_assert_mem_eq(want.stacks[0].hidden[i], result.stacks[0].hidden[i],
			                 6 * width * sizeof(float));
		attn_safetensors_free(file);
		fixture_close(&fixture);
	}
}
ON_EACH_SET(embeddings_stand_in_for_tokens_before_positions)

static void no_positions_give_nothing_but_zeros_to_pool(attn_kernels *kernels)
{
	struct fixture fixture;
	float pooled[24];
	memset(pooled, 1, sizeof(pooled));
	fixture_open(&fixture, kernels, "bert-plain");
	const attn_forward_call call = {.lengths = {0}};
	const attn_forward_sequence sequence = {.pooled = pooled};
	forward(&fixture, &call, &sequence);
	for (size_t i = 0; i < 24; i++)
		ck_assert(pooled[i] == 0);
	ck_assert_int_eq(attn_model_forward(fixture.model, kernels, &fixture.executor, &call, NULL, 0),
	                 ATTN_OK);
	fixture_close(&fixture);
}
ON_EACH_SET(no_positions_give_nothing_but_zeros_to_pool)

/* ---- calls that make no sense */

static void refused(struct fixture *fixture, const attn_forward_call *call,
                    const attn_forward_sequence *sequence, attn_status wanted)
{
	ck_assert_int_eq(
	    attn_model_forward(fixture->model, fixture->kernels, &fixture->executor, call, sequence, 1),
	    wanted);
}

static void calls_that_make_no_sense_are_invalid(attn_kernels *kernels)
{
	struct fixture fixture;
	float numbers[64 * 8];
	fixture_open(&fixture, kernels, "gpt2-head");
	const size_t vocabulary = fixture.info.vocabulary, layers = fixture.info.stacks[0].layers;
	const int64_t tokens[] = {0, 1}, below[] = {0, -1}, over[] = {(int64_t)vocabulary, 0};
	const attn_forward_call call = {.lengths = {2}};
	const attn_forward_sequence sequence = {.stacks = {{.tokens = tokens}}};
	forward(&fixture, &call, &sequence);

	attn_forward_call wrong = {.lengths = {2, 2}, .second = true};
	refused(&fixture, &wrong, &sequence, ATTN_INVALID);
	wrong = (attn_forward_call){.lengths = {fixture.info.stacks[0].positions + 1}};
	refused(&fixture, &wrong, &sequence, ATTN_INVALID);
	const attn_ablation ablations[] = {{ATTN_FIRST_STACK, layers, 0},
	                                   {ATTN_FIRST_STACK, 0, fixture.info.heads},
	                                   {ATTN_SECOND_STACK, 0, 0},
	                                   {ATTN_CROSS_STACKS, 0, 0},
	                                   {ATTN_STACK_KINDS, 0, 0}};
	for (size_t i = 0; i < sizeof(ablations) / sizeof(ablations[0]); i++) {
		wrong = call;
		wrong.ablations = &ablations[i];
		wrong.ablation_count = 1;
		refused(&fixture, &wrong, &sequence, ATTN_INVALID);
	}
	const size_t far = fixture.info.heads;
	const attn_selection selection = {.heads = &far, .head_count = 1};
	wrong = call;
	wrong.selections[ATTN_FIRST_STACK] = &selection;
	refused(&fixture, &wrong, &sequence, ATTN_INVALID);

	attn_forward_sequence odd = {.stacks = {{.tokens = below}}};
	refused(&fixture, &call, &odd, ATTN_INVALID);
	odd.stacks[0].tokens = over;
	refused(&fixture, &call, &odd, ATTN_INVALID);
	odd.stacks[0].tokens = NULL;
	refused(&fixture, &call, &odd, ATTN_INVALID);
	odd = sequence;
	odd.stacks[0].rollout = numbers;
	refused(&fixture, &call, &odd, ATTN_INVALID);
	odd = sequence;
	odd.top_logit_values = numbers;
	wrong = call;
	wrong.top_logits = vocabulary + 1;
	refused(&fixture, &wrong, &odd, ATTN_INVALID);
	wrong = (attn_forward_call){.lengths = {0}};
	odd.logits = numbers;
	refused(&fixture, &wrong, &odd, ATTN_INVALID);
	fixture_close(&fixture);
}
ON_EACH_SET(calls_that_make_no_sense_are_invalid)

static void logits_of_a_model_without_a_head_are_invalid(attn_kernels *kernels)
{
	struct fixture fixture;
	float logits[256];
	const int64_t tokens[] = {0, 1};
	fixture_open(&fixture, kernels, "bert-plain");
	const attn_forward_call call = {.lengths = {2}};
	const attn_forward_sequence sequence = {.stacks = {{.tokens = tokens}}, .logits = logits};
	ck_assert(!fixture.info.logits);
	refused(&fixture, &call, &sequence, ATTN_INVALID);
	fixture_close(&fixture);
}
ON_EACH_SET(logits_of_a_model_without_a_head_are_invalid)

START_TEST(a_layer_without_a_stack_has_no_forward_pass)
{
	attn_model *model = NULL;
	attn_error err;
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	ck_assert_int_eq(attn_model_open("config/models/tiny-mha", plain_kernels(), &model, &err), ATTN_OK);
	ck_assert_uint_eq(attn_model_info_of(model).stacks[ATTN_FIRST_STACK].layers, 0);
	const attn_forward_call call = {.lengths = {0}};
	ck_assert_int_eq(attn_model_forward(model, plain_kernels(), &executor, &call, NULL, 0), ATTN_INVALID);
	attn_model_free(model);
	attn_arena_free(scratch);
}
END_TEST

/* ---- scratch and interruption */

static void scratch_stays_within_what_was_said(attn_kernels *kernels)
{
	for (size_t m = 0; small_models[m] != NULL; m++) {
		for (size_t count = 1; count <= 5; count += 2) {
			struct fixture fixture;
			attn_forward_sequence sequences[5];
			fixture_open(&fixture, kernels, small_models[m]);
			attn_forward_call call = small_call(fixture.model, 3 + count, 2 + count);
			call.top_logits = fixture.info.logits ? 4 : 0;
			for (size_t s = 0; s < count; s++) {
				const attn_forward_sequence input =
				    small_sequence(&fixture.draw, fixture.model, &call);
				sequences[s] = everything(&fixture, &call, &input);
				if (s % 2 == 1)
					sequences[s].logits = NULL;
			}
			ck_assert_int_eq(attn_model_forward(fixture.model, kernels, &fixture.executor, &call,
			                                    sequences, count),
			                 ATTN_OK);
			const size_t said = attn_forward_scratch_bytes(fixture.model, &call, count) +
			                    attn_forward_tile_bytes(fixture.model, &call);
			ck_assert_uint_le(attn_arena_peak(fixture.scratch), said);
			ck_assert(attn_forward_work(fixture.model, &call) > 0);
			fixture_close(&fixture);
		}
	}
}
ON_EACH_SET(scratch_stays_within_what_was_said)

/* Runs tiles on the calling thread until it has been asked so many times, then nobody wants the result. */
struct impatient {
	attn_executor face;
	size_t patience;
};

static attn_status impatient_for(attn_executor *self, size_t tiles, attn_tile_fn *run, void *arg)
{
	struct impatient *impatient = (struct impatient *)self;
	attn_executor serial = attn_executor_serial(self->scratch);
	if (impatient->patience == 0)
		return ATTN_CANCELLED;
	impatient->patience--;
	return serial.parallel_for(&serial, tiles, run, arg);
}

static void a_pass_ends_where_the_executor_says(attn_kernels *kernels)
{
	struct fixture fixture;
	fixture_open(&fixture, kernels, "llama-grouped");
	attn_forward_call call = small_call(fixture.model, 6, 0);
	const attn_forward_sequence input = small_sequence(&fixture.draw, fixture.model, &call);
	const attn_forward_sequence result = everything(&fixture, &call, &input);
	attn_status status = ATTN_CANCELLED;
	size_t turns = 0;
	for (; status != ATTN_OK && turns < 1000; turns++) {
		struct impatient impatient = {{impatient_for, fixture.scratch}, turns};
		status = attn_model_forward(fixture.model, kernels, &impatient.face, &call, &result, 1);
		ck_assert(status == ATTN_OK || status == ATTN_CANCELLED);
	}
	ck_assert_uint_gt(turns, 3 * fixture.info.stacks[0].layers);
	ck_assert_int_eq(status, ATTN_OK);
	fixture_close(&fixture);
}
ON_EACH_SET(a_pass_ends_where_the_executor_says)

SUITE_MAIN("forward", EACH_SET(an_ablated_head_weighs_nothing_and_adds_nothing),
           EACH_SET(rollouts_multiply_upwards), EACH_SET(pooled_vectors_are_of_the_last_hidden_states),
           EACH_SET(logits_of_the_last_position_are_those_of_all),
           EACH_SET(a_decoder_without_positions_has_no_logits),
           EACH_SET(embeddings_stand_in_for_tokens_before_positions),
           EACH_SET(no_positions_give_nothing_but_zeros_to_pool),
           EACH_SET(calls_that_make_no_sense_are_invalid),
           EACH_SET(logits_of_a_model_without_a_head_are_invalid),
           a_layer_without_a_stack_has_no_forward_pass, EACH_SET(scratch_stays_within_what_was_said),
           EACH_SET(a_pass_ends_where_the_executor_says))
