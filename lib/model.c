#include "model.h"

#include "error.h"
#include "model_room.h"

#include <stdlib.h>
#include <string.h>

static const attn_arch *const architectures[] = {
    &attn_arch_bart,
    &attn_arch_bert,
    &attn_arch_clip_text,
    &attn_arch_gpt2,
    &attn_arch_llama,
    &attn_arch_marian,
    &attn_arch_mistral,
    &attn_arch_qwen2,
    &attn_arch_qwen3,
    &attn_arch_t5,
    &attn_arch_torch_encoder,
    &attn_arch_torch_mha,
    &attn_arch_torch_transformer,
    &attn_arch_unet,
};

struct attn_model {
	const char *architecture;
	attn_arena *arena;
	struct {
		attn_layer *at;
		attn_options *options;
		size_t count;
	} layers[ATTN_CROSS + 1]; /* by kind */
	attn_stack stacks[ATTN_STACKS];
	attn_head head;
	size_t parameters, bytes;
};

/* ------------------------------------------------------------------ what a family fills */

void *attn_model_memory(attn_model *model, size_t bytes)
{
	void *memory = attn_arena_alloc(model->arena, bytes);
	if (memory)
		model->bytes += bytes;
	return memory;
}

void attn_model_count(attn_model *model, size_t numbers)
{
	model->parameters += numbers;
}

/* Zeroed; NULL: no memory. */
static void *objects_new(attn_model *model, size_t count, size_t size)
{
	size_t bytes;
	void *objects = attn_size_mul(count, size, &bytes) ? attn_arena_alloc(model->arena, bytes) : NULL;
	if (objects)
		memset(objects, 0, bytes);
	return objects;
}

bool attn_model_make_layers(attn_model *model, size_t self, size_t cross)
{
	const size_t counts[] = {self, cross};
	for (size_t kind = ATTN_SELF; kind <= ATTN_CROSS; kind++) {
		model->layers[kind].at = objects_new(model, counts[kind], sizeof(attn_layer));
		model->layers[kind].options = objects_new(model, counts[kind], sizeof(attn_options));
		model->layers[kind].count = counts[kind];
		if (!model->layers[kind].at || !model->layers[kind].options)
			return false;
	}
	return true;
}

attn_layer *attn_model_layer_of(attn_model *model, size_t layer, attn_layer_kind kind)
{
	return layer < model->layers[kind].count ? &model->layers[kind].at[layer] : NULL;
}

attn_options *attn_model_options_of(attn_model *model, size_t layer, attn_layer_kind kind)
{
	return layer < model->layers[kind].count ? &model->layers[kind].options[layer] : NULL;
}

bool attn_model_make_stacks(attn_model *model, size_t first, size_t second)
{
	const size_t counts[ATTN_STACKS] = {first, second};
	size_t total = 0;
	if (!attn_size_add(first, second, &total) || !attn_model_make_layers(model, total, second))
		return false;
	for (size_t s = ATTN_FIRST_STACK, self = 0; s < ATTN_STACKS; s++) {
		attn_stack *stack = &model->stacks[s];
		stack->layers = counts[s];
		stack->blocks = objects_new(model, counts[s], sizeof(attn_block));
		if (!stack->blocks)
			return false;
		for (size_t i = 0; i < counts[s]; i++, self++) {
			attn_block *block = &stack->blocks[i];
			block->self.layer = attn_model_layer_of(model, self, ATTN_SELF);
			block->self.options = attn_model_options_of(model, self, ATTN_SELF);
			if (s == ATTN_FIRST_STACK)
				continue;
			block->cross.layer = attn_model_layer_of(model, i, ATTN_CROSS);
			block->cross.options = attn_model_options_of(model, i, ATTN_CROSS);
		}
	}
	return true;
}

attn_stack *attn_model_stack_of(attn_model *model, size_t stack)
{
	return &model->stacks[stack];
}

attn_head *attn_model_head_of(attn_model *model)
{
	return &model->head;
}

const attn_stack *attn_model_stack(const attn_model *model, size_t stack)
{
	return &model->stacks[stack];
}

const attn_head *attn_model_head(const attn_model *model)
{
	return &model->head;
}

/* ------------------------------------------------------------------ opening */

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
                              const attn_kernels *kernels, attn_model **out, attn_error *err)
{
	attn_loader load = {.config = config, .kernels = kernels, .err = err};
	load.status = attn_weights_open(directory, &load.weights, err);
	if (attn_load_ok(&load))
		load.status = attn_model_room_check(attn_weights_numbers(load.weights), err);
	if (!attn_load_ok(&load))
		goto done;
	load.model = model_new(arch);
	if (!load.model) {
		load.status = attn_error_set(err, ATTN_MEMORY, "out of memory");
		goto done;
	}
	arch->open(&load);
	if (attn_load_ok(&load))
		load.status = attn_weights_all_taken(load.weights, err);
done:
	attn_weights_free(load.weights);
	if (!attn_load_ok(&load)) {
		attn_model_free(load.model);
		return load.status;
	}
	*out = load.model;
	return ATTN_OK;
}

attn_status attn_model_open(const char *directory, const attn_kernels *kernels, attn_model **out,
                            attn_error *err)
{
	attn_config *config = NULL;
	attn_status status = attn_config_open(directory, &config, err);
	if (status != ATTN_OK)
		return status;
	const char *model_type = attn_config_model_type(config);
	const attn_arch *arch = arch_find(model_type);
	if (arch)
		status = model_make(arch, config, directory, kernels, out, err);
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

/* ------------------------------------------------------------------ what it is */

static attn_stack_info stack_info(const attn_stack *stack)
{
	if (stack->layers == 0)
		return (attn_stack_info){0};
	return (attn_stack_info){
	    .layers = stack->layers,
	    .heads = stack->blocks[0].self.layer->heads,
	    .width = stack->width,
	    .positions = stack->positions,
	    .vocabulary = stack->embedding.tokens.count,
	    .causal = stack->blocks[0].self.options->causal != ATTN_CAUSAL_NONE,
	};
}

attn_model_info attn_model_info_of(const attn_model *model)
{
	const attn_layer *first = attn_model_layer(model, 0, ATTN_SELF);
	if (!first)
		first = attn_model_layer(model, 0, ATTN_CROSS);
	return (attn_model_info){
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
	    .stacks = {stack_info(&model->stacks[ATTN_FIRST_STACK]),
	               stack_info(&model->stacks[ATTN_SECOND_STACK])},
	    .vocabulary = model->stacks[ATTN_FIRST_STACK].embedding.tokens.count,
	    .logits = model->head.linear.out > 0,
	    .logit_count = model->head.linear.out,
	};
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
