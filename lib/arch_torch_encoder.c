/*
 * arch_torch_encoder.c - torch.nn.TransformerEncoder, as its state_dict names it: layers.N.{self_attn,
 * linear1, linear2, norm1, norm2}, and norm where it was given one.
 *
 * It reads embeddings. "causal": true in config.json makes each position see those up to it alone, as
 * is_causal does in torch.
 */
#include "model.h"
#include "torch_layers.h"

static void torch_encoder_open(attn_loader *load)
{
	const attn_torch_blocks blocks = attn_torch_blocks_read(load, "");
	const bool causal = attn_load_flag(load, "causal", false);
	attn_stack *stack = attn_load_stacks(load, attn_torch_blocks_count(load, ""), 0);
	if (!attn_load_ok(load))
		return;
	attn_torch_blocks_load(load, &blocks, "", stack);
	attn_torch_blocks_causal(stack, causal);
}

const attn_arch attn_arch_torch_encoder = {"torch-encoder", torch_encoder_open};
