#include "linear.h"

#include <string.h>

#include "kernels.h"
#include "packed.h"
#include "rounding.h"

/* Products with weights as they are: blocks of rows and panels of columns, each one call of a kernel. */
#define BLOCK_ROWS ((size_t)480)
#define PANEL_COLUMNS ((size_t)256)
/* What a tile computes at most: about a millisecond of one core. */
#define TILE_FLOPS ((size_t)100 * 1000 * 1000)
/* A product of packed weights is cut into this many tiles, so that cores end together, but none below the
 * least, which is about 50 microseconds. Where rows are few, reading the weights takes the time: it is that
 * of computing MEMORY_ROWS rows. */
#define TILES_WANTED ((size_t)24)
#define TILE_LEAST ((size_t)5 * 1000 * 1000)
#define MEMORY_ROWS ((size_t)6)

#define SCRATCH_ALIGNMENT ((size_t)64)

bool attn_linear_is_identity(const attn_linear *linear)
{
	return linear->weight == NULL && linear->packed == NULL;
}

bool attn_linear_adjoin(const attn_linear *a, const attn_linear *b)
{
	if (a->packed != NULL || b->packed != NULL)
		return a->packed == b->packed && b->packed_first == a->packed_first + a->out;
	if (a->weight == NULL || b->weight == NULL || a->in != b->in || a->stride != b->stride ||
	    a->layout != b->layout)
		return false;
	return b->weight == a->weight + (a->layout == ATTN_OUT_IN ? a->out * a->stride : a->out);
}

bool attn_linear_fits(const attn_linear *linear)
{
	if (linear->in == 0 || linear->out == 0)
		return false;
	if (linear->packed != NULL) {
		size_t out = attn_packed_out(linear->packed);
		return attn_packed_in(linear->packed) == linear->in && linear->out <= out &&
		       linear->packed_first <= out - linear->out;
	}
	if (linear->weight == NULL)
		return linear->bias == NULL && linear->in == linear->out;
	return linear->stride >= (linear->layout == ATTN_OUT_IN ? linear->in : linear->out);
}

/* ---- products */

/* One call cut into tiles. With packed weights the rows of all sequences are one segment that is read and
 * written where it lies. Other kernels compute segments, all sequences stacked or each by itself, from x into
 * y, from where finished rows go to the call's outputs. */
struct product {
	const struct attn_linear_call *call;
	const attn_kernels *kernels;
	bool stacked;
	size_t segments, segment_rows;
	const float **x;           /* [segments], each [segment_rows, in] */
	float *y;                  /* [segments * segment_rows, out]; NULL: the call's own */
	size_t block_rows, blocks; /* of a segment */
	size_t start;              /* column of the packed matrix from which panels count */
	size_t panel_columns, panels;
};

struct step {
	struct product *products;
	size_t count;
};

static size_t total_rows(const struct attn_linear_call *call)
{
	return call->rows * call->count;
}

static void product_cut_packed(struct product *product)
{
	const struct attn_linear_call *call = product->call;
	const attn_linear *linear = call->linear;
	const size_t strip = product->kernels->strip, rows = total_rows(call);
	product->stacked = true;
	product->segments = 1;
	product->segment_rows = rows;
	product->blocks = attn_divide_up(rows, ATTN_PACKED_ROWS);
	product->block_rows = attn_divide_up(rows, attn_larger(product->blocks, 1));
	product->start = linear->packed_first / strip * strip;
	const size_t columns = linear->packed_first + linear->out - product->start;
	const size_t strips = attn_divide_up(columns, strip);
	/* of one strip of a block, in floating point operations; sizes are those of tensors in memory */
	const double cost =
	    2.0 * (double)attn_larger(product->block_rows, MEMORY_ROWS) * (double)linear->in * (double)strip;
	double wanted = cost * (double)strips * (double)product->blocks / (double)TILES_WANTED;
	wanted = wanted > (double)TILE_FLOPS ? (double)TILE_FLOPS : wanted;
	wanted = wanted < (double)TILE_LEAST ? (double)TILE_LEAST : wanted;
	const double fitting = wanted / cost;
	const size_t most = fitting >= (double)strips ? strips : attn_larger((size_t)fitting, 1);
	product->panels = attn_divide_up(strips, most);
	product->panel_columns = attn_divide_up(strips, product->panels) * strip;
	product->panels = attn_divide_up(columns, product->panel_columns);
}

