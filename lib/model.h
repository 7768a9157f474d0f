/*
 * model.h - what a family of models (arch_*.c) sees of a model: its configuration, its stored weights, and
 * the model it fills.
 *
 * A family is one file that defines one attn_arch, named in the table of model.c. Its open function takes
 * every tensor it knows from the weights, copies them as float32 into memory of the model and describes the
 * layers as views of that memory; the files are closed afterwards.
 */
#ifndef ATTN_MODEL_H
#define ATTN_MODEL_H

#include "attn.h"
#include "model_config.h"
#include "model_weights.h"

/* Fills a new, empty model. Errors name the key or tensor. */
typedef attn_status attn_arch_open_fn(const attn_config *config, attn_weights *weights, attn_model *model,
                                      attn_error *err);

typedef struct attn_arch {
	const char *model_type; /* of config.json */
	attn_arch_open_fn *open;
} attn_arch;

extern const attn_arch attn_arch_torch_mha;

/* Memory for count numbers of a weight, counted in the model's parameters and bytes; it lives as long as the
 * model. NULL: no memory. */
float *attn_model_floats(attn_model *model, size_t count);

/* Makes room for the attention layers of a kind, once a kind; zeroed, for the family to fill, with the
 * default options of heads so wide. NULL: no memory. */
attn_layer *attn_model_layers(attn_model *model, attn_layer_kind kind, size_t count, size_t head_width);

#endif
