#include "pipeline/attention_key.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { /* words of the batch key */
       KEY_OPERATION,
       KEY_MODEL,  /* instance, or 0 */
       KEY_UNIQUE, /* the job itself, where it can share with none */
       KEY_LAYER,
       KEY_KIND,
       KEY_INPUTS, /* rank 4; key is query; value is key */
       KEY_HEADS,
       KEY_KV_HEADS,
       KEY_QUERIES,
       KEY_KEYS,
       KEY_HEAD_WIDTH,
       KEY_VALUE_WIDTH,
       KEY_QUERY_IN,
       KEY_KEY_IN,
       KEY_VALUE_IN,
       KEY_OUT,
       KEY_SCALE,
       KEY_SOFTCAP,
       KEY_CAUSAL,
       KEY_WINDOW_LEFT,
       KEY_WINDOW_RIGHT,
       KEY_SINK,
       KEY_ALIBI,
       KEY_PAST,
       KEY_ROTATION,
       KEY_ROPE_THETA,
       KEY_SINUSOIDAL,
       KEY_POSITION_OFFSET,
       KEY_SELECTION, /* lists of the job's own, or 0 */
       KEY_TOP_K,
       KEY_WORDS_USED
};
_Static_assert(KEY_WORDS_USED <= BATCH_KEY_WORDS, "the batch key has too few words");

static uint64_t float_bits(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint64_t double_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static bool has_own_projections(const struct attention_request *request)
{
	const attn_layer *layer = &request->layer;
	return !request->split_heads && !request->model &&
	       (layer->query.weight != NULL || layer->key.weight != NULL || layer->value.weight != NULL ||
	        layer->output.weight != NULL);
}

static void fill_inputs(uint64_t *words, const struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	words[KEY_LAYER] = request->model_layer;
	words[KEY_KIND] = request->model_kind;
	words[KEY_INPUTS] = (uint64_t)request->split_heads | (uint64_t)(request->key.data == NULL) << 1 |
	                    (uint64_t)(request->value.data == NULL) << 2;
	words[KEY_HEADS] = shape->heads;
	words[KEY_KV_HEADS] = shape->kv_heads;
	words[KEY_QUERIES] = shape->queries;
	words[KEY_KEYS] = shape->keys;
	words[KEY_HEAD_WIDTH] = shape->head_width;
	words[KEY_VALUE_WIDTH] = shape->value_width;
	if (!request->split_heads) {
		words[KEY_QUERY_IN] = request->layer.query.in;
		words[KEY_KEY_IN] = request->layer.key.in;
		words[KEY_VALUE_IN] = request->layer.value.in;
		words[KEY_OUT] = request->layer.output.out;
	}
	words[KEY_PAST] = shape->past;
}

static void fill_options(uint64_t *words, const attn_options *options)
{
	words[KEY_SCALE] = float_bits(options->scale);
	words[KEY_SOFTCAP] = float_bits(options->softcap);
	words[KEY_CAUSAL] = options->causal;
	words[KEY_WINDOW_LEFT] = (uint64_t)options->window_left;
	words[KEY_WINDOW_RIGHT] = (uint64_t)options->window_right;
	words[KEY_SINK] = (uintptr_t)options->sink;
	words[KEY_ALIBI] = options->slopes != NULL; /* which follow from the heads */
	words[KEY_ROTATION] = options->rotation;
	words[KEY_ROPE_THETA] = double_bits(options->rope_theta);
	words[KEY_SINUSOIDAL] = options->sinusoidal;
	words[KEY_POSITION_OFFSET] = (uint64_t)options->position_offset;
}

static void fill_selection(uint64_t *words, const attn_selection *selection)
{
	if (selection == NULL)
		return;
	words[KEY_SELECTION] =
	    selection->heads != NULL || selection->queries != NULL ? (uintptr_t)selection : 0;
	words[KEY_TOP_K] = selection->top_k;
}

void attention_key_fill(struct job *job)
{
	const struct attention_request *request = job->attention;
	uint64_t *words = job->key.words;
	memset(words, 0, sizeof(job->key.words));
	words[KEY_OPERATION] = (uintptr_t)job->operation;
	words[KEY_MODEL] = (uintptr_t)job->model;
	words[KEY_UNIQUE] = has_own_projections(request) ? (uintptr_t)job : 0;
	fill_inputs(words, request);
	fill_options(words, &request->options);
	fill_selection(words, request->options.selection);
}
