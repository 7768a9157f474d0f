/*
 * arch_marian.c - Marian: sinusoids for positions, and no norm after the embeddings.
 */
#include "model.h"
#include "translator.h"

static void marian_open(attn_loader *load)
{
	attn_translator_open(load, &(attn_translator){.learned_positions = false, .norm_embedding = false});
}

const attn_arch attn_arch_marian = {"marian", marian_open};
