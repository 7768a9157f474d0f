#include "model.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

static const attn_arch *const architectures[] = {
    &attn_arch_torch_mha,
};

struct attn_model {
	const char *architecture;
	attn_arena *arena;
	struct {
		attn_layer *at;
		attn_options *options;
		size_t count;
	} layers[ATTN_CROSS + 1]; /* by kind */
	size_t parameters, bytes;
};

float *attn_model_floats(attn_model *model, size_t count)
{
	float *numbers = attn_arena_floats(model->arena, count);
	if (!numbers)
		return NULL;
	model->parameters += count;
	model->bytes += count * sizeof(float);
	return numbers;
}

attn_layer *attn_model_layers(attn_model *model, attn_layer_kind kind, size_t count, size_t head_width)
{
	size_t bytes, options_bytes;
	if (!attn_size_mul(count, sizeof(attn_layer), &bytes) ||
	    !attn_size_mul(count, sizeof(attn_options), &options_bytes))
		return NULL;
	attn_layer *layers = attn_arena_alloc(model->arena, bytes);
	attn_options *options = attn_arena_alloc(model->arena, options_bytes);
	if (!layers || !options)
		return NULL;
	memset(layers, 0, bytes);
	for (size_t i = 0; i < count; i++)
		options[i] = attn_options_default(head_width);
	model->layers[kind].at = layers;
	model->layers[kind].options = options;
	model->layers[kind].count = count;
	return layers;
}

static const attn_arch *arch_find(const char *model_type)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
		if (strcmp(architectures[i]->model_type, model_type) == 0)
			return architectures[i];
	}
	return NULL;
}

static attn_model *model_new(const attn_arch *arch)
{
	attn_model *model = calloc(1, sizeof(*model));
	attn_arena *arena = attn_arena_new(0);
	if (!model || !arena) {
		free(model);
		attn_arena_free(arena);
		return NULL;
	}
	model->architecture = arch->model_type;
	model->arena = arena;
	return model;
}

/* Makes the model of a family from the weights of a directory. */
static attn_status model_make(const attn_arch *arch, const attn_config *config, const char *directory,
                              attn_model **out, attn_error *err)
{
	attn_weights *weights = NULL;
	attn_model *model = NULL;
	attn_status status = attn_weights_open(directory, &weights, err);
	if (status != ATTN_OK)
		goto done;
	model = model_new(arch);
	if (!model) {
		status = attn_error_set(err, ATTN_MEMORY, "out of memory");
		goto done;
	}
	status = arch->open(config, weights, model, err);
	if (status == ATTN_OK)
		status = attn_weights_all_taken(weights, err);
done:
	attn_weights_free(weights);
	if (status != ATTN_OK) {
		attn_model_free(model);
		return status;
	}
	*out = model;
	return ATTN_OK;
}

attn_status attn_model_open(const char *directory, const attn_kernels *kernels, attn_model **out,
                            attn_error *err)
{
	(void)kernels;
	attn_config *config = NULL;
	attn_status status = attn_config_open(directory, &config, err);
	if (status != ATTN_OK)
		return status;
	const char *model_type = attn_config_model_type(config);
	const attn_arch *arch = arch_find(model_type);
	if (arch)
		status = model_make(arch, config, directory, out, err);
	else
		status = attn_error_set(err, ATTN_UNSUPPORTED, "config.json: unknown model_type \"%.*s\"",
		                        attn_error_quote(model_type), model_type);
	attn_config_free(config);
	return status;
}

void attn_model_free(attn_model *model)
{
	if (!model)
		return;
	attn_arena_free(model->arena);
	free(model);
}

attn_model_info attn_model_info_of(const attn_model *model)
{
	const attn_layer *first = attn_model_layer(model, 0, ATTN_SELF);
	if (!first)
		first = attn_model_layer(model, 0, ATTN_CROSS);
	attn_model_info info = {
	    .architecture = model->architecture,
	    .layers = model->layers[ATTN_SELF].count,
	    .cross_layers = model->layers[ATTN_CROSS].count,
	    .heads = first->heads,
	    .kv_heads = first->kv_heads,
	    .width = first->query.in,
	    .key_width = first->key.in,
	    .value_width = first->value.in,
	    .output_width = first->output.out,
	    .parameters = model->parameters,
	    .bytes = model->bytes,
	};
	return info;
}

const attn_layer *attn_model_layer(const attn_model *model, size_t layer, attn_layer_kind kind)
{
	if (kind != ATTN_SELF && kind != ATTN_CROSS)
		return NULL;
	return layer < model->layers[kind].count ? &model->layers[kind].at[layer] : NULL;
}

attn_options attn_model_options(const attn_model *model, size_t layer, attn_layer_kind kind)
{
	return model->layers[kind].options[layer];
}
