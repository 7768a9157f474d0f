#include "pipeline/forward_key.h"

#include <stdint.h>
#include <string.h>

enum { /* words of the batch key */
       KEY_OPERATION,
       KEY_MODEL,
       KEY_UNIQUE,     /* the job itself, where it has lists of its own and can share with none */
       KEY_RAGGED,     /* several lengths */
       KEY_SECOND,     /* the second stack runs */
       KEY_EMBEDDINGS, /* by stack, a bit each */
       KEY_LENGTHS,
       KEY_TOP_K = KEY_LENGTHS + ATTN_STACKS,
       KEY_TOP_LOGITS,
       KEY_POOLING,
       KEY_NORMALIZE,
       KEY_ROLLOUT,
       KEY_WORDS_USED
};
_Static_assert(KEY_WORDS_USED <= BATCH_KEY_WORDS, "the batch key has too few words");

static bool has_lists(const struct forward_request *request)
{
	return request->head_count > 0 || request->queries.values != NULL || request->ablation_count > 0;
}

void forward_key_fill(struct job *job)
{
	const struct forward_request *request = job->forward;
	const struct forward_groups *groups = &request->groups;
	uint64_t *words = job->key.words;
	memset(words, 0, sizeof(job->key.words));
	words[KEY_OPERATION] = (uintptr_t)job->operation;
	words[KEY_MODEL] = (uintptr_t)job->model;
	words[KEY_UNIQUE] = has_lists(request) ? (uintptr_t)job : 0;
	words[KEY_RAGGED] = groups->count > 1;
	words[KEY_SECOND] = request->inputs[ATTN_SECOND_STACK].given;
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		const struct tensor *embeddings = &request->inputs[stack].embeddings;
		words[KEY_EMBEDDINGS] |= (uint64_t)(embeddings->data != NULL) << stack;
		words[KEY_LENGTHS + stack] = groups->count > 1 ? 0 : groups->list[0].lengths[stack];
	}
	words[KEY_TOP_K] = request->top_k;
	words[KEY_TOP_LOGITS] = request->top_logits;
	words[KEY_POOLING] = request->pooling;
	words[KEY_NORMALIZE] = request->normalize;
	words[KEY_ROLLOUT] = request->rollout;
}
