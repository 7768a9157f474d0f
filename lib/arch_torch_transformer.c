/*
 * arch_torch_transformer.c - torch.nn.Transformer, as its state_dict names it: encoder.layers.N and
 * decoder.layers.N, which has multihead_attn and norm3 besides, encoder.norm and decoder.norm.
 *
 * It reads embeddings. A position of the decoder sees those up to it alone, as with the mask that torch's
 * generate_square_subsequent_mask makes, unless config.json has "causal": false.
 */
#include "model.h"
#include "torch_layers.h"

static void torch_transformer_open(attn_loader *load)
{
	static const char *const names[ATTN_STACKS] = {"encoder.", "decoder."};
	const attn_torch_blocks blocks = attn_torch_blocks_read(load, names[ATTN_FIRST_STACK]);
	const bool causal = attn_load_flag(load, "causal", true);
	attn_load_stacks(load, attn_torch_blocks_count(load, names[ATTN_FIRST_STACK]),
	                 attn_torch_blocks_count(load, names[ATTN_SECOND_STACK]));
	if (!attn_load_ok(load))
		return;
	for (size_t stack = ATTN_FIRST_STACK; stack < ATTN_STACKS; stack++)
		attn_torch_blocks_load(load, &blocks, names[stack], attn_model_stack_of(load->model, stack));
	attn_torch_blocks_causal(attn_model_stack_of(load->model, ATTN_SECOND_STACK), causal);
}

const attn_arch attn_arch_torch_transformer = {"torch-transformer", torch_transformer_open};
