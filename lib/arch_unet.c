/*
 * arch_unet.c - the cross-attention of a Stable Diffusion UNet (Rombach et al. 2022), as diffusers stores it:
 * queries are image features, keys and values text embeddings.
 *
 * ....transformer_blocks.K.attn2.{to_q [C, C], to_k, to_v [C, context], to_out.0}. Layers are numbered as
 * data meets them: the blocks on the way down, the one in the middle, those on the way up.
 * num_attention_heads, or else attention_head_dim, which for a UNet is the number of heads too, is one number
 * or a list with one for each block on the way down. Whatever else the file holds is not attention to text
 * and is left alone.
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_END ".attn2.to_q.weight"
#define PREFIX_END "to_q.weight" /* what is cut off a query's name to make the prefix */
#define KEY_MAX 64

/* ------------------------------------------------------------------ which layers there are */

static bool is_query(const char *name)
{
	size_t length = strlen(name), end = strlen(QUERY_END);
	return length >= end && strcmp(name + length - end, QUERY_END) == 0;
}

/* As strcmp, but runs of digits compare as numbers: blocks.2 comes before blocks.10. down, mid and up are in
 * the order of the alphabet. */
static int compare_names(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;
	while (*a && *b) {
		size_t digits[2] = {strspn(a, "0123456789"), strspn(b, "0123456789")};
		if (digits[0] > 0 && digits[0] != digits[1])
			return digits[0] < digits[1] ? -1 : 1;
		if (*a != *b)
			break;
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

/* Names of the queries' weights in the order of the layers, for the caller to free; NULL when the load fails.
 */
static const char **queries_find(attn_loader *load, size_t *count)
{
	const size_t tensors = attn_weights_count(load->weights);
	const char **names = calloc(tensors + 1, sizeof(*names));
	*count = 0;
	if (!names) {
		attn_load_fail(load, ATTN_MEMORY, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < tensors; i++) {
		const char *name = attn_weights_at(load->weights, i)->name;
		if (is_query(name))
			names[(*count)++] = name;
	}
	if (*count == 0)
		attn_load_fail(load, ATTN_TENSOR, "tensor \"*" QUERY_END "\" of shape [C, C] is missing");
	qsort(names, *count, sizeof(*names), compare_names);
	return names;
}

/* ------------------------------------------------------------------ heads */

static const char *heads_key(const attn_loader *load)
{
	return attn_load_has(load, "num_attention_heads") ? "num_attention_heads" : "attention_head_dim";
}

/* Length of the list at the key; 0: it is none. */
static size_t list_length(const attn_loader *load, const char *key)
{
	char element[KEY_MAX];
	size_t length = 0;
	do
		snprintf(element, sizeof(element), "%s.%zu", key, length);
	while (attn_load_has(load, element) && ++length);
	return length;
}

/* Which of so many blocks a layer belongs to, those on the way up counted backwards. The middle one is as the
 * last on the way down. */
static size_t block_of(attn_loader *load, const char *name, size_t blocks)
{
	size_t block = blocks;
	if (sscanf(name, "down_blocks.%zu.", &block) == 1 && block < blocks)
		return block;
	if (sscanf(name, "up_blocks.%zu.", &block) == 1 && block < blocks)
		return blocks - 1 - block;
	if (strncmp(name, "mid_block.", strlen("mid_block.")) != 0)
		attn_load_fail(load, ATTN_CONFIG, "config.json: %s has %zu numbers, none for tensor \"%.*s\"",
		               heads_key(load), blocks, attn_error_quote(name), name);
	return blocks - 1;
}

static size_t heads_of(attn_loader *load, const char *name)
{
	const char *key = heads_key(load);
	const size_t blocks = list_length(load, key);
	if (blocks == 0)
		return attn_load_size(load, key);
	char element[KEY_MAX];
	snprintf(element, sizeof(element), "%s.%zu", key, block_of(load, name, blocks));
	return attn_load_size(load, element);
}

/* ------------------------------------------------------------------ layers */

static void layer_load(attn_loader *load, const char *query, size_t index)
{
	attn_sublayer cross = {.layer = attn_model_layer_of(load->model, index, ATTN_CROSS),
	                       .options = attn_model_options_of(load->model, index, ATTN_CROSS)};
	attn_load_prefix(load, "%.*s", (int)(strlen(query) - strlen(PREFIX_END)), query);
	attn_load_heads heads = {.heads = heads_of(load, query)};
	heads.kv_heads = heads.heads;
	const size_t width = attn_load_dimension(load, "to_q.weight", 2, 1, "[C, C]");
	heads.head_width = attn_load_head_width(load, width, heads.heads, heads_key(load));
	attn_load_attention(
	    load, &cross, &heads,
	    &(attn_load_projections){
	        .query = "to_q",
	        .key = "to_k",
	        .value = "to_v",
	        .output = "to_out.0",
	        .width = width,
	        .memory_width = attn_load_dimension(load, "to_k.weight", 2, 1, "[C, context]"),
	        .output_bias = ATTN_LOAD_BIAS_IF_THERE,
	    });
}

static void unet_open(attn_loader *load)
{
	size_t count = 0;
	const char **queries = queries_find(load, &count);
	attn_load_no_key(load, "cross_attention_norm");
	attn_load_only_flag(load, "dual_cross_attention", false);
	if (attn_load_ok(load) && !attn_model_make_layers(load->model, 0, count))
		attn_load_fail(load, ATTN_MEMORY, "out of memory");
	for (size_t i = 0; i < count && attn_load_ok(load); i++)
		layer_load(load, queries[i], i);
	free(queries);
	attn_load_ignore(load, "*");
}

const attn_arch attn_arch_unet = {"unet-cross-attention", unet_open};
