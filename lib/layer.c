#include "attn.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "layer_inputs.h"
#include "rounding.h"

/* Products are cut into blocks of rows and panels of columns, each one call of a kernel. */
#define BLOCK_ROWS ((size_t)480)
#define PANEL_COLUMNS ((size_t)256)
/* What a block computes at most: about two milliseconds of one core. */
#define BLOCK_FLOPS ((size_t)100 * 1000 * 1000)
/* Blocks of scratch that a call takes besides those it counts by size; they are rounded up to 64 bytes. */
#define SCRATCH_BLOCKS ((size_t)16)
#define SCRATCH_ALIGNMENT ((size_t)64)

/* Which of a sequence's inputs a projection reads. */
enum { QUERY, KEY, VALUE, INPUTS };

/* y = x W + b for the rows of every sequence. Segments are what share a kernel call: all sequences stacked,
 * or each by itself. */
struct product {
	const attn_kernels *kernels;
	const float *weight;
	size_t weight_stride;
	attn_layout layout;
	size_t in, out;
	const float *bias; /* [out] or NULL */
	bool stacked;
	size_t segments, segment_rows;
	const float **x; /* [segments], each [segment_rows, in] */
	float *y;        /* [segments * segment_rows, out] */
	/* Where rows go from y; NULL: they stay. */
	const attn_layer_sequence *targets;
	size_t target_rows, target_count;
	size_t block_rows, blocks;    /* of a segment */
	size_t panel_columns, panels; /* of out */
};

/* The products of one step, their tiles numbered one after the other. */
struct step {
	struct product products[INPUTS];
	size_t count;
};

/* Where the heads of an input lie after its projection. */
struct projected {
	const float *data; /* NULL: the input itself */
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

/* ---- products */

static struct product product_make(const attn_kernels *kernels, const attn_linear *linear, size_t out,
                                   size_t rows, size_t count)
{
	size_t panels = attn_divide_up(out, PANEL_COLUMNS);
	size_t columns = attn_round_up(attn_divide_up(out, panels), ATTN_LANES);
	panels = attn_divide_up(out, columns);
	size_t last = out - (panels - 1) * columns;
	size_t tile = attn_kernels_row_tile(kernels, last, linear->in);
	struct product product = {
	    .kernels = kernels,
	    .weight = linear->weight,
	    .weight_stride = linear->stride,
	    .layout = linear->layout,
	    .in = linear->in,
	    .out = out,
	    .stacked = tile > 0,
	    .segments = tile > 0 ? 1 : count,
	    .segment_rows = tile > 0 ? attn_round_up(rows * count, tile) : rows,
	    .target_rows = rows,
	    .target_count = count,
	    .panel_columns = attn_smaller(columns, out),
	    .panels = panels,
	};
	size_t unit = tile > 0 ? tile : 1;
	size_t fitting =
	    attn_smaller(BLOCK_FLOPS / (2 * product.panel_columns) / linear->in, BLOCK_ROWS) / unit * unit;
	product.block_rows = fitting > unit ? fitting : unit;
	product.blocks = attn_divide_up(product.segment_rows, product.block_rows);
	return product;
}

static size_t product_rows(const struct product *product)
{
	return product->segments * product->segment_rows;
}

static size_t product_tiles(const struct product *product)
{
	return product->segments * product->blocks * product->panels;
}

/* Whole groups of lanes first, which compilers make vectors of. */
static void bias_add(float *restrict y, const float *restrict bias, size_t count)
{
	size_t j = 0;
	for (; j + ATTN_LANES <= count; j += ATTN_LANES)
		for (size_t lane = 0; lane < ATTN_LANES; lane++)
			y[j + lane] += bias[j + lane];
	for (; j < count; j++)
		y[j] += bias[j];
}

/* Adds the bias to a computed part of y and moves it to where it goes. */
static void product_finish(const struct product *product, size_t row, size_t rows, size_t column,
                           size_t columns)
{
	for (size_t r = row; r < row + rows; r++) {
		float *y = product->y + r * product->out + column;
		if (product->bias != NULL)
			bias_add(y, product->bias + column, columns);
		size_t target = r / product->target_rows;
		if (product->targets == NULL || target >= product->target_count)
			continue;
		float *to =
		    product->targets[target].output + (r % product->target_rows) * product->out + column;
		memcpy(to, y, columns * sizeof(float));
	}
}

static void product_tile(const struct product *product, size_t tile)
{
	size_t panel = tile % product->panels, rest = tile / product->panels;
	size_t block = rest % product->blocks, segment = rest / product->blocks;
	size_t first = block * product->block_rows, column = panel * product->panel_columns;
	size_t row = segment * product->segment_rows + first;
	bool transposed = product->layout == ATTN_OUT_IN;
	const struct attn_gemm gemm = {
	    .m = attn_smaller(product->segment_rows - first, product->block_rows),
	    .n = attn_smaller(product->out - column, product->panel_columns),
	    .k = product->in,
	    .alpha = 1,
	    .a = product->x[segment] + first * product->in,
	    .lda = product->in,
	    .b = product->weight + column * (transposed ? product->weight_stride : 1),
	    .ldb = product->weight_stride,
	    .b_transposed = transposed,
	    .c = product->y + row * product->out + column,
	    .ldc = product->out,
	};
	if (product->stacked)
		product->kernels->gemm_rows(&gemm);
	else
		product->kernels->gemm(&gemm);
	product_finish(product, row, gemm.m, column, gemm.n);
}

static attn_status step_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct step *step = arg;
	const struct product *product = step->products;
	while (tile >= product_tiles(product)) {
		tile -= product_tiles(product);
		product++;
	}
	product_tile(product, tile);
	return ATTN_OK;
}

