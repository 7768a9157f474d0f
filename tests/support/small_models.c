#include "small_models.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

const char *const small_models[] = {"bert-plain",
                                    "gpt2-head",
                                    "llama-grouped",
                                    "mistral-window",
                                    "qwen3-head-norms",
                                    "t5-relu",
                                    "t5-gated-untied",
                                    "bart-scaled",
                                    "marian-swish",
                                    "marian-two-vocabularies",
                                    "clip-text",
                                    "torch-encoder-pre-norm",
                                    "torch-transformer-post-norm",
                                    NULL};

attn_model *small_model_open(const char *name, const attn_kernels *kernels)
{
	char folder[128];
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	snprintf(folder, sizeof(folder), "tests/models/%s", name);
	ck_assert_msg(attn_model_open(folder, kernels, &model, &err) == ATTN_OK, "%s", err.message);
	return model;
}

attn_forward_call small_call(const attn_model *model, size_t first, size_t second)
{
	const attn_model_info info = attn_model_info_of(model);
	attn_forward_call call = {.lengths = {first, second}, .rollout = true};
	call.second = info.stacks[ATTN_SECOND_STACK].layers > 0;
	for (size_t s = 0; s < ATTN_STACKS; s++) {
		const size_t most = info.stacks[s].positions;
		call.lengths[s] = most > 0 && call.lengths[s] > most ? most : call.lengths[s];
	}
	return call;
}

static void *zeros(struct draw *draw, size_t count, size_t size)
{
	void *memory = attn_arena_alloc(draw->arena, count * size);
	ck_assert_ptr_nonnull(memory);
	return memset(memory, 0, count * size);
}

static float *numbers(struct draw *draw, size_t count, unsigned percent)
{
	return draw_chance(draw, percent) ? zeros(draw, count, sizeof(float)) : NULL;
}

attn_forward_sequence small_sequence(struct draw *draw, const attn_model *model,
                                     const attn_forward_call *call)
{
	const attn_model_info info = attn_model_info_of(model);
	attn_forward_sequence sequence = {.pooled = NULL};
	for (size_t s = 0; s < ATTN_STACKS; s++) {
		int64_t *tokens = zeros(draw, call->lengths[s], sizeof(*tokens));
		const size_t vocabulary = info.stacks[s].vocabulary;
		for (size_t i = 0; vocabulary > 0 && i < call->lengths[s]; i++)
			tokens[i] = (int64_t)draw_size(draw, 0, vocabulary - 1);
		if (vocabulary > 0)
			sequence.stacks[s].tokens = tokens;
		else
			sequence.stacks[s].embeddings =
			    draw_floats(draw, call->lengths[s] * info.stacks[s].width);
	}
	return sequence;
}

static void stack_results(struct draw *draw, const attn_stack_info *info, size_t length, unsigned percent,
                          attn_forward_stack *out)
{
	float **hidden = zeros(draw, info->layers + 1, sizeof(*hidden));
	for (size_t i = 0; i <= info->layers; i++)
		hidden[i] = numbers(draw, length * info->width, percent);
	out->hidden = draw_chance(draw, percent) ? hidden : NULL;
	out->rollout = numbers(draw, length * length, percent);
}

static attn_layer_results *attention_results(struct draw *draw, const attn_forward_call *call, size_t kind,
                                             const attn_stack_info *info, unsigned percent)
{
	const size_t queries = call->lengths[kind == ATTN_CROSS_STACKS ? ATTN_SECOND_STACK : kind];
	const size_t keys = kind == ATTN_CROSS_STACKS ? call->lengths[ATTN_FIRST_STACK] : queries;
	const attn_selection *selection = call->selections[kind];
	const size_t top = selection != NULL ? selection->top_k : 0;
	const size_t rows = info->heads * queries;
	attn_layer_results *results = zeros(draw, info->layers, sizeof(*results));
	for (size_t i = 0; i < info->layers; i++) {
		results[i].weights = numbers(draw, rows * keys, percent);
		results[i].entropy = numbers(draw, rows, percent);
		results[i].logsumexp = numbers(draw, rows, percent);
		results[i].maximum = numbers(draw, rows, percent);
		if (top > 0)
			results[i].top_values = numbers(draw, rows * top, percent);
		if (top > 0)
			results[i].top_indices = zeros(draw, rows * top, sizeof(int64_t));
	}
	return draw_chance(draw, percent) ? results : NULL;
}

attn_forward_sequence small_results(struct draw *draw, const attn_model *model, const attn_forward_call *call,
                                    const attn_forward_sequence *sequence, unsigned percent)
{
	const attn_model_info info = attn_model_info_of(model);
	attn_forward_sequence copy = *sequence;
	const size_t last = call->second ? ATTN_SECOND_STACK : ATTN_FIRST_STACK;
	for (size_t s = 0; s <= last; s++)
		stack_results(draw, &info.stacks[s], call->lengths[s], percent, &copy.stacks[s]);
	for (size_t kind = 0; kind < ATTN_STACK_KINDS; kind++)
		copy.attention[kind] = attention_results(
		    draw, call, kind, &info.stacks[kind == ATTN_CROSS_STACKS ? ATTN_SECOND_STACK : kind],
		    percent);
	copy.pooled = numbers(draw, info.stacks[ATTN_FIRST_STACK].width, percent);
	if (!info.logits || call->lengths[last] == 0)
		return copy;
	copy.logits = numbers(draw, info.logit_count, percent);
	copy.logits_all = numbers(draw, call->lengths[last] * info.logit_count, percent);
	copy.top_logit_values = numbers(draw, call->top_logits, percent);
	copy.top_logit_indices = zeros(draw, call->top_logits, sizeof(int64_t));
	return copy;
}
