/*
 * arch_torch_mha.c - one layer of torch.nn.MultiheadAttention, as its state_dict names it.
 *
 * in_proj_weight [3E, E] (rows of query, key, value), or, where the widths differ, q_proj_weight [E, E],
 * k_proj_weight [E, kdim], v_proj_weight [E, vdim]; in_proj_bias [3E] and out_proj.bias [E], each optional;
 * out_proj.weight [E, E]. torch stores [out, in].
 */
#include "model.h"

enum { QUERY, KEY, VALUE, INPUTS };

static const char *const split_names[INPUTS] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
static const char *const split_shapes[INPUTS] = {"[E, E]", "[E, kdim]", "[E, vdim]"};

static void features_check(attn_loader *load)
{
	static const char *const names[] = {"bias_k", "bias_v"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (attn_load_has_tensor(load, names[i]))
			attn_load_fail(load, ATTN_UNSUPPORTED,
			               "tensor \"%s\": a learned key and value at the end is not supported",
			               names[i]);
	}
	attn_load_only_flag(load, "add_zero_attn", false);
}

/* Makes query, key and value views of the columns of one matrix. */
static void matrix_share(attn_layer *layer, const attn_linear *matrix, size_t embed)
{
	layer->query = attn_linear_columns(matrix, 0, embed);
	layer->key = attn_linear_columns(matrix, embed, embed);
	layer->value = attn_linear_columns(matrix, 2 * embed, embed);
}

static void packed_load(attn_loader *load, attn_layer *layer, size_t embed)
{
	const attn_load_part part = {
	    .weight = "in_proj_weight", .bias = "in_proj_bias", .out = 3 * embed, .bias_if_there = true};
	const attn_linear matrix = attn_load_parts(load, embed, &part, 1, ATTN_OUT_IN);
	matrix_share(layer, &matrix, embed);
}

/* One matrix where the widths are the same, else one each; their biases are one tensor all the same. */
static void split_load(attn_loader *load, attn_layer *layer, size_t embed)
{
	attn_linear *const linears[INPUTS] = {&layer->query, &layer->key, &layer->value};
	const float *bias = NULL;
	attn_load_part parts[INPUTS];
	size_t in[INPUTS];
	for (size_t i = QUERY; i < INPUTS; i++) {
		parts[i] = (attn_load_part){.weight = split_names[i], .out = embed};
		in[i] = attn_load_dimension(load, split_names[i], 2, 1, split_shapes[i]);
	}
	if (attn_load_has_tensor(load, "in_proj_bias"))
		bias = attn_load_vector(load, "in_proj_bias", 3 * embed);
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

static void torch_mha_open(attn_loader *load)
{
	const size_t heads = attn_load_size(load, "num_heads");
	const bool split = attn_load_has_tensor(load, split_names[QUERY]);
	features_check(load);
	const size_t embed = split ? attn_load_dimension(load, split_names[QUERY], 2, 1, split_shapes[QUERY])
	                           : attn_load_dimension(load, "in_proj_weight", 2, 1, "[3E, E]");
	attn_load_product(load, 3, embed, "the width of projections");
	const size_t width = attn_load_head_width(load, embed, heads, "num_heads");
	if (!attn_model_make_layers(load->model, 1, 0))
		attn_load_fail(load, ATTN_MEMORY, "out of memory");
	if (!attn_load_ok(load))
		return;
	attn_sublayer self = {.layer = attn_model_layer_of(load->model, 0, ATTN_SELF),
	                      .options = attn_model_options_of(load->model, 0, ATTN_SELF)};
	attn_load_heads_of(load, &self, &(attn_load_heads){heads, heads, width});
	if (split)
		split_load(load, self.layer, embed);
	else
		packed_load(load, self.layer, embed);
	self.layer->output =
	    attn_load_linear(load, "out_proj", embed, embed, ATTN_OUT_IN, ATTN_LOAD_BIAS_IF_THERE);
}

const attn_arch attn_arch_torch_mha = {"torch-mha", torch_mha_open};
