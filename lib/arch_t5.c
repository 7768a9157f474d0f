/*
 * arch_t5.c - T5 and its version 1.1 (Raffel et al. 2020), as transformers stores them.
 *
 * shared.weight [vocabulary, d_model]; {encoder,decoder}.block.N.layer.K. with, in this order,
 * SelfAttention.{q,k,v,o}, in decoders EncDecAttention.{q,k,v,o}, and DenseReluDense.{wi | wi_0, wi_1, wo},
 * each beside its layer_norm; {encoder,decoder}.final_layer_norm; lm_head.weight where the head is not tied.
 * No biases; scores are not scaled, but have a bias by class of distance, learned in block 0 of each stack.
 */
#include "model.h"
#include "t5_buckets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_DISTANCE ((size_t)1 << 20)

struct t5 {
	attn_load_heads heads;
	size_t width, inner; /* d_model, d_ff */
	double eps;
	size_t buckets, max_distance;
	bool gated;
	enum attn_activation activation;
};

/* One of the two stacks: the first is the encoder. */
struct side {
	const char *name;
	attn_stack *stack;
	bool decoder;
};

/* ------------------------------------------------------------------ configuration */

static void feed_forward_read(attn_loader *load, struct t5 *t5)
{
	static const char *const names[] = {"relu",       "gelu",       "gelu_new",   "silu",
	                                    "gated-relu", "gated-gelu", "gated-silu", NULL};
	static const enum attn_activation activations[] = {
	    ATTN_ACTIVATION_RELU, ATTN_ACTIVATION_GELU,      ATTN_ACTIVATION_GELU_TANH, ATTN_ACTIVATION_SILU,
	    ATTN_ACTIVATION_RELU, ATTN_ACTIVATION_GELU_TANH, ATTN_ACTIVATION_SILU,
	};
	size_t choice = attn_load_choice(load, "feed_forward_proj", names, 0);
	t5->activation = activations[choice];
	t5->gated = strncmp(names[choice], "gated", strlen("gated")) == 0;
}

/* Classes of distances: neither none of a side, nor a scale that does not rise. */
static void buckets_read(attn_loader *load, struct t5 *t5)
{
	t5->buckets = attn_load_size_or(load, "relative_attention_num_buckets", 32);
	t5->max_distance = attn_load_size_or(load, "relative_attention_max_distance", 128);
	if (t5->buckets < 4)
		attn_load_fail(load, ATTN_CONFIG,
		               "config.json: relative_attention_num_buckets is %zu, must be at least 4",
		               t5->buckets);
	if (t5->max_distance <= t5->buckets / 2 || t5->max_distance > MOST_DISTANCE)
		attn_load_fail(load, ATTN_CONFIG,
		               "config.json: relative_attention_max_distance is %zu, must be over half of "
		               "relative_attention_num_buckets and at most %zu",
		               t5->max_distance, MOST_DISTANCE);
}

static struct t5 t5_read(attn_loader *load)
{
	struct t5 t5 = {.width = attn_load_size(load, "d_model"), .inner = attn_load_size(load, "d_ff")};
	t5.heads.heads = t5.heads.kv_heads = attn_load_size(load, "num_heads");
	t5.heads.head_width = attn_load_size(load, "d_kv");
	t5.eps = attn_load_number(load, "layer_norm_epsilon", 1e-6);
	feed_forward_read(load, &t5);
	buckets_read(load, &t5);
	attn_load_only_flag(load, "is_encoder_decoder", true);
	return t5;
}

/* ------------------------------------------------------------------ biases of distances */

/* [heads, 2 * max_distance + 1] the bias of each distance, from one [buckets, heads] of each class. */
static const float *relative_load(attn_loader *load, const struct t5 *t5, const struct side *side)
{
	const size_t heads = t5->heads.heads, row = 2 * t5->max_distance + 1;
	const attn_t5_buckets buckets = {t5->buckets, t5->max_distance, !side->decoder};
	attn_load_prefix(load, "%s.block.0.layer.0.SelfAttention.", side->name);
	const attn_table learned =
	    attn_load_table(load, "relative_attention_bias.weight", t5->buckets, heads);
	float *table = attn_load_computed(load, "the table of distances", heads, row);
	for (size_t i = 0; table && i < row; i++) {
		size_t bucket = attn_t5_bucket(&buckets, (int64_t)i - (int64_t)t5->max_distance);
		for (size_t h = 0; h < heads; h++)
			table[h * row + i] = learned.rows[bucket * heads + h];
	}
	return table;
}

/* ------------------------------------------------------------------ blocks */

static attn_norm norm_load(attn_loader *load, const struct t5 *t5, const char *name)
{
	return attn_load_norm(load, name, ATTN_NORM_RMS, t5->eps, t5->width, ATTN_LOAD_NO_BIAS);
}

