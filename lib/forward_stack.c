#include "forward_stack.h"

#include <string.h>

#include "linear.h"
#include "rollout.h"
#include "rounding.h"
#include "scratch_size.h"

/* Buffers of a run through a stack, each [count * length, ...]. */
struct buffers {
	float *x;      /* width: the stream that blocks add to */
	float *normed; /* width: what a pre-norm sublayer reads */
	float *mixed;  /* width: what attention gives, not yet added to x when pending says so */
	bool pending;
};

/* One sublayer of attention: what it reads, and where its weights go. */
struct attention {
	const attn_sublayer *sublayer;
	size_t kind, layer;       /* of results and ablations */
	const float *query, *key; /* rows of all sequences; the same in self-attention */
	size_t keys;
	struct attn_rollout *rollouts; /* [count], or NULL: none */
};

/* ---- attention */

/* [heads] which of them are ablated; NULL out when none is. */
static attn_status ablated_heads(const struct attn_stack_run *run, const struct attention *attention,
                                 const uint8_t **out)
{
	const attn_forward_call *call = run->call;
	const size_t heads = attention->sublayer->layer->heads;
	uint8_t *ablated = NULL;
	*out = NULL;
	for (size_t i = 0; i < call->ablation_count; i++) {
		const attn_ablation *ablation = &call->ablations[i];
		if (ablation->kind != attention->kind || ablation->layer != attention->layer)
			continue;
		if (ablated == NULL && (ablated = attn_arena_alloc(run->executor->scratch, heads)) == NULL)
			return ATTN_MEMORY;
		if (*out == NULL)
			memset(ablated, 0, heads);
		ablated[ablation->head] = 1;
		*out = ablated;
	}
	return ATTN_OK;
}

static attn_layer_sequence layer_sequence(const struct attn_stack_run *run, const struct attention *attention,
                                          size_t s, float *out)
{
	const attn_layer *layer = attention->sublayer->layer;
	const attn_layer_results *results = run->rows.sequences[s].attention[attention->kind];
	attn_layer_sequence sequence = {
	    .query = attention->query + s * run->rows.length * layer->query.in,
	    .key = attention->key + s * attention->keys * layer->key.in,
	    .value = attention->key + s * attention->keys * layer->value.in,
	    .output = out + s * run->rows.length * layer->output.out,
	    .attend = {.key_length = attention->keys},
	};
	if (results != NULL) {
		const attn_layer_results *wanted = &results[attention->layer];
		sequence.attend.weights = wanted->weights;
		sequence.attend.top_indices = wanted->top_indices;
		sequence.attend.top_values = wanted->top_values;
		sequence.attend.entropy = wanted->entropy;
		sequence.attend.logsumexp = wanted->logsumexp;
		sequence.attend.maximum = wanted->maximum;
	}
	return sequence;
}

static attn_status attention_run(const struct attn_stack_run *run, const struct attention *attention,
                                 float *out)
{
	const size_t count = run->rows.count;
	attn_options options = *attention->sublayer->options;
	options.selection = run->call->selections[attention->kind];
	attn_layer_sequence *sequences = attn_arena_alloc(run->executor->scratch, count * sizeof(*sequences));
	attn_status status = ablated_heads(run, attention, &options.ablated);
	if (sequences == NULL || status != ATTN_OK)
		return ATTN_MEMORY;
	size_t rolled = 0;
	for (size_t s = 0; s < count; s++) {
		sequences[s] = layer_sequence(run, attention, s, out);
		if (attention->rollouts != NULL && run->rows.sequences[s].stacks[run->rows.stack].rollout)
			sequences[s].attend.mean_weights = attention->rollouts[rolled++].weights;
	}
	return attn_layer_run(run->kernels, run->executor, attention->sublayer->layer, run->rows.length,
	                      attention->keys, 0, &options, sequences, count);
}

/* ---- blocks */

/* Adds what is pending to x and norms it for a pre-norm sublayer; *input is what the sublayer reads. hidden:
 * hidden states that x then is, or ATTN_NO_HIDDEN. */
