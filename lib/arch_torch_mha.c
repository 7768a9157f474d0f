/*
 * arch_torch_mha.c - one layer of torch.nn.MultiheadAttention, as its state_dict names it.
 *
 * in_proj_weight [3E, E] (rows of query, key, value), or, where the widths differ, q_proj_weight [E, E],
 * k_proj_weight [E, kdim], v_proj_weight [E, vdim]; in_proj_bias [3E] and out_proj.bias [E], each optional;
 * out_proj.weight [E, E]. torch stores [out, in].
 */
#include "model.h"

#include "error.h"

enum { QUERY, KEY, VALUE, INPUTS };

static const char *const split_names[INPUTS] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};

/* Where a projection's rows lie in the file. */
struct projection {
	const attn_stored_tensor *stored;
	size_t first; /* row */
	size_t in;
};

struct widths {
	size_t embed;      /* E */
	size_t in[INPUTS]; /* E, kdim, vdim */
	bool packed;       /* in_proj_weight */
};

/* ------------------------------------------------------------------ what is there */

static attn_status features_check(const attn_config *config, const attn_weights *weights, attn_error *err)
{
	static const char *const names[] = {"bias_k", "bias_v"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (attn_weights_find(weights, names[i]))
			return attn_error_set(
			    err, ATTN_UNSUPPORTED,
			    "tensor \"%s\": a learned key and value at the end is not supported", names[i]);
	}
	bool zero;
	attn_status status = attn_config_flag(config, "add_zero_attn", false, &zero, err);
	if (status == ATTN_OK && zero)
		status = attn_error_set(err, ATTN_UNSUPPORTED, "config.json: add_zero_attn is not supported");
	return status;
}

/* Dimension 1 of a [.., width] tensor that is there and is not empty, else fallback. */
static size_t width_of(const attn_weights *weights, const char *name, size_t fallback)
{
	const attn_stored_tensor *tensor = attn_weights_find(weights, name);
	return tensor && tensor->rank == 2 && tensor->shape[1] > 0 ? tensor->shape[1] : fallback;
}

/* Reads the widths off the tensors; whether these agree with each other is seen when they are taken. */
static attn_status widths_find(const attn_weights *weights, struct widths *out, attn_error *err)
{
	out->packed = !attn_weights_find(weights, split_names[QUERY]);
	const char *name = out->packed ? "in_proj_weight" : split_names[QUERY];
	const char *wanted = out->packed ? "[3E, E]" : "[E, E]";
	const attn_stored_tensor *stored = attn_weights_find(weights, name);
	if (!stored)
		return attn_error_set(err, ATTN_TENSOR, "tensor \"%s\" of shape %s is missing", name, wanted);
	out->embed = width_of(weights, name, 0);
	size_t triple;
	if (out->embed == 0 || !attn_size_mul(3, out->embed, &triple)) {
		char found[ATTN_SHAPE_TEXT];
		attn_weights_shape_text(found, stored->rank, stored->shape);
		return attn_error_set(err, ATTN_TENSOR, "tensor \"%s\" must have shape %s, found %s", name,
		                      wanted, found);
	}
	for (int i = QUERY; i < INPUTS; i++)
		out->in[i] = out->packed ? out->embed : width_of(weights, split_names[i], out->embed);
	return ATTN_OK;
}

/* ------------------------------------------------------------------ projections */

static attn_status projections_take(attn_weights *weights, const struct widths *widths,
                                    struct projection out[INPUTS], attn_error *err)
{
	size_t embed = widths->embed;
	attn_status status = ATTN_OK;
	for (size_t i = QUERY; i < INPUTS && status == ATTN_OK; i++) {
		const char *name = widths->packed ? "in_proj_weight" : split_names[i];
		size_t shape[2] = {widths->packed ? 3 * embed : embed, widths->in[i]};
		out[i] = (struct projection){.first = widths->packed ? i * embed : 0, .in = widths->in[i]};
		status = attn_weights_take(weights, name, 2, shape, &out[i].stored, err);
	}
	return status;
}

/* Copies a bias of width numbers; *out stays NULL where the file has none of that name. */
static attn_status bias_load(attn_weights *weights, attn_model *model, const char *name, size_t width,
                             const float **out, attn_error *err)
{
	if (!attn_weights_find(weights, name))
		return ATTN_OK;
	const attn_stored_tensor *stored;
	attn_status status = attn_weights_take(weights, name, 1, &width, &stored, err);
	if (status != ATTN_OK)
		return status;
	float *bias = attn_model_floats(model, width);
	if (!bias)
		return attn_error_set(err, ATTN_MEMORY, "tensor \"%s\": out of memory", name);
	*out = bias;
	return attn_to_float32(stored->dtype, stored->data, width, bias);
}

