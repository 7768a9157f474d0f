/*
 * arch_llama.c - Llama (Touvron et al. 2023) and models of its layout: Mistral, Qwen2, Qwen3.
 *
 * Pre-norm blocks with RMS norms, rotary positions in halves, grouped key and value heads and a gated
 * feed-forward. Names may begin with "model.". They differ in biases, in norms of each head (Qwen3) and in
 * where attention looks through a window.
 */
#include "model.h"

#include <string.h>

enum windows { NO_WINDOW, EVERY_LAYER, SOME_LAYERS };

struct family {
	enum attn_load_bias input_bias; /* of query, key and value */
	bool bias_by_config;            /* attention_bias and mlp_bias say whether there are biases */
	bool head_norms;
	enum windows windows;
};

struct llama {
	const struct family *family;
	const char *root; /* before every name but the head's */
	size_t width, inner, layers, window;
	attn_load_heads heads;
	enum attn_load_bias input_bias, output_bias, feed_bias;
	double eps, theta;
	enum attn_activation activation;
};

/* The base of the angles. Scaled positions, which a rope_type names, are not known. */
static double theta_read(attn_loader *load)
{
	attn_load_only_text(load, "rope_parameters.rope_type", "default");
	attn_load_only_text(load, "rope_scaling.rope_type", "default");
	attn_load_only_text(load, "rope_scaling.type", "default");
	if (attn_load_has(load, "rope_scaling") && !attn_load_has(load, "rope_scaling.rope_type") &&
	    !attn_load_has(load, "rope_scaling.type"))
		attn_load_fail(load, ATTN_UNSUPPORTED,
		               "config.json: rope_scaling without a rope_type is not supported");
	if (attn_load_number(load, "partial_rotary_factor", 1) != 1 ||
	    attn_load_number(load, "rope_parameters.partial_rotary_factor", 1) != 1)
		attn_load_fail(load, ATTN_UNSUPPORTED,
		               "config.json: partial_rotary_factor is not supported, only 1");
	const double theta = attn_load_number(load, "rope_theta", 10000);
	if (attn_load_has(load, "rope_parameters") && !attn_load_has(load, "rope_parameters.rope_theta") &&
	    !attn_load_has(load, "rope_theta"))
		attn_load_fail(load, ATTN_CONFIG, "config.json: rope_parameters.rope_theta is missing");
	return attn_load_number(load, "rope_parameters.rope_theta", theta);
}

static enum attn_load_bias bias_read(attn_loader *load, const struct family *family, const char *key)
{
	return family->bias_by_config && attn_load_flag(load, key, false) ? ATTN_LOAD_BIAS
	                                                                  : ATTN_LOAD_NO_BIAS;
}

static struct llama config_read(attn_loader *load, const struct family *family)
{
	struct llama llama = {
	    .family = family,
	    .root = attn_load_has_tensor(load, "model.embed_tokens.weight") ? "model." : "",
	    .width = attn_load_size(load, "hidden_size"),
	    .inner = attn_load_size(load, "intermediate_size"),
	    .layers = attn_load_layers(load, "num_hidden_layers"),
	    .eps = attn_load_number(load, "rms_norm_eps", 1e-6),
	    .theta = theta_read(load),
	    .activation = attn_load_activation(load, "hidden_act", ATTN_ACTIVATION_SILU),
	    .output_bias = bias_read(load, family, "attention_bias"),
	    .feed_bias = bias_read(load, family, "mlp_bias"),
	};
	llama.heads.heads = attn_load_size(load, "num_attention_heads");
	llama.heads.kv_heads = attn_load_size_or(load, "num_key_value_heads", llama.heads.heads);
	llama.heads.head_width =
	    attn_load_has(load, "head_dim")
	        ? attn_load_size(load, "head_dim")
	        : attn_load_head_width(load, llama.width, llama.heads.heads, "num_attention_heads");
	if (llama.heads.head_width % 2 != 0)
		attn_load_fail(load, ATTN_CONFIG, "config.json: the head width %zu is odd, so it cannot turn",
		               llama.heads.head_width);
	llama.input_bias = family->input_bias == ATTN_LOAD_BIAS ? ATTN_LOAD_BIAS : llama.output_bias;
	if (family->windows == EVERY_LAYER ||
	    (family->windows == SOME_LAYERS && attn_load_flag(load, "use_sliding_window", false)))
		llama.window = attn_load_size_or(load, "sliding_window", 0);
	return llama;
}

