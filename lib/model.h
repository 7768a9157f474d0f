/*
 * model.h - what a family of models (arch_*.c) fills and attn_model_forward reads.
 *
 * A family is one file that defines one or more attn_arch, named in the table of model.c. Its open function
 * reads config.json and the stored tensors through a loader (loader.h), which puts the numbers into memory of
 * the model, and describes layers and stacks as views of that memory; the files are closed afterwards.
 */
#ifndef ATTN_MODEL_H
#define ATTN_MODEL_H

#include "attn.h"
#include "loader.h"
#include "stack.h"

typedef struct attn_arch {
	const char *model_type;          /* of config.json */
	void (*open)(attn_loader *load); /* fills load->model, or makes the load fail */
} attn_arch;

extern const attn_arch attn_arch_bart;
extern const attn_arch attn_arch_bert;
extern const attn_arch attn_arch_clip_text;
extern const attn_arch attn_arch_gpt2;
extern const attn_arch attn_arch_llama;
extern const attn_arch attn_arch_marian;
extern const attn_arch attn_arch_mistral;
extern const attn_arch attn_arch_qwen2;
extern const attn_arch attn_arch_qwen3;
extern const attn_arch attn_arch_t5;
extern const attn_arch attn_arch_torch_encoder;
extern const attn_arch attn_arch_torch_mha;
extern const attn_arch attn_arch_torch_transformer;
extern const attn_arch attn_arch_unet;

/* Memory for weights that lives as long as the model, 64-byte aligned, counted in its bytes. NULL: no memory.
 */
void *attn_model_memory(attn_model *model, size_t bytes);
/* The model has count more numbers of weights. */
void attn_model_count(attn_model *model, size_t numbers);

/* A model of attention layers alone, that has no stack: makes room for so many of each kind, once. NULL for
 * what is not there. */
bool attn_model_make_layers(attn_model *model, size_t self, size_t cross);
attn_layer *attn_model_layer_of(attn_model *model, size_t layer, attn_layer_kind kind);
attn_options *attn_model_options_of(attn_model *model, size_t layer, attn_layer_kind kind);

/* A model of one stack (second 0) or two: makes room for their blocks and the attention layers of these,
 * once, and points the blocks at their layers. Blocks of the second stack have cross-attention. false: no
 * memory. */
bool attn_model_make_stacks(attn_model *model, size_t first, size_t second);
attn_stack *attn_model_stack_of(attn_model *model, size_t stack);
attn_head *attn_model_head_of(attn_model *model);

/* The same to read. A stack that is not there has no layers, a head that is not there no outputs. */
const attn_stack *attn_model_stack(const attn_model *model, size_t stack);
const attn_head *attn_model_head(const attn_model *model);

#endif
