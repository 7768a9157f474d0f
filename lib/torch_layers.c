#include "torch_layers.h"

#include <stdio.h>

enum { QUERY, KEY, VALUE, INPUTS };

struct name {
	char text[ATTN_LOAD_NAME];
};

static struct name name_join(const char *first, const char *second)
{
	struct name out;
	snprintf(out.text, sizeof(out.text), "%s%s", first, second);
	return out;
}

/* ------------------------------------------------------------------ attention */

static const char *const split_names[INPUTS] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
static const char *const split_shapes[INPUTS] = {"[E, E]", "[E, kdim]", "[E, vdim]"};

static bool is_split(const attn_loader *load, const char *name)
{
	return attn_load_has_tensor(load, name_join(name, split_names[QUERY]).text);
}

size_t attn_torch_width(attn_loader *load, const char *name)
{
	const bool split = is_split(load, name);
	const struct name weight = name_join(name, split ? split_names[QUERY] : "in_proj_weight");
	size_t width = attn_load_dimension(load, weight.text, 2, 1, split ? "[E, E]" : "[3E, E]");
	attn_load_product(load, INPUTS, width, "the width of projections");
	return width;
}

/* The three maps side by side in one matrix. */
static void matrix_share(attn_layer *layer, const attn_linear *matrix, size_t embed)
{
	layer->query = attn_linear_columns(matrix, QUERY * embed, embed);
	layer->key = attn_linear_columns(matrix, KEY * embed, embed);
	layer->value = attn_linear_columns(matrix, VALUE * embed, embed);
}

static void packed_load(attn_loader *load, const char *name, size_t embed, attn_layer *layer)
{
	const struct name weight = name_join(name, "in_proj_weight"), bias = name_join(name, "in_proj_bias");
	const attn_load_part part = {
	    .weight = weight.text, .bias = bias.text, .out = INPUTS * embed, .bias_if_there = true};
	const attn_linear matrix = attn_load_parts(load, embed, &part, 1, ATTN_OUT_IN);
	matrix_share(layer, &matrix, embed);
}

/* One matrix where the widths are the same, else one each; their biases are one tensor all the same. */
static void split_load(attn_loader *load, const char *name, size_t embed, attn_layer *layer)
{
	attn_linear *const linears[INPUTS] = {&layer->query, &layer->key, &layer->value};
	const struct name shared = name_join(name, "in_proj_bias");
	const float *bias = NULL;
	struct name weights[INPUTS];
	attn_load_part parts[INPUTS];
	size_t in[INPUTS];
	for (size_t i = QUERY; i < INPUTS; i++) {
		weights[i] = name_join(name, split_names[i]);
		parts[i] = (attn_load_part){.weight = weights[i].text, .out = embed};
		in[i] = attn_load_dimension(load, weights[i].text, 2, 1, split_shapes[i]);
	}
	if (attn_load_has_tensor(load, shared.text))
		bias = attn_load_vector(load, shared.text, INPUTS * embed);
	if (in[KEY] == embed && in[VALUE] == embed) {
		const attn_linear matrix = attn_load_parts(load, embed, parts, INPUTS, ATTN_OUT_IN);
		matrix_share(layer, &matrix, embed);
	} else {
		for (size_t i = QUERY; i < INPUTS; i++)
			*linears[i] = attn_load_parts(load, in[i], &parts[i], 1, ATTN_OUT_IN);
	}
	for (size_t i = QUERY; bias && i < INPUTS; i++)
		linears[i]->bias = bias + i * embed;
}

void attn_torch_attention(attn_loader *load, const char *name, size_t heads, size_t embed, attn_sublayer *out)
{
	const size_t width = attn_load_head_width(load, embed, heads, "num_heads");
	attn_load_heads_of(load, out, &(attn_load_heads){heads, heads, width});
	if (is_split(load, name))
		split_load(load, name, embed, out->layer);
	else
		packed_load(load, name, embed, out->layer);
	out->layer->output = attn_load_linear(load, name_join(name, "out_proj").text, embed, embed,
	                                      ATTN_OUT_IN, ATTN_LOAD_BIAS_IF_THERE);
}

/* ------------------------------------------------------------------ blocks */

attn_torch_blocks attn_torch_blocks_read(attn_loader *load, const char *name)
{
	const struct name first = name_join(name, "layers.0.self_attn.");
	return (attn_torch_blocks){
	    .heads = attn_load_size(load, "num_heads"),
	    .width = attn_torch_width(load, first.text),
	    .pre_norm = attn_load_flag(load, "norm_first", false),
	    .activation = attn_load_activation(load, "activation", ATTN_ACTIVATION_RELU),
	    .eps = attn_load_number(load, "layer_norm_eps", 1e-5),
	};
}

size_t attn_torch_blocks_count(const attn_loader *load, const char *name)
{
	size_t count = 0;
	char weight[ATTN_LOAD_NAME];
	do {
		count++;
		snprintf(weight, sizeof(weight), "%slayers.%zu.linear1.weight", name, count);
	} while (attn_load_has_tensor(load, weight));
	return count;
}

static attn_norm norm_load(attn_loader *load, const attn_torch_blocks *blocks, const char *name)
{
	return attn_load_norm(load, name, ATTN_NORM_LAYER, blocks->eps, blocks->width,
	                      ATTN_LOAD_BIAS_IF_THERE);
}

static void feed_forward_load(attn_loader *load, const attn_torch_blocks *blocks, attn_feed_forward *out)
{
	const size_t inner = attn_load_dimension(load, "linear1.weight", 2, 0, "[F, E]");
	out->activation = blocks->activation;
	out->up =
	    attn_load_linear(load, "linear1", blocks->width, inner, ATTN_OUT_IN, ATTN_LOAD_BIAS_IF_THERE);
	out->down =
	    attn_load_linear(load, "linear2", inner, blocks->width, ATTN_OUT_IN, ATTN_LOAD_BIAS_IF_THERE);
}

/* norm1 belongs to self-attention, the next to cross-attention if there is any, the last to the rest. */
static void block_load(attn_loader *load, const attn_torch_blocks *blocks, attn_block *block)
{
	const bool decoder = block->cross.layer != NULL;
	attn_torch_attention(load, "self_attn.", blocks->heads, blocks->width, &block->self);
	block->self.norm = norm_load(load, blocks, "norm1");
	if (decoder) {
		attn_torch_attention(load, "multihead_attn.", blocks->heads, blocks->width, &block->cross);
		block->cross.norm = norm_load(load, blocks, "norm2");
	}
	feed_forward_load(load, blocks, &block->feed_forward);
	block->feed_forward.norm = norm_load(load, blocks, decoder ? "norm3" : "norm2");
}

void attn_torch_blocks_load(attn_loader *load, const attn_torch_blocks *blocks, const char *name,
                            attn_stack *stack)
{
	stack->width = blocks->width;
	stack->pre_norm = blocks->pre_norm;
	for (size_t i = 0; i < stack->layers && attn_load_ok(load); i++) {
		attn_load_prefix(load, "%slayers.%zu.", name, i);
		block_load(load, blocks, &stack->blocks[i]);
	}
	attn_load_prefix(load, "%s", name);
	if (attn_load_has_tensor(load, "norm.weight"))
		stack->final_norm = norm_load(load, blocks, "norm");
}

void attn_torch_blocks_causal(attn_stack *stack, bool causal)
{
	for (size_t i = 0; i < stack->layers; i++)
		stack->blocks[i].self.options->causal = causal ? ATTN_CAUSAL_BOTTOM_RIGHT : ATTN_CAUSAL_NONE;
}