static attn_status sublayer_begin(const struct attn_stack_run *run, const attn_norm *norm,
                                  struct buffers *buffers, size_t hidden, const float **input)
{
	const bool pre_norm = attn_model_stack(run->model, run->rows.stack)->pre_norm;
	const struct attn_rows_pass pass = {
	    .x = buffers->x,
	    .add = buffers->pending ? buffers->mixed : NULL,
	    .norm = norm,
	    .normed = pre_norm ? buffers->normed : NULL,
	    .hidden = hidden,
	};
	*input = pre_norm ? buffers->normed : buffers->x;
	buffers->pending = false;
	if (pass.add == NULL && pass.normed == NULL && hidden == ATTN_NO_HIDDEN)
		return ATTN_OK;
	return attn_rows_run(run->executor, &run->rows, &pass);
}

/* Norms x, to which add is added first, after a post-norm sublayer. */
static attn_status post_norm(const struct attn_stack_run *run, const attn_norm *norm, struct buffers *buffers,
                             const float *add)
{
	const struct attn_rows_pass pass = {
	    .x = buffers->x, .add = add, .norm = norm, .normed = buffers->x, .hidden = ATTN_NO_HIDDEN};
	return attn_rows_run(run->executor, &run->rows, &pass);
}

/* x += attention, which a pre-norm block leaves to what comes next. */
static attn_status attention_sublayer(const struct attn_stack_run *run, struct attention *attention,
                                      struct buffers *buffers, size_t hidden)
{
	const attn_sublayer *sublayer = attention->sublayer;
	attn_status status = sublayer_begin(run, &sublayer->norm, buffers, hidden, &attention->query);
	if (status != ATTN_OK)
		return status;
	if (attention->key == NULL)
		attention->key = attention->query;
	const attn_arena_mark mark = attn_arena_here(run->executor->scratch);
	status = attention_run(run, attention, buffers->mixed);
	attn_arena_rewind(run->executor->scratch, mark);
	if (status != ATTN_OK)
		return status;
	buffers->pending = attn_model_stack(run->model, run->rows.stack)->pre_norm;
	return buffers->pending ? ATTN_OK : post_norm(run, &sublayer->norm, buffers, buffers->mixed);
}

/* x += the feed-forward of input. */
static attn_status feed_forward_run(const struct attn_stack_run *run, const attn_feed_forward *feed,
                                    const float *input, float *x)
{
	attn_arena *scratch = run->executor->scratch;
	const size_t rows = run->rows.length * run->rows.count;
	const bool gated = feed->gate.in > 0;
	float *inner = attn_arena_floats(scratch, rows * feed->up.out);
	float *gate = gated ? attn_arena_floats(scratch, rows * feed->up.out) : NULL;
	if (inner == NULL || (gated && gate == NULL))
		return ATTN_MEMORY;
	const struct attn_linear_call base = {.rows = run->rows.length, .count = run->rows.count};
	struct attn_linear_call up = base, gating = base, down = base;
	up.linear = &feed->up;
	up.x.data = input;
	up.y.data = inner;
	up.activation = gated ? ATTN_ACTIVATION_NONE : feed->activation;
	gating.linear = &feed->gate;
	gating.x.data = input;
	gating.y.data = gate;
	gating.activation = feed->activation;
	gating.factor.data = inner;
	down.linear = &feed->down;
	down.x.data = gated ? gate : inner;
	down.y.data = x;
	down.residual.data = x;
	attn_status status = attn_linear_run(run->kernels, run->executor, &up, 1);
	if (status == ATTN_OK && gated)
		status = attn_linear_run(run->kernels, run->executor, &gating, 1);
	return status == ATTN_OK ? attn_linear_run(run->kernels, run->executor, &down, 1) : status;
}

static attn_status feed_forward_sublayer(const struct attn_stack_run *run, const attn_feed_forward *feed,
                                         struct buffers *buffers)
{
	const float *input = NULL;
	attn_status status = sublayer_begin(run, &feed->norm, buffers, ATTN_NO_HIDDEN, &input);
	if (status != ATTN_OK)
		return status;
	const attn_arena_mark mark = attn_arena_here(run->executor->scratch);
	status = feed_forward_run(run, feed, input, buffers->x);
	attn_arena_rewind(run->executor->scratch, mark);
	if (status != ATTN_OK || attn_model_stack(run->model, run->rows.stack)->pre_norm)
		return status;
	return post_norm(run, &feed->norm, buffers, NULL);
}

/* ---- rollouts */

static size_t rollouts_wanted(const struct attn_rows *rows)
{
	size_t wanted = 0;
	for (size_t s = 0; s < rows->count; s++)
		wanted += rows->sequences[s].stacks[rows->stack].rollout != NULL;
	return wanted;
}

