#include "translator.h"

#include "model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EPS 1e-5
/* Rows before the first position's, once kept for padding. */
#define POSITION_OFFSET 2

struct translator {
	const attn_translator *how;
	const char *prefix; /* "model." or "" */
	size_t width, positions;
	bool scaled; /* embeddings times sqrt(width) */
	enum attn_activation activation;
};

/* One of the two stacks: the first is the encoder. */
struct side {
	const char *name;
	attn_stack *stack;
	bool decoder;
	attn_load_heads heads;
	size_t inner;
};

/* ------------------------------------------------------------------ configuration */

static struct translator translator_read(attn_loader *load, const attn_translator *how)
{
	struct translator translator = {.how = how,
	                                .width = attn_load_size(load, "d_model"),
	                                .positions = attn_load_size(load, "max_position_embeddings"),
	                                .scaled = attn_load_flag(load, "scale_embedding", false)};
	translator.activation = attn_load_activation(load, "activation_function", ATTN_ACTIVATION_GELU);
	attn_load_prefix(load, "%s", "");
	translator.prefix = attn_load_has_tensor(load, "model.encoder.layers.0.fc1.weight") ? "model." : "";
	attn_load_only_flag(load, "is_encoder_decoder", true);
	attn_load_only_flag(load, "normalize_before", false);
	attn_load_only_flag(load, "add_final_layer_norm", false);
	attn_load_only_flag(load, "normalize_embedding", how->norm_embedding);
	attn_load_only_flag(load, "static_position_embeddings", !how->learned_positions);
	return translator;
}

static struct side side_read(attn_loader *load, const struct translator *translator, size_t stack)
{
	static const char *const names[ATTN_STACKS] = {"encoder", "decoder"};
	static const char *const heads_keys[ATTN_STACKS] = {"encoder_attention_heads",
	                                                    "decoder_attention_heads"};
	static const char *const inner_keys[ATTN_STACKS] = {"encoder_ffn_dim", "decoder_ffn_dim"};
	size_t heads = attn_load_size(load, heads_keys[stack]);
	size_t width = attn_load_head_width(load, translator->width, heads, heads_keys[stack]);
	return (struct side){.name = names[stack],
	                     .stack = attn_model_stack_of(load->model, stack),
	                     .decoder = stack == ATTN_SECOND_STACK,
	                     .heads = {heads, heads, width},
	                     .inner = attn_load_size(load, inner_keys[stack])};
}

/* ------------------------------------------------------------------ blocks */

static attn_norm norm_load(attn_loader *load, const struct translator *translator, const char *name)
{
	return attn_load_norm(load, name, ATTN_NORM_LAYER, EPS, translator->width, ATTN_LOAD_BIAS);
}

/* Query, key, value and output of prefix + name. */
static void attention_load(attn_loader *load, const struct translator *translator, const struct side *side,
                           const char *name, size_t memory_width, attn_sublayer *out)
{
	static const char *const ends[4] = {"q_proj", "k_proj", "v_proj", "out_proj"};
	char names[4][ATTN_LOAD_NAME];
	for (size_t i = 0; i < 4; i++)
		snprintf(names[i], sizeof(names[i]), "%s.%s", name, ends[i]);
	attn_load_attention(load, out, &side->heads,
	                    &(attn_load_projections){.query = names[0],
	                                             .key = names[1],
	                                             .value = names[2],
	                                             .output = names[3],
	                                             .width = translator->width,
	                                             .memory_width = memory_width,
	                                             .bias = ATTN_LOAD_BIAS,
	                                             .output_bias = ATTN_LOAD_BIAS});
}

static void block_load(attn_loader *load, const struct translator *translator, const struct side *side,
                       size_t index)
{
	attn_block *block = &side->stack->blocks[index];
	attn_feed_forward *feed = &block->feed_forward;
	attn_load_prefix(load, "%s%s.layers.%zu.", translator->prefix, side->name, index);
	attention_load(load, translator, side, "self_attn", 0, &block->self);
	block->self.norm = norm_load(load, translator, "self_attn_layer_norm");
	if (side->decoder) {
		block->self.options->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
		attention_load(load, translator, side, "encoder_attn", translator->width, &block->cross);
		block->cross.norm = norm_load(load, translator, "encoder_attn_layer_norm");
	}
	feed->activation = translator->activation;
	feed->up = attn_load_linear(load, "fc1", translator->width, side->inner, ATTN_OUT_IN, ATTN_LOAD_BIAS);
	feed->down =
	    attn_load_linear(load, "fc2", side->inner, translator->width, ATTN_OUT_IN, ATTN_LOAD_BIAS);
	feed->norm = norm_load(load, translator, "final_layer_norm");
}