static attn_status step_run(struct step *step, attn_executor *executor)
{
	size_t tiles = 0;
	for (size_t i = 0; i < step->count; i++)
		tiles += product_tiles(&step->products[i]);
	return executor->parallel_for(executor, tiles, step_tile, step);
}

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
	return input == QUERY ? run->shape.queries : run->shape.keys - run->shape.past;
}

/* Whether the inputs of all sequences lie one after the other. */
static bool inputs_adjoin(const struct run *run, size_t input, size_t floats)
{
	for (size_t s = 1; s < run->count; s++)
		if (input_of(&run->sequences[s], input) != input_of(&run->sequences[s - 1], input) + floats)
			return false;
	return true;
}

/* Points x at the rows of an input: where they are, or copied together with zeros behind. */
static attn_status product_read(struct product *product, const struct run *run, size_t input)
{
	const size_t floats = product->target_rows * product->in;
	const size_t rows = product_rows(product);
	product->x = attn_arena_alloc(run->scratch, product->segments * sizeof(*product->x));
	if (product->x == NULL)
		return ATTN_MEMORY;
	bool in_place = rows == product->target_rows * run->count && inputs_adjoin(run, input, floats);
	if (!product->stacked || in_place) {
		for (size_t s = 0; s < product->segments; s++)
			product->x[s] = input_of(&run->sequences[s], input);
		return ATTN_OK;
	}
	float *x = attn_arena_floats(run->scratch, rows * product->in);
	if (x == NULL)
		return ATTN_MEMORY;
	for (size_t s = 0; s < run->count; s++)
		memcpy(x + s * floats, input_of(&run->sequences[s], input), floats * sizeof(float));
	memset(x + run->count * floats, 0, (rows * product->in - run->count * floats) * sizeof(float));
	product->x[0] = x;
	return ATTN_OK;
}

/* Whether b continues a in memory, so that both are one matrix. */
static bool linears_adjoin(const attn_linear *a, const attn_linear *b)
{
	if (a->weight == NULL || b->weight == NULL || a->in != b->in || a->stride != b->stride ||
	    a->layout != b->layout)
		return false;
	return b->weight == a->weight + (a->layout == ATTN_OUT_IN ? a->out * a->stride : a->out);
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
	       linears_adjoin(linear_of(run->layer, first + size - 1), linear_of(run->layer, first + size)) &&
	       inputs_same(run, first, first + size)) {
		out += linear_of(run->layer, first + size)->out;
		size++;
	}
	return linear->layout == ATTN_IN_OUT && out > linear->stride ? 1 : size;
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
	size_t out = 0;
	for (size_t i = first; i < first + size; i++)
		out += linear_of(run->layer, i)->out;
	struct product *product = &step->products[step->count++];
	*product =
	    product_make(run->kernels, linear_of(run->layer, first), out, rows_of(run, first), run->count);
	product->y = attn_arena_floats(run->scratch, product_rows(product) * out);
	if (product->y == NULL)
		return ATTN_MEMORY;
	const float *data = product->y;
	for (size_t i = first; i < first + size; i++) {
		run->projected[i] = (struct projected){data, out, rows_of(run, i) * out};
		data += linear_of(run->layer, i)->out;
	}
	attn_status status = group_bias(run, first, size, &product->bias);
	return status == ATTN_OK ? product_read(product, run, first) : status;
}

static attn_status run_project(struct run *run)
{
	struct step step = {.count = 0};
	size_t size = 1;
	for (size_t input = 0; input < INPUTS; input += size) {
		size = 1;
		const attn_linear *linear = linear_of(run->layer, input);
		run->projected[input] = (struct projected){NULL, linear->out, 0};
		if (linear->weight == NULL || rows_of(run, input) == 0)
			continue;
		size = group_size(run, input);
		attn_status status = step_project(&step, run, input, size);
		if (status != ATTN_OK)
			return status;
	}
	return step.count == 0 ? ATTN_OK : step_run(&step, run->executor);
}

/* ---- attention between the projections */

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
	return attn_attend(run->kernels, run->executor, shape, run->options, sequences, run->count);
}

