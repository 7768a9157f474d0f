/*
 * translator.h - what BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018) have in common: an
 * encoder and a decoder with biases everywhere and norms after each part, in the names of transformers.
 *
 * [model.]shared.weight, or encoder.embed_tokens and decoder.embed_tokens where these differ;
 * {encoder,decoder}.layers.N.{self_attn,encoder_attn}.{q,k,v,out}_proj, self_attn_layer_norm,
 * encoder_attn_layer_norm, fc1, fc2, final_layer_norm; lm_head.weight where the head is not tied;
 * final_logits_bias [1, vocabulary] where there is one.
 */
#ifndef ATTN_TRANSLATOR_H
#define ATTN_TRANSLATOR_H

#include "loader.h"

typedef struct attn_translator {
	bool learned_positions; /* embed_positions [2 + positions, width], else sinusoids in halves */
	bool norm_embedding;    /* layernorm_embedding after embeddings and positions */
} attn_translator;

/* Fills load->model, or makes the load fail. */
void attn_translator_open(attn_loader *load, const attn_translator *how);

#endif