/* Boundaries of panels depend on the shape of the weights alone. */
static void product_cut_plain(struct product *product)
{
	const struct attn_linear_call *call = product->call;
	const size_t in = call->linear->in, out = call->linear->out;
	const size_t fair = attn_divide_up(out, attn_divide_up(out, PANEL_COLUMNS));
	const size_t columns = attn_smaller(attn_round_up(fair, ATTN_LANES), out);
	product->panel_columns = columns;
	product->panels = attn_divide_up(out, columns);
	const size_t last = out - (product->panels - 1) * columns;
	const size_t tile = attn_kernels_row_tile(product->kernels, last, in);
	product->stacked = tile > 0;
	product->segments = tile > 0 ? 1 : call->count;
	product->segment_rows = tile > 0 ? attn_round_up(total_rows(call), tile) : call->rows;
	const size_t unit = tile > 0 ? tile : 1;
	const size_t fitting = attn_smaller(TILE_FLOPS / (2 * columns) / in, BLOCK_ROWS) / unit * unit;
	product->block_rows = attn_larger(fitting, unit);
	product->blocks = attn_divide_up(product->segment_rows, product->block_rows);
}

static size_t product_rows(const struct product *product)
{
	return product->segments * product->segment_rows;
}

static size_t product_tiles(const struct product *product)
{
	return product->segments * product->blocks * product->panels;
}

/* Row number row of all; NULL where the operand is absent. */
static const float *operand_row(const struct attn_linear_call *call, const struct attn_linear_rows *operand,
                                size_t row, size_t width)
{
	if (operand->sequences != NULL)
		return operand->sequences[row / call->rows] + row % call->rows * width;
	return operand->data != NULL ? operand->data + row * width : NULL;
}

static float *output_row(const struct attn_linear_call *call, size_t row)
{
	const size_t out = call->linear->out;
	if (call->y.sequences != NULL)
		return call->y.sequences[row / call->rows] + row % call->rows * out;
	return call->y.data + row * out;
}

static bool is_present(const struct attn_linear_rows *operand)
{
	return operand->data != NULL || operand->sequences != NULL;
}

/* ---- packed weights */

static void product_tile_packed(const struct product *product, size_t block, size_t panel)
{
	const struct attn_linear_call *call = product->call;
	const attn_linear *linear = call->linear;
	const size_t end = linear->packed_first + linear->out, row = block * product->block_rows;
	const size_t from =
	    attn_larger(product->start + panel * product->panel_columns, linear->packed_first);
	const size_t to = attn_smaller(product->start + (panel + 1) * product->panel_columns, end);
	const size_t column = from - linear->packed_first; /* of y */
	const float *x[ATTN_PACKED_ROWS], *factor[ATTN_PACKED_ROWS], *residual[ATTN_PACKED_ROWS];
	float *y[ATTN_PACKED_ROWS];
	const bool has_factor = is_present(&call->factor), has_residual = is_present(&call->residual);
	const size_t rows = attn_smaller(product->segment_rows - row, product->block_rows);
	for (size_t r = 0; r < rows; r++) {
		x[r] = operand_row(call, &call->x, row + r, linear->in);
		y[r] = output_row(call, row + r) + column;
		if (has_factor)
			factor[r] = operand_row(call, &call->factor, row + r, linear->out) + column;
		if (has_residual)
			residual[r] = operand_row(call, &call->residual, row + r, linear->out) + column;
	}
	const struct attn_packed_tile tile = {
	    .packed = linear->packed,
	    .first = from,
	    .columns = to - from,
	    .rows = rows,
	    .x = x,
	    .y = y,
	    .bias = linear->bias != NULL ? linear->bias + column : NULL,
	    .activation = call->activation,
	    .factor = has_factor ? factor : NULL,
	    .residual = has_residual ? residual : NULL,
	};
	product->kernels->packed(&tile);
}

/* ---- weights as they are */

