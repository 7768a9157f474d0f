/*
 * arch_bert.c - BERT and models of its layout, MiniLM among them (Devlin et al. 2019).
 *
 * Post-norm blocks; word, position and token type embeddings, of which every token has type 0. Names may
 * begin with "bert."; older files call the weights of norms gamma and beta. The pooler and the heads for
 * pre-training are left aside: what is served are hidden states.
 */
#include "model.h"

#include <string.h>

struct bert {
	char root[sizeof("bert.")]; /* before every name */
	size_t width, inner;
	attn_load_heads heads;
	double eps;
	enum attn_activation activation;
};

static struct bert config_read(attn_loader *load)
{
	struct bert bert = {.width = attn_load_size(load, "hidden_size"),
	                    .inner = attn_load_size(load, "intermediate_size")};
	const size_t heads = attn_load_size(load, "num_attention_heads");
	const size_t width = attn_load_head_width(load, bert.width, heads, "num_attention_heads");
	bert.heads = (attn_load_heads){heads, heads, width};
	bert.eps = attn_load_number(load, "layer_norm_eps", 1e-12);
	bert.activation = attn_load_activation(load, "hidden_act", ATTN_ACTIVATION_GELU);
	attn_load_only_text(load, "position_embedding_type", "absolute");
	attn_load_only_flag(load, "is_decoder", false);
	attn_load_only_flag(load, "add_cross_attention", false);
	if (attn_load_has_tensor(load, "bert.embeddings.word_embeddings.weight"))
		memcpy(bert.root, "bert.", sizeof(bert.root));
	return bert;
}

static void embedding_load(attn_loader *load, const struct bert *bert, attn_stack *stack)
{
	attn_embedding *embedding = &stack->embedding;
	const size_t vocabulary = attn_load_size(load, "vocab_size");
	const size_t types = attn_load_size_or(load, "type_vocab_size", 2);
	attn_load_prefix(load, "%sembeddings.", bert->root);
	embedding->tokens = attn_load_table(load, "word_embeddings.weight", vocabulary, bert->width);
	embedding->token_scale = 1;
	embedding->type = attn_load_table(load, "token_type_embeddings.weight", types, bert->width).rows;
	embedding->positions =
	    attn_load_table(load, "position_embeddings.weight", stack->positions, bert->width).rows;
	embedding->norm =
	    attn_load_norm(load, "LayerNorm", ATTN_NORM_LAYER, bert->eps, bert->width, ATTN_LOAD_BIAS);
}

static void block_load(attn_loader *load, const struct bert *bert, attn_block *block)
{
	const attn_load_projections projections = {.query = "attention.self.query",
	                                           .key = "attention.self.key",
	                                           .value = "attention.self.value",
	                                           .output = "attention.output.dense",
	                                           .width = bert->width,
	                                           .bias = ATTN_LOAD_BIAS,
	                                           .output_bias = ATTN_LOAD_BIAS};
	attn_feed_forward *feed = &block->feed_forward;
	attn_load_attention(load, &block->self, &bert->heads, &projections);
	block->self.norm = attn_load_norm(load, "attention.output.LayerNorm", ATTN_NORM_LAYER, bert->eps,
	                                  bert->width, ATTN_LOAD_BIAS);
	feed->up = attn_load_linear(load, "intermediate.dense", bert->width, bert->inner, ATTN_OUT_IN,
	                            ATTN_LOAD_BIAS);
	feed->down =
	    attn_load_linear(load, "output.dense", bert->inner, bert->width, ATTN_OUT_IN, ATTN_LOAD_BIAS);
	feed->norm =
	    attn_load_norm(load, "output.LayerNorm", ATTN_NORM_LAYER, bert->eps, bert->width, ATTN_LOAD_BIAS);
	feed->activation = bert->activation;
}

static void bert_open(attn_loader *load)
{
	const struct bert bert = config_read(load);
	const size_t layers = attn_load_layers(load, "num_hidden_layers");
	attn_stack *stack = attn_load_stacks(load, layers, 0);
	stack->width = bert.width;
	stack->positions = attn_load_size(load, "max_position_embeddings");
	embedding_load(load, &bert, stack);
	for (size_t i = 0; attn_load_ok(load) && i < layers; i++) {
		attn_load_prefix(load, "%sencoder.layer.%zu.", bert.root, i);
		block_load(load, &bert, &stack->blocks[i]);
	}
	attn_load_ignore(load, "*embeddings.position_ids");
	attn_load_ignore(load, "*embeddings.token_type_ids");
	attn_load_ignore(load, "*pooler.dense.*");
	attn_load_ignore(load, "cls.*");
}

const attn_arch attn_arch_bert = {"bert", bert_open};
