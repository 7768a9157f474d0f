#include "loader.h"

#include <stdio.h>

enum { QUERY, KEY, VALUE, INPUTS };

struct input {
	const char *name;
	size_t out;
	attn_linear *linear;
};

/* Names of an input's tensors. */
struct names {
	char weight[ATTN_LOAD_NAME], bias[ATTN_LOAD_NAME];
};

/* Loads inputs that read the same rows as one matrix, and makes them views of it. */
static void inputs_load(attn_loader *load, const struct input *inputs, size_t count, size_t in,
                        enum attn_load_bias bias)
{
	struct names names[INPUTS];
	attn_load_part parts[INPUTS];
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i].weight, sizeof(names[i].weight), "%s.weight", inputs[i].name);
		snprintf(names[i].bias, sizeof(names[i].bias), "%s.bias", inputs[i].name);
		parts[i] = (attn_load_part){
		    .weight = names[i].weight,
		    .bias = bias == ATTN_LOAD_NO_BIAS ? NULL : names[i].bias,
		    .out = inputs[i].out,
		    .bias_if_there = bias == ATTN_LOAD_BIAS_IF_THERE,
		};
	}
	const attn_linear matrix = attn_load_parts(load, in, parts, count, ATTN_OUT_IN);
	size_t column = 0;
	for (size_t i = 0; i < count; column += inputs[i].out, i++)
		*inputs[i].linear = attn_linear_columns(&matrix, column, inputs[i].out);
}

void attn_load_heads_of(attn_loader *load, attn_sublayer *out, const attn_load_heads *heads)
{
	attn_layer *layer = out->layer;
	layer->heads = heads->heads;
	layer->kv_heads = heads->kv_heads;
	layer->head_width = layer->value_width = heads->head_width;
	*out->options = attn_options_default(heads->head_width);
	if (heads->heads % heads->kv_heads != 0)
		attn_load_fail(load, ATTN_CONFIG,
		               "config.json: %zu key and value heads do not divide %zu heads",
		               heads->kv_heads, heads->heads);
}

void attn_load_attention(attn_loader *load, attn_sublayer *out, const attn_load_heads *heads,
                         const attn_load_projections *from)
{
	attn_layer *layer = out->layer;
	const size_t query = attn_load_product(load, heads->heads, heads->head_width, "the width of queries");
	const size_t key = attn_load_product(load, heads->kv_heads, heads->head_width, "the width of keys");
	const struct input inputs[INPUTS] = {{from->query, query, &layer->query},
	                                     {from->key, key, &layer->key},
	                                     {from->value, key, &layer->value}};
	attn_load_heads_of(load, out, heads);
	if (from->memory_width == 0) {
		inputs_load(load, inputs, INPUTS, from->width, from->bias);
	} else {
		inputs_load(load, inputs, 1, from->width, from->bias);
		inputs_load(load, inputs + KEY, INPUTS - KEY, from->memory_width, from->bias);
	}
	layer->output =
	    attn_load_linear(load, from->output, query, from->width, ATTN_OUT_IN, from->output_bias);
}