/* Packs the three as W [E, 3E], one beside the other, so that one product serves them all; where widths
 * differ each has its own [in, E]. Sets weight, in, out, stride and layout. */
static attn_status projections_pack(attn_model *model, const struct widths *widths,
                                    const struct projection parts[INPUTS], attn_linear *const out[INPUTS],
                                    attn_error *err)
{
	size_t embed = widths->embed;
	bool together = widths->in[KEY] == embed && widths->in[VALUE] == embed;
	size_t stride = together ? 3 * embed : embed;
	float *weight = NULL;
	for (size_t i = QUERY; i < INPUTS; i++) {
		if (together && i > QUERY)
			weight += embed;
		else
			weight = attn_model_floats(model, parts[i].in * stride);
		if (!weight)
			return attn_error_set(err, ATTN_MEMORY, "tensor \"%s\": out of memory",
			                      parts[i].stored->name);
		attn_weights_transpose(parts[i].stored, parts[i].first, embed, weight, stride);
		*out[i] = (attn_linear){.weight = weight,
		                        .in = parts[i].in,
		                        .out = embed,
		                        .stride = stride,
		                        .layout = ATTN_IN_OUT};
	}
	return ATTN_OK;
}

static attn_status inputs_load(attn_weights *weights, attn_model *model, const struct widths *widths,
                               attn_layer *layer, attn_error *err)
{
	attn_linear *const inputs[INPUTS] = {&layer->query, &layer->key, &layer->value};
	struct projection parts[INPUTS];
	const float *bias = NULL; /* [3E] */
	attn_status status = projections_take(weights, widths, parts, err);
	if (status == ATTN_OK)
		status = projections_pack(model, widths, parts, inputs, err);
	if (status == ATTN_OK)
		status = bias_load(weights, model, "in_proj_bias", 3 * widths->embed, &bias, err);
	for (size_t i = QUERY; i < INPUTS && status == ATTN_OK && bias; i++)
		inputs[i]->bias = bias + i * widths->embed;
	return status;
}

static attn_status output_load(attn_weights *weights, attn_model *model, size_t embed, attn_linear *out,
                               attn_error *err)
{
	const size_t shape[2] = {embed, embed};
	const attn_stored_tensor *stored;
	attn_status status = attn_weights_take(weights, "out_proj.weight", 2, shape, &stored, err);
	if (status != ATTN_OK)
		return status;
	float *weight = attn_model_floats(model, embed * embed);
	if (!weight)
		return attn_error_set(err, ATTN_MEMORY, "tensor \"out_proj.weight\": out of memory");
	attn_weights_transpose(stored, 0, embed, weight, embed);
	*out = (attn_linear){
	    .weight = weight, .in = embed, .out = embed, .stride = embed, .layout = ATTN_IN_OUT};
	return bias_load(weights, model, "out_proj.bias", embed, &out->bias, err);
}

/* ------------------------------------------------------------------ the model */

static attn_status torch_mha_open(const attn_config *config, attn_weights *weights, attn_model *model,
                                  attn_error *err)
{
	size_t heads = 0;
	struct widths widths = {0};
	attn_status status = attn_config_size(config, "num_heads", &heads, err);
	if (status == ATTN_OK)
		status = features_check(config, weights, err);
	if (status == ATTN_OK)
		status = widths_find(weights, &widths, err);
	if (status != ATTN_OK)
		return status;
	if (widths.embed % heads != 0)
		return attn_error_set(err, ATTN_CONFIG,
		                      "config.json: num_heads %zu does not divide the width %zu", heads,
		                      widths.embed);
	attn_layer *layer = attn_model_layers(model, ATTN_SELF, 1, widths.embed / heads);
	if (!layer)
		return attn_error_set(err, ATTN_MEMORY, "out of memory");
	layer->heads = layer->kv_heads = heads;
	layer->head_width = layer->value_width = widths.embed / heads;
	status = inputs_load(weights, model, &widths, layer, err);
	if (status == ATTN_OK)
		status = output_load(weights, model, widths.embed, &layer->output, err);
	return status;
}

const attn_arch attn_arch_torch_mha = {"torch-mha", torch_mha_open};
