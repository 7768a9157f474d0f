/*
 * arch_bart.c - BART: learned positions, and a norm after the embeddings.
 */
#include "model.h"
#include "translator.h"

static void bart_open(attn_loader *load)
{
	attn_translator_open(load, &(attn_translator){.learned_positions = true, .norm_embedding = true});
}

const attn_arch attn_arch_bart = {"bart", bart_open};