/* Whole groups of lanes first, which compilers make vectors of. */
static void add(float *restrict y, const float *restrict x, size_t count)
{
	size_t j = 0;
	for (; j + ATTN_LANES <= count; j += ATTN_LANES)
		for (size_t lane = 0; lane < ATTN_LANES; lane++)
			y[j + lane] += x[j + lane];
	for (; j < count; j++)
		y[j] += x[j];
}

static void multiply(float *restrict y, const float *restrict x, size_t count)
{
	for (size_t j = 0; j < count; j++)
		y[j] *= x[j];
}

/* What follows the product of one row, done where it was computed. */
static void row_finish(const struct attn_linear_call *call, float *y, size_t row, size_t column,
                       size_t columns)
{
	const attn_linear *linear = call->linear;
	const float *factor = operand_row(call, &call->factor, row, linear->out);
	const float *residual = operand_row(call, &call->residual, row, linear->out);
	if (linear->bias != NULL)
		add(y, linear->bias + column, columns);
	attn_activation_apply(call->activation, y, columns);
	if (factor != NULL)
		multiply(y, factor + column, columns);
	if (residual != NULL)
		add(y, residual + column, columns);
}

static void product_finish(const struct product *product, size_t row, size_t rows, size_t column,
                           size_t columns)
{
	const struct attn_linear_call *call = product->call;
	const size_t end = attn_smaller(row + rows, total_rows(call));
	for (size_t r = row; r < end; r++) {
		float *target = output_row(call, r) + column;
		float *y = product->y != NULL ? product->y + r * call->linear->out + column : target;
		row_finish(call, y, r, column, columns);
		if (y != target)
			memcpy(target, y, columns * sizeof(float));
	}
}

static void product_tile_plain(const struct product *product, size_t segment, size_t block, size_t panel)
{
	const attn_linear *linear = product->call->linear;
	const size_t first = block * product->block_rows, column = panel * product->panel_columns;
	const size_t row = segment * product->segment_rows + first;
	const bool transposed = linear->layout == ATTN_OUT_IN;
	float *y = product->y != NULL ? product->y : output_row(product->call, 0);
	const struct attn_gemm gemm = {
	    .m = attn_smaller(product->segment_rows - first, product->block_rows),
	    .n = attn_smaller(linear->out - column, product->panel_columns),
	    .k = linear->in,
	    .alpha = 1,
	    .a = product->x[segment] + first * linear->in,
	    .lda = linear->in,
	    .b = linear->weight + column * (transposed ? linear->stride : 1),
	    .ldb = linear->stride,
	    .b_transposed = transposed,
	    .c = y + row * linear->out + column,
	    .ldc = linear->out,
	};
	if (product->stacked)
		product->kernels->gemm_rows(&gemm);
	else
		product->kernels->gemm(&gemm);
	product_finish(product, row, gemm.m, column, gemm.n);
}

/* Whether the rows of all sequences lie one after the other. */
static bool inputs_adjoin(const struct attn_linear_call *call)
{
	const float *const *x = call->x.sequences;
	for (size_t s = 1; x != NULL && s < call->count; s++)
		if (x[s] != x[s - 1] + call->rows * call->linear->in)
			return false;
	return true;
}

static bool outputs_adjoin(const struct attn_linear_call *call)
{
	float *const *y = call->y.sequences;
	for (size_t s = 1; y != NULL && s < call->count; s++)
		if (y[s] != y[s - 1] + call->rows * call->linear->out)
			return false;
	return true;
}

/* Points x at the rows: where they are, or copied together with zeros behind. */
static attn_status product_read(struct product *product, attn_arena *scratch)
{
	const struct attn_linear_call *call = product->call;
	const size_t in = call->linear->in, rows = product_rows(product), used = total_rows(call);
	product->x = attn_arena_alloc(scratch, product->segments * sizeof(*product->x));
	if (product->x == NULL)
		return ATTN_MEMORY;
	if (!product->stacked || (rows == used && inputs_adjoin(call))) {
		for (size_t s = 0; s < product->segments; s++)
			product->x[s] = operand_row(call, &call->x, s * call->rows, in);
		return ATTN_OK;
	}
	float *x = attn_arena_floats(scratch, rows * in);
	if (x == NULL)
		return ATTN_MEMORY;
	for (size_t s = 0; s < call->count; s++)
		memcpy(x + s * call->rows * in, operand_row(call, &call->x, s * call->rows, in),
		       call->rows * in * sizeof(float));
	memset(x + used * in, 0, (rows - used) * in * sizeof(float));
	product->x[0] = x;
	return ATTN_OK;
}

