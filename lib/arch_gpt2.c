/*
 * arch_gpt2.c - GPT-2 (Radford et al. 2019).
 *
 * Pre-norm blocks with learned positions and a head tied to the embeddings. Matrices are stored [in, out]
 * (Conv1D), query, key and value side by side in one. Names may begin with "transformer.".
 */
#include "model.h"

struct gpt2 {
	const char *root; /* before every name but the head's */
	size_t width, inner;
	attn_load_heads heads;
	double eps;
	enum attn_activation activation;
};

static struct gpt2 config_read(attn_loader *load)
{
	struct gpt2 gpt2 = {.width = attn_load_size(load, "n_embd"), .root = ""};
	const size_t heads = attn_load_size(load, "n_head");
	const size_t width = attn_load_head_width(load, gpt2.width, heads, "n_head");
	gpt2.heads = (attn_load_heads){heads, heads, width};
	gpt2.inner = attn_load_size_or(load, "n_inner", attn_load_product(load, 4, gpt2.width, "n_inner"));
	gpt2.eps = attn_load_number(load, "layer_norm_epsilon", 1e-5);
	gpt2.activation = attn_load_activation(load, "activation_function", ATTN_ACTIVATION_GELU_TANH);
	attn_load_only_flag(load, "scale_attn_weights", true);
	attn_load_only_flag(load, "scale_attn_by_inverse_layer_idx", false);
	attn_load_only_flag(load, "add_cross_attention", false);
	if (attn_load_has_tensor(load, "transformer.wte.weight"))
		gpt2.root = "transformer.";
	return gpt2;
}

static void embedding_load(attn_loader *load, const struct gpt2 *gpt2, attn_stack *stack)
{
	attn_embedding *embedding = &stack->embedding;
	const size_t vocabulary = attn_load_size(load, "vocab_size");
	attn_load_prefix(load, "%s", gpt2->root);
	embedding->tokens = attn_load_tokens(load, "wte.weight", vocabulary, gpt2->width, true);
	embedding->token_scale = 1;
	embedding->positions = attn_load_table(load, "wpe.weight", stack->positions, gpt2->width).rows;
}

static void attention_load(attn_loader *load, const struct gpt2 *gpt2, attn_sublayer *self)
{
	const size_t width = gpt2->width;
	attn_load_heads_of(load, self, &gpt2->heads);
	const attn_linear matrix =
	    attn_load_linear(load, "attn.c_attn", width, attn_load_product(load, 3, width, "n_embd"),
	                     ATTN_IN_OUT, ATTN_LOAD_BIAS);
	self->layer->query = attn_linear_columns(&matrix, 0, width);
	self->layer->key = attn_linear_columns(&matrix, width, width);
	self->layer->value = attn_linear_columns(&matrix, 2 * width, width);
	self->layer->output =
	    attn_load_linear(load, "attn.c_proj", width, width, ATTN_IN_OUT, ATTN_LOAD_BIAS);
	self->options->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
}

static attn_norm norm_load(attn_loader *load, const struct gpt2 *gpt2, const char *name)
{
	return attn_load_norm(load, name, ATTN_NORM_LAYER, gpt2->eps, gpt2->width, ATTN_LOAD_BIAS);
}

static void block_load(attn_loader *load, const struct gpt2 *gpt2, attn_block *block)
{
	attn_feed_forward *feed = &block->feed_forward;
	block->self.norm = norm_load(load, gpt2, "ln_1");
	attention_load(load, gpt2, &block->self);
	feed->norm = norm_load(load, gpt2, "ln_2");
	feed->up = attn_load_linear(load, "mlp.c_fc", gpt2->width, gpt2->inner, ATTN_IN_OUT, ATTN_LOAD_BIAS);
	feed->down =
	    attn_load_linear(load, "mlp.c_proj", gpt2->inner, gpt2->width, ATTN_IN_OUT, ATTN_LOAD_BIAS);
	feed->activation = gpt2->activation;
}

static void gpt2_open(attn_loader *load)
{
	const struct gpt2 gpt2 = config_read(load);
	const size_t layers = attn_load_layers(load, "n_layer");
	attn_stack *stack = attn_load_stacks(load, layers, 0);
	stack->width = gpt2.width;
	stack->pre_norm = true;
	stack->positions = attn_load_size(load, "n_positions");
	embedding_load(load, &gpt2, stack);
	for (size_t i = 0; attn_load_ok(load) && i < layers; i++) {
		attn_load_prefix(load, "%sh.%zu.", gpt2.root, i);
		block_load(load, &gpt2, &stack->blocks[i]);
	}
	attn_load_prefix(load, "%s", gpt2.root);
	stack->final_norm = norm_load(load, &gpt2, "ln_f");
	attn_load_ignore(load, "*h.*.attn.bias");
	attn_load_ignore(load, "*h.*.attn.masked_bias");
}

const attn_arch attn_arch_gpt2 = {"gpt2", gpt2_open};