/* [wanted] where the sequences that want one compute theirs; NULL: no memory. */
static struct attn_rollout *rollouts_new(const struct attn_stack_run *run, size_t wanted)
{
	attn_arena *scratch = run->executor->scratch;
	const struct attn_rows *rows = &run->rows;
	struct attn_rollout *rollouts = attn_arena_alloc(scratch, wanted * sizeof(*rollouts));
	const size_t square = rows->length * rows->length;
	float *weights = attn_arena_floats(scratch, wanted * square);
	float *products = attn_arena_floats(scratch, wanted * square);
	if (rollouts == NULL || weights == NULL || products == NULL)
		return NULL;
	for (size_t s = 0, i = 0; s < rows->count; s++) {
		float *rollout = rows->sequences[s].stacks[rows->stack].rollout;
		if (rollout == NULL)
			continue;
		rollouts[i] = (struct attn_rollout){weights + i * square, products + i * square, rollout};
		i++;
	}
	return rollouts;
}

/* ---- the stack */

static attn_status block_run(const struct attn_stack_run *run, size_t layer, struct buffers *buffers,
                             struct attn_rollout *rollouts, size_t rolled)
{
	const attn_block *block = &attn_model_stack(run->model, run->rows.stack)->blocks[layer];
	struct attention self = {.sublayer = &block->self,
	                         .kind = run->rows.stack,
	                         .layer = layer,
	                         .keys = run->rows.length,
	                         .rollouts = rollouts};
	struct attention cross = {.sublayer = &block->cross,
	                          .kind = ATTN_CROSS_STACKS,
	                          .layer = layer,
	                          .key = run->memory,
	                          .keys = run->memory_length};
	attn_status status = attention_sublayer(run, &self, buffers, layer > 0 ? layer : ATTN_NO_HIDDEN);
	if (status == ATTN_OK && rollouts != NULL)
		status = attn_rollout_step(run->kernels, run->executor, rollouts, rolled, run->rows.length,
		                           layer == 0);
	if (status == ATTN_OK && block->cross.layer != NULL)
		status = attention_sublayer(run, &cross, buffers, ATTN_NO_HIDDEN);
	if (status == ATTN_OK)
		status = feed_forward_sublayer(run, &block->feed_forward, buffers);
	return status;
}

static attn_status blocks_run(const struct attn_stack_run *run, float *x)
{
	attn_arena *scratch = run->executor->scratch;
	const attn_stack *stack = attn_model_stack(run->model, run->rows.stack);
	const size_t numbers = run->rows.count * run->rows.length * stack->width;
	const size_t rolled = rollouts_wanted(&run->rows);
	struct attn_rollout *rollouts = rolled > 0 ? rollouts_new(run, rolled) : NULL;
	struct buffers buffers = {.x = x,
	                          .normed = attn_arena_floats(scratch, stack->pre_norm ? numbers : 0),
	                          .mixed = attn_arena_floats(scratch, numbers)};
	if (buffers.normed == NULL || buffers.mixed == NULL || (rolled > 0 && rollouts == NULL))
		return ATTN_MEMORY;
	attn_status status = attn_rows_embed(run->executor, &run->rows, &stack->embedding, x);
	for (size_t layer = 0; layer < stack->layers && status == ATTN_OK; layer++)
		status = block_run(run, layer, &buffers, rollouts, rolled);
	const struct attn_rows_pass last = {
	    .x = x, .norm = &stack->final_norm, .normed = x, .hidden = stack->layers};
	return status == ATTN_OK ? attn_rows_run(run->executor, &run->rows, &last) : status;
}

attn_status attn_stack_run(const struct attn_stack_run *run, float *x)
{
	const attn_arena_mark mark = attn_arena_here(run->executor->scratch);
	attn_status status = blocks_run(run, x);
	attn_arena_rewind(run->executor->scratch, mark);
	return status;
}

/* ---- sizes */

static size_t feed_forward_bytes(const attn_feed_forward *feed, size_t length, size_t count)
{
	size_t bytes = attn_larger(attn_linear_scratch_bytes(&feed->up, length, count),
	                           attn_linear_scratch_bytes(&feed->down, length, count));
	const size_t buffers = feed->gate.in > 0 ? 2 : 1;
	if (feed->gate.in > 0)
		bytes = attn_larger(bytes, attn_linear_scratch_bytes(&feed->gate, length, count));
	for (size_t i = 0; i < buffers; i++)
		attn_scratch_add(&bytes, (const size_t[]){length, count, feed->up.out, sizeof(float)}, 4);
	return bytes;
}