/* ---- output projection */

/* The output product, reading the contexts that run_attend will have written. */
static attn_status step_output(struct step *step, struct run *run)
{
	const attn_linear *linear = &run->layer->output;
	const size_t rows = run->shape.queries, used = rows * run->count;
	struct product *product = &step->products[step->count++];
	*product = product_make(run->kernels, linear, linear->out, rows, run->count);
	const size_t padded = product_rows(product);
	product->bias = linear->bias;
	run->context = attn_arena_floats(run->scratch, padded * linear->in);
	product->x = attn_arena_alloc(run->scratch, product->segments * sizeof(*product->x));
	if (run->context == NULL || product->x == NULL)
		return ATTN_MEMORY;
	memset(run->context + used * linear->in, 0, (padded - used) * linear->in * sizeof(float));
	for (size_t s = 0; s < product->segments; s++)
		product->x[s] = run->context + s * product->segment_rows * linear->in;
	product->y = run->sequences[0].output;
	if (run->count == 1 && padded == used)
		return ATTN_OK;
	product->targets = run->sequences;
	product->y = attn_arena_floats(run->scratch, padded * linear->out);
	return product->y == NULL ? ATTN_MEMORY : ATTN_OK;
}

static attn_status run_layer(struct run *run)
{
	struct step output = {.count = 0};
	attn_status status = ATTN_OK;
	if (run->options->sinusoidal)
		status = attn_inputs_add_sinusoids(run->executor, run->layer, rows_of(run, QUERY),
		                                   rows_of(run, KEY), run->options->position_offset,
		                                   run->sequences, run->count, &run->sequences);
	if (status == ATTN_OK)
		status = run_project(run);
	if (status == ATTN_OK && run->layer->output.weight != NULL && run->shape.queries > 0)
		status = step_output(&output, run);
	if (status == ATTN_OK)
		status = run_attend(run);
	if (status == ATTN_OK && output.count > 0)
		status = step_run(&output, run->executor);
	return status;
}

/* ---- the layer as a whole */

static bool linear_fits(const attn_linear *linear, size_t out)
{
	if (linear->in == 0 || linear->out == 0 || linear->out != out)
		return false;
	if (linear->weight == NULL)
		return linear->bias == NULL && linear->in == linear->out;
	return linear->stride >= (linear->layout == ATTN_OUT_IN ? linear->in : linear->out);
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
	if (layer->heads == 0 || layer->kv_heads == 0 || layer->heads % layer->kv_heads != 0 || past > keys)
		return false;
	size_t query = 0, key = 0, value = 0, context = 0;
	if (!attn_size_mul(layer->heads, layer->head_width, &query) ||
	    !attn_size_mul(layer->kv_heads, layer->head_width, &key) ||
	    !attn_size_mul(layer->kv_heads, layer->value_width, &value) ||
	    !attn_size_mul(layer->heads, layer->value_width, &context))
		return false;
	return linear_fits(&layer->query, query) && linear_fits(&layer->key, key) &&
	       linear_fits(&layer->value, value) && layer->output.in == context &&
	       linear_fits(&layer->output, layer->output.out);
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
	if (!attn_layer_shape(layer, queries, keys, past, &run.shape))
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
	size_t query_rows = 0, key_rows = 0;
	attn_shape shape;
	if (!attn_layer_shape(layer, queries, keys, past, &shape) ||
	    !attn_size_mul(queries, count, &query_rows) || !attn_size_mul(keys - past, count, &key_rows) ||
	    !attn_size_add(query_rows, ATTN_ROW_TILE_MAX, &query_rows) ||
	    !attn_size_add(key_rows, ATTN_ROW_TILE_MAX, &key_rows))
		return SIZE_MAX;
	const struct {
		const attn_linear *linear;
		size_t rows;
	} parts[] = {{&layer->query, query_rows},
	             {&layer->key, key_rows},
	             {&layer->value, key_rows},
	             {&layer->output, query_rows}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const attn_linear *linear = parts[i].linear;
		if (linear->weight != NULL &&
		    (!add_product(&bytes, parts[i].rows, linear->in, sizeof(float)) ||
		     !add_product(&bytes, parts[i].rows, linear->out, sizeof(float)) ||
		     !add_product(&bytes, 1, linear->out, sizeof(float))))
			return SIZE_MAX;
	}
	size_t each = sizeof(attn_sequence) + sizeof(parts) / sizeof(parts[0]) * sizeof(float *);
	size_t inputs = options->sinusoidal ? attn_inputs_bytes(layer, queries, keys - past, count) : 0;
	if (!add_product(&bytes, count, each, 1) || !attn_size_add(bytes, inputs, &bytes) ||
	    !attn_size_add(bytes, attn_attend_scratch_bytes(&shape, options, count), &bytes))
		return SIZE_MAX;
	return bytes;
}
