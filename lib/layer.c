#include "attn.h"

#include <stdlib.h>
#include <string.h>

#include "layer_appended.h"
#include "layer_inputs.h"
#include "layer_norms.h"
#include "linear.h"

/* Blocks of scratch that a call takes besides those it counts by size; they are rounded up to 64 bytes. */
#define SCRATCH_BLOCKS ((size_t)16)
#define SCRATCH_ALIGNMENT ((size_t)64)

/* Which of a sequence's inputs a projection reads. */
enum { QUERY, KEY, VALUE, INPUTS };

/* The products that run at a time. */
struct step {
	attn_linear linears[INPUTS];
	struct attn_linear_call calls[INPUTS];
	size_t count;
};

/* Where the heads of an input lie after its projection. */
struct projected {
	float *data; /* NULL: the input itself */
	size_t row_stride, sequence_stride;
};

struct run {
	const attn_kernels *kernels;
	attn_executor *executor;
	attn_arena *scratch;
	const attn_layer *layer;
	attn_shape shape;
	const attn_options *options;
	const attn_layer_sequence *sequences;
	size_t count;
	struct projected projected[INPUTS];
	float *context; /* NULL: outputs are contexts */
};

/* ---- inputs */

static const float *input_of(const attn_layer_sequence *sequence, size_t input)
{
	const float *const inputs[INPUTS] = {sequence->query, sequence->key, sequence->value};
	return inputs[input];
}

static const attn_linear *linear_of(const attn_layer *layer, size_t input)
{
	const attn_linear *const linears[INPUTS] = {&layer->query, &layer->key, &layer->value};
	return linears[input];
}

static size_t rows_of(const struct run *run, size_t input)
{
	return input == QUERY ? run->shape.queries : run->shape.keys - run->shape.past - run->layer->appended;
}

/* Where the rows of an input are, sequence by sequence; NULL: no memory. */
static const float *const *input_rows(const struct run *run, size_t input)
{
	const float **rows = attn_arena_alloc(run->scratch, run->count * sizeof(*rows));
	for (size_t s = 0; rows != NULL && s < run->count; s++)
		rows[s] = input_of(&run->sequences[s], input);
	return rows;
}

static bool inputs_same(const struct run *run, size_t a, size_t b)
{
	if (rows_of(run, a) != rows_of(run, b))
		return false;
	for (size_t s = 0; s < run->count; s++)
		if (input_of(&run->sequences[s], a) != input_of(&run->sequences[s], b))
			return false;
	return true;
}

/* How many projections from first on are one product. */
static size_t group_size(const struct run *run, size_t first)
{
	const attn_linear *linear = linear_of(run->layer, first);
	size_t size = 1, out = linear->out;
	while (first + size < INPUTS &&
	       attn_linear_adjoin(linear_of(run->layer, first + size - 1),
	                          linear_of(run->layer, first + size)) &&
	       inputs_same(run, first, first + size)) {
		out += linear_of(run->layer, first + size)->out;
		size++;
	}
	const bool rows_overlap =
	    linear->packed == NULL && linear->layout == ATTN_IN_OUT && out > linear->stride;
	return rows_overlap ? 1 : size;
}

/* The biases of a group side by side; NULL out when it has none. */
static attn_status group_bias(const struct run *run, size_t first, size_t size, const float **out)
{
	size_t total = 0, with = 0;
	for (size_t i = first; i < first + size; i++) {
		total += linear_of(run->layer, i)->out;
		with += linear_of(run->layer, i)->bias != NULL;
	}
	*out = size == 1 ? linear_of(run->layer, first)->bias : NULL;
	if (with == 0 || size == 1)
		return ATTN_OK;
	float *bias = attn_arena_floats(run->scratch, total);
	if (bias == NULL)
		return ATTN_MEMORY;
	*out = bias;
	for (size_t i = first; i < first + size; i++) {
		const attn_linear *linear = linear_of(run->layer, i);
		if (linear->bias != NULL)
			memcpy(bias, linear->bias, linear->out * sizeof(float));
		else
			memset(bias, 0, linear->out * sizeof(float));
		bias += linear->out;
	}
	return ATTN_OK;
}

/* Adds the product of the projections [first, first + size) to a step and says where its results lie. */
static attn_status step_project(struct step *step, struct run *run, size_t first, size_t size)
{
	attn_linear *linear = &step->linears[step->count];
	struct attn_linear_call *call = &step->calls[step->count++];
	*linear = *linear_of(run->layer, first);
	for (size_t i = first + 1; i < first + size; i++)
		linear->out += linear_of(run->layer, i)->out;
	const size_t rows = rows_of(run, first);
	float *y = attn_arena_floats(run->scratch, run->count * rows * linear->out);
	*call = (struct attn_linear_call){
	    .linear = linear,
	    .rows = rows,
	    .count = run->count,
	    .x = {.sequences = input_rows(run, first)},
	    .y = {.data = y},
	};
	if (y == NULL || call->x.sequences == NULL)
		return ATTN_MEMORY;
	for (size_t i = first; i < first + size; i++) {
		run->projected[i] = (struct projected){y, linear->out, rows * linear->out};
		y += linear_of(run->layer, i)->out;
	}
	return group_bias(run, first, size, &linear->bias);
}