/* Chooses where kernels write: to the call's y if it is one matrix and no operand may be in its memory. */
static attn_status product_write(struct product *product, attn_arena *scratch)
{
	const struct attn_linear_call *call = product->call;
	if (outputs_adjoin(call) && product_rows(product) == total_rows(call) && !is_present(&call->factor) &&
	    !is_present(&call->residual))
		return ATTN_OK;
	product->y = attn_arena_floats(scratch, product_rows(product) * call->linear->out);
	return product->y == NULL ? ATTN_MEMORY : ATTN_OK;
}

/* ---- running */

static attn_status product_make(struct product *product, const attn_kernels *kernels,
                                const struct attn_linear_call *call, attn_arena *scratch)
{
	const attn_linear *linear = call->linear;
	*product = (struct product){.call = call, .kernels = kernels};
	if (linear->packed != NULL) {
		if (kernels->packed == NULL || attn_packed_strip(linear->packed) != kernels->strip)
			return ATTN_INVALID;
		product_cut_packed(product);
		return ATTN_OK;
	}
	product_cut_plain(product);
	attn_status status = product_read(product, scratch);
	return status == ATTN_OK ? product_write(product, scratch) : status;
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
	const size_t panel = tile % product->panels, rest = tile / product->panels;
	if (product->call->linear->packed != NULL)
		product_tile_packed(product, rest, panel);
	else
		product_tile_plain(product, rest / product->blocks, rest % product->blocks, panel);
	return ATTN_OK;
}

static attn_status step_run(struct step *step, const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_linear_call *calls, size_t call_count)
{
	size_t tiles = 0;
	for (size_t i = 0; i < call_count; i++) {
		if (total_rows(&calls[i]) == 0)
			continue;
		struct product *product = &step->products[step->count++];
		attn_status status = product_make(product, kernels, &calls[i], executor->scratch);
		if (status != ATTN_OK)
			return status;
		tiles += product_tiles(product);
	}
	return tiles == 0 ? ATTN_OK : executor->parallel_for(executor, tiles, step_tile, step);
}

attn_status attn_linear_run(const attn_kernels *kernels, attn_executor *executor,
                            const struct attn_linear_call *calls, size_t call_count)
{
	attn_arena_mark mark = attn_arena_here(executor->scratch);
	struct step step = {.products =
	                        attn_arena_alloc(executor->scratch, call_count * sizeof(*step.products))};
	attn_status status = ATTN_MEMORY;
	if (step.products != NULL)
		status = step_run(&step, kernels, executor, calls, call_count);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

/* Adds rows * width floats, a block of scratch; false on overflow. */
static bool add_block(size_t *bytes, size_t rows, size_t width)
{
	const size_t dims[] = {rows, width, sizeof(float)};
	size_t block = 0;
	return attn_size_product(dims, 3, &block) && attn_size_add(block, SCRATCH_ALIGNMENT, &block) &&
	       attn_size_add(*bytes, block, bytes);
}

size_t attn_linear_scratch_bytes(const attn_linear *linear, size_t rows, size_t count)
{
	size_t total = 0, pointers = 0, bytes = sizeof(struct product) + SCRATCH_ALIGNMENT;
	if (linear->packed != NULL)
		return bytes;
	if (!attn_size_mul(rows, count, &total) || !attn_size_add(total, ATTN_ROW_TILE_MAX, &total) ||
	    !attn_size_mul(count, sizeof(float *), &pointers) ||
	    !attn_size_add(pointers, SCRATCH_ALIGNMENT, &pointers) ||
	    !attn_size_add(bytes, pointers, &bytes) || !add_block(&bytes, total, linear->in) ||
	    !add_block(&bytes, total, linear->out))
		return SIZE_MAX;
	return bytes;
}