static void attention_load(attn_loader *load, const struct t5 *t5, const char *name, size_t memory_width,
                           attn_sublayer *out)
{
	out->norm = norm_load(load, t5, "layer_norm");
	char names[4][ATTN_LOAD_NAME];
	for (size_t i = 0; i < 4; i++)
		snprintf(names[i], sizeof(names[i]), "%s.%c", name, "qkvo"[i]);
	attn_load_attention(load, out, &t5->heads,
	                    &(attn_load_projections){.query = names[0],
	                                             .key = names[1],
	                                             .value = names[2],
	                                             .output = names[3],
	                                             .width = t5->width,
	                                             .memory_width = memory_width});
	out->options->scale = 1;
}

static void feed_forward_load(attn_loader *load, const struct t5 *t5, attn_feed_forward *out)
{
	out->norm = norm_load(load, t5, "layer_norm");
	out->activation = t5->activation;
	if (t5->gated)
		out->gate = attn_load_linear(load, "DenseReluDense.wi_0", t5->width, t5->inner, ATTN_OUT_IN,
		                             ATTN_LOAD_NO_BIAS);
	out->up = attn_load_linear(load, t5->gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi", t5->width,
	                           t5->inner, ATTN_OUT_IN, ATTN_LOAD_NO_BIAS);
	out->down =
	    attn_load_linear(load, "DenseReluDense.wo", t5->inner, t5->width, ATTN_OUT_IN, ATTN_LOAD_NO_BIAS);
}

static void block_load(attn_loader *load, const struct t5 *t5, const struct side *side, size_t index)
{
	attn_block *block = &side->stack->blocks[index];
	attn_load_prefix(load, "%s.block.%zu.layer.0.", side->name, index);
	attention_load(load, t5, "SelfAttention", 0, &block->self);
	if (side->decoder) {
		block->self.options->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
		attn_load_prefix(load, "%s.block.%zu.layer.1.", side->name, index);
		attention_load(load, t5, "EncDecAttention", t5->width, &block->cross);
	}
	attn_load_prefix(load, "%s.block.%zu.layer.%d.", side->name, index, side->decoder ? 2 : 1);
	feed_forward_load(load, t5, &block->feed_forward);
}

static void stack_load(attn_loader *load, const struct t5 *t5, const struct side *side,
                       const attn_table *tokens)
{
	attn_stack *stack = side->stack;
	stack->width = t5->width;
	stack->pre_norm = true;
	stack->embedding.tokens = *tokens;
	stack->embedding.token_scale = 1;
	const float *relative = relative_load(load, t5, side);
	for (size_t i = 0; i < stack->layers && attn_load_ok(load); i++) {
		block_load(load, t5, side, i);
		stack->blocks[i].self.options->relative = relative;
		stack->blocks[i].self.options->relative_reach = t5->max_distance;
	}
	attn_load_prefix(load, "%s.", side->name);
	stack->final_norm = norm_load(load, t5, "final_layer_norm");
}

/* ------------------------------------------------------------------ the model */

/* The table of tokens, and the head: of its own where there is one, whatever config.json says of ties, for
 * transformers writes that they are tied. A model that scales tells so by one key or the other. */
static attn_table tokens_load(attn_loader *load, const struct t5 *t5)
{
	attn_head *head = attn_model_head_of(load->model);
	const size_t vocabulary = attn_load_size(load, "vocab_size");
	const bool scaled = attn_load_flag(load, "tie_word_embeddings", true) &&
	                    attn_load_flag(load, "scale_decoder_outputs", true);
	attn_table tokens;
	attn_load_prefix(load, "%s", "");
	if (attn_load_has_tensor(load, "lm_head.weight")) {
		head->linear =
		    attn_load_linear(load, "lm_head", t5->width, vocabulary, ATTN_OUT_IN, ATTN_LOAD_NO_BIAS);
		tokens = attn_load_table(load, "shared.weight", vocabulary, t5->width);
	} else {
		tokens = attn_load_tokens(load, "shared.weight", vocabulary, t5->width, true);
	}
	head->scale = scaled ? 1 / sqrtf((float)t5->width) : 1;
	return tokens;
}

static void t5_open(attn_loader *load)
{
	const struct t5 t5 = t5_read(load);
	const size_t layers = attn_load_layers(load, "num_layers");
	const bool same = !attn_load_has(load, "num_decoder_layers");
	const size_t decoder_layers = same ? layers : attn_load_layers(load, "num_decoder_layers");
	attn_load_stacks(load, layers, decoder_layers);
	if (!attn_load_ok(load))
		return;
	const struct side encoder = {"encoder", attn_model_stack_of(load->model, ATTN_FIRST_STACK), false};
	const struct side decoder = {"decoder", attn_model_stack_of(load->model, ATTN_SECOND_STACK), true};
	const attn_table tokens = tokens_load(load, &t5);
	stack_load(load, &t5, &encoder, &tokens);
	stack_load(load, &t5, &decoder, &tokens);
	attn_load_ignore(load, "encoder.embed_tokens.weight"); /* shared.weight once more */
	attn_load_ignore(load, "decoder.embed_tokens.weight");
	attn_load_ignore(load, "*.EncDecAttention.relative_attention_bias.weight"); /* never read */
}

const attn_arch attn_arch_t5 = {"t5", t5_open};
