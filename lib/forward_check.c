#include "forward_check.h"

#include "forward_head.h"

/* Whether the model has the stacks that run, and positions for their lengths. */
static bool stacks_valid(const attn_model *model, const attn_forward_call *call)
{
	for (size_t s = ATTN_FIRST_STACK; s <= attn_last_stack(call); s++) {
		const attn_stack *stack = attn_model_stack(model, s);
		if (stack->layers == 0 || (stack->positions > 0 && call->lengths[s] > stack->positions))
			return false;
	}
	return true;
}

/* Layers and heads of a stack kind; 0 where there are none. */
static size_t kind_layers(const attn_model *model, size_t kind)
{
	return attn_model_stack(model, kind == ATTN_CROSS_STACKS ? ATTN_SECOND_STACK : kind)->layers;
}

static size_t kind_heads(const attn_model *model, size_t kind, size_t layer)
{
	if (kind == ATTN_CROSS_STACKS)
		return attn_model_stack(model, ATTN_SECOND_STACK)->blocks[layer].cross.layer->heads;
	return attn_model_stack(model, kind)->blocks[layer].self.layer->heads;
}

static bool ablations_valid(const attn_model *model, const attn_forward_call *call)
{
	for (size_t i = 0; i < call->ablation_count; i++) {
		const attn_ablation *ablation = &call->ablations[i];
		if (ablation->kind >= ATTN_STACK_KINDS ||
		    ablation->layer >= kind_layers(model, ablation->kind) ||
		    ablation->head >= kind_heads(model, ablation->kind, ablation->layer))
			return false;
	}
	return true;
}

/* Whether the logits that a sequence wants can be computed; those of the last position need one. */
static bool logits_valid(const attn_model *model, const attn_forward_call *call,
                         const attn_forward_sequence *sequence)
{
	const bool has_second = attn_model_stack(model, ATTN_SECOND_STACK)->layers > 0;
	return attn_model_head(model)->linear.out > 0 && call->second == has_second &&
	       (call->lengths[attn_last_stack(call)] > 0 || !attn_last_logits_wanted(sequence)) &&
	       call->top_logits <= attn_model_head(model)->linear.out;
}

/* What a stack reads. */
static bool input_valid(const attn_stack *stack, const attn_forward_stack *input, size_t length)
{
	const size_t vocabulary = stack->embedding.tokens.count;
	if (length == 0)
		return true;
	if (input->tokens == NULL)
		return input->embeddings != NULL;
	for (size_t i = 0; i < length; i++)
		if (input->tokens[i] < 0 || (uint64_t)input->tokens[i] >= vocabulary)
			return false;
	return true;
}

static bool sequence_valid(const attn_model *model, const attn_forward_call *call,
                           const attn_forward_sequence *sequence)
{
	for (size_t s = ATTN_FIRST_STACK; s <= attn_last_stack(call); s++)
		if (!input_valid(attn_model_stack(model, s), &sequence->stacks[s], call->lengths[s]) ||
		    (sequence->stacks[s].rollout != NULL && !call->rollout))
			return false;
	return !attn_logits_wanted(sequence) || logits_valid(model, call, sequence);
}

attn_status attn_forward_check(const attn_model *model, const attn_forward_call *call,
                               const attn_forward_sequence *sequences, size_t count)
{
	if (!stacks_valid(model, call) || !ablations_valid(model, call) || call->pooling > ATTN_POOL_LAST)
		return ATTN_INVALID;
	for (size_t s = 0; s < count; s++)
		if (!sequence_valid(model, call, &sequences[s]))
			return ATTN_INVALID;
	return attn_forward_scratch_bytes(model, call, count) == SIZE_MAX ? ATTN_OVERFLOW : ATTN_OK;
}