/* Whether attention of a layer looks through the window. */
static bool layer_has_window(attn_loader *load, const struct llama *llama, size_t layer)
{
	static const char sliding[] = "sliding_attention";
	if (llama->family->windows != SOME_LAYERS)
		return llama->window > 0;
	if (!attn_load_has(load, "layer_types"))
		return llama->window > 0 && layer >= attn_load_count(load, "max_window_layers", 28);
	const char *type = attn_load_list_text(load, "layer_types", layer);
	if (type && strcmp(type, sliding) != 0 && strcmp(type, "full_attention") != 0)
		attn_load_fail(load, ATTN_UNSUPPORTED, "config.json: layer_types: \"%.*s\" is not supported",
		               attn_error_quote(type), type);
	const bool slides = type && strcmp(type, sliding) == 0;
	if (slides && llama->window == 0)
		attn_load_fail(load, ATTN_CONFIG,
		               "config.json: layer_types: a layer slides, but there is no sliding_window");
	return slides;
}

static attn_norm norm_load(attn_loader *load, const struct llama *llama, const char *name, size_t width)
{
	return attn_load_norm(load, name, ATTN_NORM_RMS, llama->eps, width, ATTN_LOAD_NO_BIAS);
}

static void attention_load(attn_loader *load, const struct llama *llama, attn_sublayer *self, size_t layer)
{
	const attn_load_projections projections = {.query = "self_attn.q_proj",
	                                           .key = "self_attn.k_proj",
	                                           .value = "self_attn.v_proj",
	                                           .output = "self_attn.o_proj",
	                                           .width = llama->width,
	                                           .bias = llama->input_bias,
	                                           .output_bias = llama->output_bias};
	attn_load_attention(load, self, &llama->heads, &projections);
	if (llama->family->head_norms) {
		self->layer->query_norm =
		    attn_load_vector(load, "self_attn.q_norm.weight", llama->heads.head_width);
		self->layer->key_norm =
		    attn_load_vector(load, "self_attn.k_norm.weight", llama->heads.head_width);
		self->layer->norm_eps = llama->eps;
	}
	self->options->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	self->options->rotation = ATTN_ROTATE_HALVES;
	self->options->rope_theta = llama->theta;
	if (layer_has_window(load, llama, layer))
		self->options->window_left = (int64_t)llama->window - 1;
}

static void feed_forward_load(attn_loader *load, const struct llama *llama, attn_feed_forward *feed)
{
	const size_t width = llama->width, inner = llama->inner;
	const enum attn_load_bias bias = llama->feed_bias;
	feed->gate = attn_load_linear(load, "mlp.gate_proj", width, inner, ATTN_OUT_IN, bias);
	feed->up = attn_load_linear(load, "mlp.up_proj", width, inner, ATTN_OUT_IN, bias);
	feed->down = attn_load_linear(load, "mlp.down_proj", inner, width, ATTN_OUT_IN, bias);
	feed->activation = llama->activation;
}

static void block_load(attn_loader *load, const struct llama *llama, attn_block *block, size_t layer)
{
	block->self.norm = norm_load(load, llama, "input_layernorm", llama->width);
	attention_load(load, llama, &block->self, layer);
	block->feed_forward.norm = norm_load(load, llama, "post_attention_layernorm", llama->width);
	feed_forward_load(load, llama, &block->feed_forward);
}

static void family_open(attn_loader *load, const struct family *family)
{
	const struct llama llama = config_read(load, family);
	attn_stack *stack = attn_load_stacks(load, llama.layers, 0);
	stack->width = llama.width;
	stack->pre_norm = true;
	stack->positions = attn_load_size(load, "max_position_embeddings");
	attn_load_prefix(load, "%s", llama.root);
	stack->embedding.tokens = attn_load_tokens(load, "embed_tokens.weight",
	                                           attn_load_size(load, "vocab_size"), llama.width, false);
	stack->embedding.token_scale = 1;
	for (size_t i = 0; attn_load_ok(load) && i < llama.layers; i++) {
		attn_load_prefix(load, "%slayers.%zu.", llama.root, i);
		block_load(load, &llama, &stack->blocks[i], i);
	}
	attn_load_prefix(load, "%s", llama.root);
	stack->final_norm = norm_load(load, &llama, "norm", llama.width);
	attn_load_ignore(load, "*rotary_emb.inv_freq");
}

static void llama_open(attn_loader *load)
{
	static const struct family family = {.bias_by_config = true};
	family_open(load, &family);
}

static void mistral_open(attn_loader *load)
{
	static const struct family family = {.windows = EVERY_LAYER};
	family_open(load, &family);
}

static void qwen2_open(attn_loader *load)
{
	static const struct family family = {.input_bias = ATTN_LOAD_BIAS, .windows = SOME_LAYERS};
	family_open(load, &family);
}

static void qwen3_open(attn_loader *load)
{
	static const struct family family = {
	    .bias_by_config = true, .head_norms = true, .windows = SOME_LAYERS};
	family_open(load, &family);
}

const attn_arch attn_arch_llama = {"llama", llama_open};
const attn_arch attn_arch_mistral = {"mistral", mistral_open};
const attn_arch attn_arch_qwen2 = {"qwen2", qwen2_open};
const attn_arch attn_arch_qwen3 = {"qwen3", qwen3_open};