static size_t attention_bytes(const attn_sublayer *sublayer, const attn_selection *selection, size_t queries,
                              size_t keys, size_t count)
{
	attn_options options = *sublayer->options;
	options.selection = selection;
	size_t bytes = attn_layer_scratch_bytes(sublayer->layer, queries, keys, 0, &options, count);
	attn_scratch_add(&bytes, (const size_t[]){sublayer->layer->heads}, 1);
	attn_scratch_add(&bytes, (const size_t[]){count, sizeof(attn_layer_sequence)}, 2);
	return bytes;
}

size_t attn_stack_scratch_bytes(const attn_model *model, const attn_forward_call *call, size_t which,
                                size_t count)
{
	const attn_stack *stack = attn_model_stack(model, which);
	const size_t length = call->lengths[which], memory = call->lengths[ATTN_FIRST_STACK];
	size_t bytes = 0;
	for (size_t i = 0; i < stack->layers; i++) {
		const attn_block *block = &stack->blocks[i];
		bytes = attn_larger(bytes, feed_forward_bytes(&block->feed_forward, length, count));
		bytes = attn_larger(
		    bytes, attention_bytes(&block->self, call->selections[which], length, length, count));
		if (block->cross.layer != NULL)
			bytes = attn_larger(bytes, attention_bytes(&block->cross,
			                                           call->selections[ATTN_CROSS_STACKS],
			                                           length, memory, count));
	}
	if (call->rollout) {
		bytes = attn_larger(bytes, attn_rollout_scratch_bytes(length, count));
		attn_scratch_add(&bytes, (const size_t[]){count, sizeof(struct attn_rollout)}, 2);
		attn_scratch_add(&bytes, (const size_t[]){count, length, length, sizeof(float)}, 4);
		attn_scratch_add(&bytes, (const size_t[]){count, length, length, sizeof(float)}, 4);
	}
	attn_scratch_add(&bytes, (const size_t[]){count, length, stack->width, sizeof(float)}, 4);
	attn_scratch_add(&bytes, (const size_t[]){count, length, stack->width, sizeof(float)}, 4);
	return bytes;
}

static size_t attention_tile_bytes(const attn_sublayer *sublayer, size_t queries, size_t keys)
{
	attn_shape shape;
	return attn_layer_shape(sublayer->layer, queries, keys, 0, &shape) ? attn_attend_tile_bytes(&shape)
	                                                                   : SIZE_MAX;
}

size_t attn_stack_tile_bytes(const attn_model *model, const attn_forward_call *call, size_t which)
{
	const attn_stack *stack = attn_model_stack(model, which);
	const size_t length = call->lengths[which], memory = call->lengths[ATTN_FIRST_STACK];
	size_t bytes = 0;
	for (size_t i = 0; i < stack->layers; i++) {
		const attn_block *block = &stack->blocks[i];
		bytes = attn_larger(bytes, attention_tile_bytes(&block->self, length, length));
		if (block->cross.layer != NULL)
			bytes = attn_larger(bytes, attention_tile_bytes(&block->cross, length, memory));
	}
	return bytes;
}

static double linear_work(const attn_linear *linear, double rows)
{
	return 2 * rows * (double)linear->in * (double)linear->out;
}

static double attention_work(const attn_layer *layer, double queries, double keys)
{
	const double inner = (double)layer->heads * (double)(layer->head_width + layer->value_width);
	return linear_work(&layer->query, queries) + linear_work(&layer->key, keys) +
	       linear_work(&layer->value, keys) + linear_work(&layer->output, queries) +
	       2 * queries * keys * inner;
}

double attn_stack_work(const attn_model *model, const attn_forward_call *call, size_t which)
{
	const attn_stack *stack = attn_model_stack(model, which);
	const double length = (double)call->lengths[which];
	const double memory = (double)call->lengths[ATTN_FIRST_STACK];
	double work = 0;
	for (size_t i = 0; i < stack->layers; i++) {
		const attn_block *block = &stack->blocks[i];
		work += attention_work(block->self.layer, length, length);
		if (block->cross.layer != NULL)
			work += attention_work(block->cross.layer, length, memory);
		work += linear_work(&block->feed_forward.up, length) +
		        linear_work(&block->feed_forward.gate, length) +
		        linear_work(&block->feed_forward.down, length);
	}
	return work;
}
