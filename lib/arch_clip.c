/*
 * arch_clip.c - the text encoder of CLIP (Radford et al. 2021), as transformers stores it.
 *
 * [text_model.]embeddings.{token,position}_embedding.weight, encoder.layers.N.{layer_norm1,
 * self_attn.{q,k,v,out}_proj, layer_norm2, mlp.fc1, mlp.fc2}, final_layer_norm.
 */
#include "model.h"

struct clip {
	const char *prefix; /* "text_model." or "" */
	attn_load_heads heads;
	size_t width, inner;
	double eps;
	enum attn_activation activation;
};

static struct clip clip_read(attn_loader *load)
{
	struct clip clip = {.width = attn_load_size(load, "hidden_size"),
	                    .inner = attn_load_size(load, "intermediate_size"),
	                    .eps = attn_load_number(load, "layer_norm_eps", 1e-5)};
	clip.heads.heads = clip.heads.kv_heads = attn_load_size(load, "num_attention_heads");
	clip.heads.head_width =
	    attn_load_head_width(load, clip.width, clip.heads.heads, "num_attention_heads");
	clip.activation = attn_load_activation(load, "hidden_act", ATTN_ACTIVATION_QUICK_GELU);
	attn_load_prefix(load, "text_model.");
	clip.prefix = attn_load_has_tensor(load, "final_layer_norm.weight") ? "text_model." : "";
	return clip;
}

static attn_norm norm_load(attn_loader *load, const struct clip *clip, const char *name)
{
	return attn_load_norm(load, name, ATTN_NORM_LAYER, clip->eps, clip->width, ATTN_LOAD_BIAS);
}

static void block_load(attn_loader *load, const struct clip *clip, attn_block *block)
{
	static const attn_load_projections names = {.query = "self_attn.q_proj",
	                                            .key = "self_attn.k_proj",
	                                            .value = "self_attn.v_proj",
	                                            .output = "self_attn.out_proj",
	                                            .bias = ATTN_LOAD_BIAS,
	                                            .output_bias = ATTN_LOAD_BIAS};
	attn_load_projections projections = names;
	projections.width = clip->width;
	attn_load_attention(load, &block->self, &clip->heads, &projections);
	block->self.options->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	block->self.norm = norm_load(load, clip, "layer_norm1");
	attn_feed_forward *feed = &block->feed_forward;
	feed->activation = clip->activation;
	feed->up = attn_load_linear(load, "mlp.fc1", clip->width, clip->inner, ATTN_OUT_IN, ATTN_LOAD_BIAS);
	feed->down = attn_load_linear(load, "mlp.fc2", clip->inner, clip->width, ATTN_OUT_IN, ATTN_LOAD_BIAS);
	feed->norm = norm_load(load, clip, "layer_norm2");
}

static void embedding_load(attn_loader *load, const struct clip *clip, attn_stack *stack)
{
	attn_load_prefix(load, "%sembeddings.", clip->prefix);
	stack->positions = attn_load_size(load, "max_position_embeddings");
	stack->embedding.token_scale = 1;
	stack->embedding.tokens =
	    attn_load_table(load, "token_embedding.weight", attn_load_size(load, "vocab_size"), clip->width);
	stack->embedding.positions =
	    attn_load_table(load, "position_embedding.weight", stack->positions, clip->width).rows;
}

static void clip_open(attn_loader *load)
{
	const struct clip clip = clip_read(load);
	attn_stack *stack = attn_load_stacks(load, attn_load_layers(load, "num_hidden_layers"), 0);
	if (!attn_load_ok(load))
		return;
	stack->width = clip.width;
	stack->pre_norm = true;
	embedding_load(load, &clip, stack);
	for (size_t i = 0; i < stack->layers && attn_load_ok(load); i++) {
		attn_load_prefix(load, "%sencoder.layers.%zu.", clip.prefix, i);
		block_load(load, &clip, &stack->blocks[i]);
	}
	attn_load_prefix(load, "%s", clip.prefix);
	stack->final_norm = norm_load(load, &clip, "final_layer_norm");
	attn_load_ignore(load, "*embeddings.position_ids");
	attn_load_ignore(load, "text_projection.weight"); /* of the whole text's vector, beside the stack */
}

const attn_arch attn_arch_clip_text = {"clip_text_model", clip_open};
