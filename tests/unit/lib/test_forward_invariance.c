#include "kernel_sets.h"
#include "shuffled_executor.h"
#include "small_models.h"

#include <string.h>

/* The results of a sequence must have the same bits alone, in any batch, in any slot, on any number of
 * threads, whatever was asked for. */

enum { MOST = 9, MOST_TOP = 3 };

static void same(const void *a, const void *b, size_t count, size_t size, const char *what)
{
	if (a != NULL && b != NULL && memcmp(a, b, count * size) != 0)
		ck_abort_msg("%s of a sequence depend on its call", what);
}

static void stacks_same(const attn_model *model, const attn_forward_call *call,
                        const attn_forward_sequence *a, const attn_forward_sequence *b)
{
	const attn_model_info info = attn_model_info_of(model);
	for (size_t s = 0; s < ATTN_STACKS; s++) {
		const size_t length = call->lengths[s];
		const attn_forward_stack *left = &a->stacks[s], *right = &b->stacks[s];
		same(left->rollout, right->rollout, length * length, sizeof(float), "rollouts");
		for (size_t i = 0; left->hidden && right->hidden && i <= info.stacks[s].layers; i++)
			same(left->hidden[i], right->hidden[i], length * info.stacks[s].width, sizeof(float),
			     "hidden states");
	}
}

static void attention_same(const attn_model *model, const attn_forward_call *call,
                           const attn_forward_sequence *a, const attn_forward_sequence *b)
{
	const attn_model_info info = attn_model_info_of(model);
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++) {
		const size_t stack = kind == ATTN_CROSS_STACKS ? ATTN_SECOND_STACK : kind;
		const size_t keys = call->lengths[kind == ATTN_CROSS_STACKS ? ATTN_FIRST_STACK : stack];
		const size_t rows = info.stacks[stack].heads * call->lengths[stack];
		for (size_t i = 0; a->attention[kind] && b->attention[kind] && i < info.stacks[stack].layers;
		     i++) {
			const attn_layer_results *left = &a->attention[kind][i],
			                         *right = &b->attention[kind][i];
			same(left->weights, right->weights, rows * keys, sizeof(float), "weights");
			same(left->top_values, right->top_values, rows * MOST_TOP, sizeof(float),
			     "top values");
			same(left->top_indices, right->top_indices, rows * MOST_TOP, sizeof(int64_t),
			     "top keys");
			same(left->entropy, right->entropy, rows, sizeof(float), "entropies");
			same(left->logsumexp, right->logsumexp, rows, sizeof(float), "logsumexps");
			same(left->maximum, right->maximum, rows, sizeof(float), "maxima");
		}
	}
}

static void results_same(const attn_model *model, const attn_forward_call *call,
                         const attn_forward_sequence *a, const attn_forward_sequence *b)
{
	const attn_model_info info = attn_model_info_of(model);
	const size_t last = call->second ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
	stacks_same(model, call, a, b);
	attention_same(model, call, a, b);
	same(a->pooled, b->pooled, info.stacks[ATTN_FIRST_STACK].width, sizeof(float), "pooled vectors");
	same(a->logits, b->logits, info.logit_count, sizeof(float), "logits");
	same(a->logits_all, b->logits_all, call->lengths[last] * info.logit_count, sizeof(float),
	     "logits of all positions");
	same(a->top_logit_values, b->top_logit_values, call->top_logits, sizeof(float), "top logits");
}

/* The results of a sequence that asked for everything and was alone, and then of batches that ask for this
 * and that. */
static void check_model(const attn_kernels *kernels, const attn_model *model, size_t threads, uint64_t seed)
{
	static const size_t batches[] = {1, 2, MOST};
	struct draw draw = {.state = seed, .arena = attn_arena_new((size_t)64 << 20)};
	struct shuffled_executor shuffled;
	attn_arena *scratch = attn_arena_new(0);
	attn_executor serial = attn_executor_serial(scratch);
	shuffled_executor_init(&shuffled, threads, seed);
	attn_forward_call call =
	    small_call(model, draw_size(&draw, MOST_TOP, 20), draw_size(&draw, MOST_TOP, 20));
	const attn_selection selection = {.top_k = MOST_TOP};
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++)
		call.selections[kind] = &selection;
	call.top_logits = attn_model_info_of(model).logits ? MOST_TOP : 0;
	call.pooling = (attn_pooling)draw_size(&draw, 0, ATTN_POOL_LAST);
	attn_forward_sequence sequence = small_sequence(&draw, model, &call);
	const attn_forward_sequence alone = small_results(&draw, model, &call, &sequence, 100);
	ck_assert_int_eq(attn_model_forward(model, kernels, &serial, &call, &alone, 1), ATTN_OK);
	for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
		attn_forward_sequence batch[MOST];
		const size_t slot = draw_size(&draw, 0, batches[b] - 1);
		for (size_t s = 0; s < batches[b]; s++) {
			attn_forward_sequence mate =
			    s == slot ? sequence : small_sequence(&draw, model, &call);
			batch[s] = small_results(&draw, model, &call, &mate, 50);
		}
		ck_assert_int_eq(
		    attn_model_forward(model, kernels, &shuffled.executor, &call, batch, batches[b]),
		    ATTN_OK);
		results_same(model, &call, &alone, &batch[slot]);
	}
	attn_arena_free(scratch);
	shuffled_executor_close(&shuffled);
	attn_arena_free(draw.arena);
}

static void bits_are_a_sequences_own_through_whole_stacks(attn_kernels *kernels)
{
	static const size_t threads[] = {1, 2, 8};
	for (size_t m = 0; small_models[m] != NULL; m++) {
		attn_model *model = small_model_open(small_models[m], kernels);
		for (uint64_t seed = 0; seed < 6; seed++)
			check_model(kernels, model, threads[seed % 3], seed);
		attn_model_free(model);
	}
}
ON_EACH_SET(bits_are_a_sequences_own_through_whole_stacks)

SUITE_MAIN("forward invariance", EACH_SET(bits_are_a_sequences_own_through_whole_stacks))
