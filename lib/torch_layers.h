/*
 * torch_layers.h - the modules of torch.nn that attention is built of, as their state_dicts name them.
 *
 * Names stand after the loader's prefix. torch stores [out, in]; each bias is optional.
 */
#ifndef ATTN_TORCH_LAYERS_H
#define ATTN_TORCH_LAYERS_H

#include "loader.h"

/* The width E of the nn.MultiheadAttention at prefix + name, read off its weights. */
size_t attn_torch_width(attn_loader *load, const char *name);

/* nn.MultiheadAttention: in_proj_weight [3E, E] (rows of query, key, value), or, where the widths differ,
 * q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim]; in_proj_bias [3E]; out_proj. heads
 * must divide E. */
void attn_torch_attention(attn_loader *load, const char *name, size_t heads, size_t embed,
                          attn_sublayer *out);

/* What the layers of one nn.TransformerEncoder or Decoder share; norm_first, activation, layer_norm_eps and
 * num_heads are keys of config.json, named as torch's arguments. */
typedef struct attn_torch_blocks {
	size_t heads, width;
	bool pre_norm;
	enum attn_activation activation;
	double eps;
} attn_torch_blocks;

/* Reads the keys, and the width off layers.0 of prefix + name. */
attn_torch_blocks attn_torch_blocks_read(attn_loader *load, const char *name);
/* How many layers there are below prefix + name; at least 1, else the first one's tensor is missing. */
size_t attn_torch_blocks_count(const attn_loader *load, const char *name);
/* Fills a stack with the layers below name and the final norm, where there is one. Blocks that have
 * cross-attention are a decoder's. */
void attn_torch_blocks_load(attn_loader *load, const attn_torch_blocks *blocks, const char *name,
                            attn_stack *stack);
/* Whether positions of the stack see only those up to them. */
void attn_torch_blocks_causal(attn_stack *stack, bool causal);

#endif