static attn_status run_project(struct run *run)
{
	struct step step = {.count = 0};
	size_t size = 1;
	for (size_t input = 0; input < INPUTS; input += size) {
		size = 1;
		const attn_linear *linear = linear_of(run->layer, input);
		run->projected[input] = (struct projected){NULL, linear->out, 0};
		if (attn_linear_is_identity(linear) || rows_of(run, input) == 0)
			continue;
		size = group_size(run, input);
		attn_status status = step_project(&step, run, input, size);
		if (status != ATTN_OK)
			return status;
	}
	return step.count == 0 ? ATTN_OK
	                       : attn_linear_run(run->kernels, run->executor, step.calls, step.count);
}

/* ---- attention between the projections */

static attn_status run_norms(struct run *run)
{
	const attn_layer *layer = run->layer;
	const struct projected *query = &run->projected[QUERY], *key = &run->projected[KEY];
	const struct attn_head_rows parts[] = {
	    {layer->query_norm, query->data, run->count * rows_of(run, QUERY), query->row_stride,
	     layer->heads},
	    {layer->key_norm, key->data, run->count * rows_of(run, KEY), key->row_stride, layer->kv_heads},
	};
	return attn_heads_norm(run->kernels, run->executor, parts, sizeof(parts) / sizeof(parts[0]),
	                       layer->head_width, layer->norm_eps);
}

static attn_heads heads_view(const struct run *run, size_t input, size_t sequence, size_t width)
{
	const struct projected *projected = &run->projected[input];
	const float *data = input_of(&run->sequences[sequence], input);
	if (projected->data != NULL)
		data = projected->data + sequence * projected->sequence_stride;
	return (attn_heads){data, width, projected->row_stride};
}

static attn_status run_attend(struct run *run)
{
	const attn_shape *shape = &run->shape;
	const size_t total = shape->heads * shape->value_width;
	attn_sequence *sequences = attn_arena_alloc(run->scratch, run->count * sizeof(*sequences));
	if (sequences == NULL)
		return ATTN_MEMORY;
	for (size_t s = 0; s < run->count; s++) {
		sequences[s] = run->sequences[s].attend;
		sequences[s].query = heads_view(run, QUERY, s, shape->head_width);
		sequences[s].key = heads_view(run, KEY, s, shape->head_width);
		sequences[s].value = heads_view(run, VALUE, s, shape->value_width);
		sequences[s].context = run->context != NULL ? run->context + s * shape->queries * total
		                                            : run->sequences[s].output;
		sequences[s].context_head_stride = shape->value_width;
		sequences[s].context_row_stride = total;
	}
	attn_options options = *run->options;
	attn_status status = ATTN_OK;
	if (run->layer->appended > 0)
		status = attn_appended_add(run->layer, shape, &options, sequences, run->count, run->scratch);
	if (status != ATTN_OK)
		return status;
	return attn_attend(run->kernels, run->executor, shape, &options, sequences, run->count);
}

/* ---- output projection */

/* The output product, reading the contexts that run_attend will have written. */
static attn_status output_call(struct run *run, struct attn_linear_call *call)
{
	const attn_linear *linear = &run->layer->output;
	float **outputs = attn_arena_alloc(run->scratch, run->count * sizeof(*outputs));
	run->context = attn_arena_floats(run->scratch, run->shape.queries * run->count * linear->in);
	if (outputs == NULL || run->context == NULL)
		return ATTN_MEMORY;
	for (size_t s = 0; s < run->count; s++)
		outputs[s] = run->sequences[s].output;
	*call = (struct attn_linear_call){
	    .linear = linear,
	    .rows = run->shape.queries,
	    .count = run->count,
	    .x = {.data = run->context},
	    .y = {.sequences = outputs},
	};
	return ATTN_OK;
}

static attn_status run_layer(struct run *run)
{
	struct attn_linear_call output = {.linear = NULL};
	attn_status status = ATTN_OK;
	if (run->options->sinusoidal)
		status = attn_inputs_add_sinusoids(run->executor, run->layer, rows_of(run, QUERY),
		                                   rows_of(run, KEY), run->options->position_offset,
		                                   run->sequences, run->count, &run->sequences);
	if (status == ATTN_OK)
		status = run_project(run);
	if (status == ATTN_OK)
		status = run_norms(run);
	if (status == ATTN_OK && !attn_linear_is_identity(&run->layer->output) && run->shape.queries > 0)
		status = output_call(run, &output);
	if (status == ATTN_OK)
		status = run_attend(run);
	if (status == ATTN_OK && output.linear != NULL)
		status = attn_linear_run(run->kernels, run->executor, &output, 1);
	return status;
}

/* ---- the layer as a whole */

static bool linear_fits(const attn_linear *linear, size_t out)
{
	return linear->out == out && attn_linear_fits(linear);
}