/* ------------------------------------------------------------------ stacks */

static const float *positions_load(attn_loader *load, const struct translator *translator)
{
	if (!translator->how->learned_positions)
		return attn_load_sinusoids(load, translator->positions, translator->width);
	size_t rows = 0;
	if (!attn_size_add(translator->positions, POSITION_OFFSET, &rows))
		attn_load_fail(load, ATTN_CONFIG, "config.json: max_position_embeddings is too large");
	const attn_table table = attn_load_table(load, "embed_positions.weight", rows, translator->width);
	return attn_load_ok(load) ? table.rows + POSITION_OFFSET * translator->width : NULL;
}

static void stack_load(attn_loader *load, const struct translator *translator, const struct side *side,
                       const attn_table *tokens)
{
	attn_stack *stack = side->stack;
	stack->width = translator->width;
	stack->positions = translator->positions;
	stack->embedding.tokens = *tokens;
	stack->embedding.token_scale = translator->scaled ? sqrtf((float)translator->width) : 1;
	attn_load_prefix(load, "%s%s.", translator->prefix, side->name);
	stack->embedding.positions = positions_load(load, translator);
	if (translator->how->norm_embedding)
		stack->embedding.norm = norm_load(load, translator, "layernorm_embedding");
	for (size_t i = 0; i < stack->layers && attn_load_ok(load); i++)
		block_load(load, translator, side, i);
}

/* ------------------------------------------------------------------ tokens */

/* Name after the prefix of the table that a stack looks tokens up in. */
static const char *table_name(const attn_loader *load, const char *own)
{
	return attn_load_has_tensor(load, own) ? own : "shared.weight";
}

/* Tables of both stacks, and the head. */
static void tokens_load(attn_loader *load, const struct translator *translator,
                        attn_table tables[ATTN_STACKS])
{
	const size_t width = translator->width, vocabulary = attn_load_size(load, "vocab_size");
	const size_t words = attn_load_size_or(load, "decoder_vocab_size", vocabulary);
	attn_load_prefix(load, "%s", translator->prefix);
	const char *encoder = table_name(load, "encoder.embed_tokens.weight");
	const char *decoder = table_name(load, "decoder.embed_tokens.weight");
	tables[ATTN_SECOND_STACK] = attn_load_tokens(load, decoder, words, width, true);
	tables[ATTN_FIRST_STACK] = tables[ATTN_SECOND_STACK];
	if (strcmp(encoder, decoder) != 0)
		tables[ATTN_FIRST_STACK] = attn_load_table(load, encoder, vocabulary, width);
	attn_load_prefix(load, "%s", "");
	if (attn_load_has_tensor(load, "final_logits_bias"))
		attn_model_head_of(load->model)->linear.bias =
		    attn_load_table(load, "final_logits_bias", 1, words).rows;
}

void attn_translator_open(attn_loader *load, const attn_translator *how)
{
	const struct translator translator = translator_read(load, how);
	const size_t layers = attn_load_layers(load, "encoder_layers");
	attn_load_stacks(load, layers, attn_load_layers(load, "decoder_layers"));
	if (!attn_load_ok(load))
		return;
	attn_table tables[ATTN_STACKS];
	tokens_load(load, &translator, tables);
	for (size_t stack = ATTN_FIRST_STACK; stack < ATTN_STACKS; stack++) {
		const struct side side = side_read(load, &translator, stack);
		stack_load(load, &translator, &side, &tables[stack]);
	}
	attn_load_ignore(load, "*shared.weight"); /* may be there beside tables of the stacks */
	if (!how->learned_positions)
		attn_load_ignore(load, "*coder.embed_positions.weight"); /* sinusoids */
}