/* Norms are of projected heads. */
static bool norms_fit(const attn_layer *layer)
{
	return (layer->query_norm == NULL || !attn_linear_is_identity(&layer->query)) &&
	       (layer->key_norm == NULL || !attn_linear_is_identity(&layer->key)) && layer->norm_eps >= 0;
}

bool attn_layer_shape(const attn_layer *layer, size_t queries, size_t keys, size_t past, attn_shape *out)
{
	*out = (attn_shape){
	    .heads = layer->heads,
	    .kv_heads = layer->kv_heads,
	    .queries = queries,
	    .keys = keys,
	    .past = past,
	    .head_width = layer->head_width,
	    .value_width = layer->value_width,
	};
	if (layer->heads == 0 || layer->kv_heads == 0 || layer->heads % layer->kv_heads != 0 || past > keys ||
	    layer->appended > keys - past)
		return false;
	size_t query = 0, key = 0, value = 0, context = 0;
	if (!attn_size_mul(layer->heads, layer->head_width, &query) ||
	    !attn_size_mul(layer->kv_heads, layer->head_width, &key) ||
	    !attn_size_mul(layer->kv_heads, layer->value_width, &value) ||
	    !attn_size_mul(layer->heads, layer->value_width, &context))
		return false;
	return linear_fits(&layer->query, query) && linear_fits(&layer->key, key) &&
	       linear_fits(&layer->value, value) && layer->output.in == context &&
	       linear_fits(&layer->output, layer->output.out) && norms_fit(layer);
}

/* Whether there is something to do without queries. */
static bool keys_are_kept(const attn_layer_sequence *sequences, size_t count)
{
	for (size_t s = 0; s < count; s++)
		if (sequences[s].attend.used_key != NULL || sequences[s].attend.used_value != NULL)
			return true;
	return false;
}

attn_status attn_layer_run(const attn_kernels *kernels, attn_executor *executor, const attn_layer *layer,
                           size_t queries, size_t keys, size_t past, const attn_options *options,
                           const attn_layer_sequence *sequences, size_t count)
{
	struct run run = {
	    .kernels = kernels,
	    .executor = executor,
	    .scratch = executor->scratch,
	    .layer = layer,
	    .options = options,
	    .sequences = sequences,
	    .count = count,
	};
	if (!attn_layer_shape(layer, queries, keys, past, &run.shape) ||
	    !attn_appended_valid(layer, past, options))
		return ATTN_INVALID;
	if (attn_layer_scratch_bytes(layer, queries, keys, past, options, count) == SIZE_MAX)
		return ATTN_OVERFLOW;
	if (count == 0 || (queries == 0 && !keys_are_kept(sequences, count)))
		return ATTN_OK;
	attn_arena_mark mark = attn_arena_here(executor->scratch);
	attn_status status = run_layer(&run);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

/* Adds a * b * c to *sum; false on overflow. */
static bool add_product(size_t *sum, size_t a, size_t b, size_t c)
{
	const size_t dims[] = {a, b, c};
	size_t product = 0;
	return attn_size_product(dims, 3, &product) && attn_size_add(*sum, product, sum);
}

size_t attn_layer_scratch_bytes(const attn_layer *layer, size_t queries, size_t keys, size_t past,
                                const attn_options *options, size_t count)
{
	size_t bytes = SCRATCH_BLOCKS * SCRATCH_ALIGNMENT;
	attn_shape shape;
	if (!attn_layer_shape(layer, queries, keys, past, &shape))
		return SIZE_MAX;
	const struct {
		const attn_linear *linear;
		size_t rows;
		size_t width; /* of what the layer keeps besides: results of a projection, contexts */
	} parts[] = {{&layer->query, queries, layer->query.out},
	             {&layer->key, keys - past, layer->key.out},
	             {&layer->value, keys - past, layer->value.out},
	             {&layer->output, queries, layer->output.in}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const attn_linear *linear = parts[i].linear;
		const size_t product = attn_linear_scratch_bytes(linear, parts[i].rows, count);
		size_t rows = 0;
		if (attn_linear_is_identity(linear))
			continue;
		if (!attn_size_mul(parts[i].rows, count, &rows) || !attn_size_add(bytes, product, &bytes) ||
		    !add_product(&bytes, rows, parts[i].width, sizeof(float)) ||
		    !add_product(&bytes, 1, linear->out, sizeof(float)))
			return SIZE_MAX;
	}
	size_t each = sizeof(attn_sequence) + sizeof(parts) / sizeof(parts[0]) * sizeof(float *);
	size_t inputs = options->sinusoidal ? attn_inputs_bytes(layer, queries, keys - past, count) : 0;
	if (!add_product(&bytes, count, each, 1) || !attn_size_add(bytes, inputs, &bytes) ||
	    !attn_size_add(bytes, attn_appended_bytes(layer, &shape, count), &bytes) ||
	    !attn_size_add(bytes, attn_attend_scratch_bytes(&shape, options, count), &bytes))
		return SIZE_MAX;
	return bytes;
}
