#include "attn.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernels.h"

/* A panel of scores stays in L2. */
#define PANEL_FLOATS ((size_t)256 * 1024 / sizeof(float))
/* What a tile computes at most where it can choose: about a millisecond of one core. */
#define TILE_FLOPS ((size_t)50 * 1000 * 1000)

/* How a call is cut; from the shape alone, so that bits do not depend on anything else. */
struct plan {
	size_t rows;   /* query rows of a panel */
	size_t panels; /* of each head */
	size_t stride; /* floats between rows of a panel */
	size_t flops;  /* of a panel, about */
};

struct call {
	const attn_kernels *kernels;
	const attn_shape *shape;
	const attn_options *options;
	const attn_sequence *sequences;
	struct plan plan;
	bool all_heads;   /* a unit of work is a panel of every head, for the mean over heads; else of one */
	size_t units;     /* of the whole call */
	size_t tile_size; /* units of a tile */
};

/* Keys [lo, hi) that length, causal mode and window leave to a query. */
struct span {
	size_t lo, hi;
};

/* Scores, then exponentials, of some query rows of one head against keys [lo, hi). */
struct panel {
	const struct call *call;
	const attn_sequence *sequence;
	size_t head, first, rows;
	size_t lo, hi;
	struct span *spans; /* [rows] */
	float *scores;      /* [rows, stride] */
	float *inverse;     /* [rows] 1 / sum of a row; 0 for a row without keys */
	float *mean_row;    /* [keys] */
};

static size_t round_up(size_t n, size_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

static size_t divide_up(size_t n, size_t by)
{
	return n / by + (n % by != 0);
}

static struct plan plan_make(const attn_shape *shape)
{
	size_t stride = round_up(shape->keys, ATTN_LANES);
	if (stride % 512 == 0)
		stride += ATTN_LANES; /* rows a power of two apart would share cache sets */
	size_t flops = 2 * (shape->keys + 1) * (shape->head_width + shape->value_width + 8);
	size_t rows = PANEL_FLOATS / stride;
	if (TILE_FLOPS / flops < rows)
		rows = TILE_FLOPS / flops;
	if (rows == 0)
		rows = 1;
	size_t panels = divide_up(shape->queries, rows);
	if (panels > 1) {
		size_t even = round_up(divide_up(shape->queries, panels), 4);
		rows = even < rows ? even : rows;
		panels = divide_up(shape->queries, rows);
	} else {
		rows = shape->queries;
	}
	return (struct plan){.rows = rows, .panels = panels, .stride = stride, .flops = rows * flops};
}

attn_options attn_options_default(size_t head_width)
{
	return (attn_options){
	    .scale = (float)(1.0 / sqrt((double)head_width)),
	    .window_left = -1,
	    .window_right = -1,
	};
}

/* ---- which keys a query may see */

/* How far the aligned diagonal lies to the right of the main one. */
static int64_t diagonal_offset(const struct call *call, const attn_sequence *sequence)
{
	switch (call->options->causal) {
	case ATTN_CAUSAL_TOP_LEFT:
		return 0;
	case ATTN_CAUSAL_OFFSET:
		return sequence->causal_offset;
	case ATTN_CAUSAL_NONE:
	case ATTN_CAUSAL_BOTTOM_RIGHT:
		break;
	}
	return (int64_t)call->shape->keys - (int64_t)call->shape->queries;
}

static struct span row_span(const struct call *call, const attn_sequence *sequence, size_t query)
{
	const attn_options *options = call->options;
	const __int128 diagonal = (__int128)query + diagonal_offset(call, sequence);
	__int128 lo = 0, hi = (__int128)sequence->key_length;
	if (options->causal != ATTN_CAUSAL_NONE && diagonal + 1 < hi)
		hi = diagonal + 1;
	if (options->window_left >= 0 && diagonal - options->window_left > lo)
		lo = diagonal - options->window_left;
	if (options->window_right >= 0 && diagonal + options->window_right + 1 < hi)
		hi = diagonal + options->window_right + 1;
	if (lo >= hi)
		return (struct span){0, 0};
	return (struct span){(size_t)lo, (size_t)hi};
}

/* Fills the spans of a panel and the keys they cover together. */
static void panel_spans(struct panel *panel)
{
	panel->lo = panel->call->shape->keys;
	panel->hi = 0;
	for (size_t r = 0; r < panel->rows; r++) {
		struct span span = row_span(panel->call, panel->sequence, panel->first + r);
		panel->spans[r] = span;
		if (span.lo == span.hi)
			continue;
		if (span.lo < panel->lo)
			panel->lo = span.lo;
		if (span.hi > panel->hi)
			panel->hi = span.hi;
	}
	if (panel->lo > panel->hi)
		panel->lo = panel->hi;
}

static const uint8_t *mask_row(const struct panel *panel, size_t r)
{
	const attn_mask *mask = &panel->sequence->mask;
	return mask->data + panel->head * mask->head_stride + (panel->first + r) * mask->query_stride;
}

static const float *bias_row(const struct panel *panel, size_t r)
{
	const attn_bias *bias = &panel->sequence->bias;
	return bias->data + panel->head * bias->head_stride + (panel->first + r) * bias->query_stride;
}

/* Whether mask and bias leave key, one of the row's span, to row r. */
static bool key_allowed(const struct panel *panel, size_t r, size_t key)
{
	const attn_sequence *sequence = panel->sequence;
	if (sequence->mask.data != NULL && mask_row(panel, r)[key * sequence->mask.key_stride] == 0)
		return false;
	return sequence->bias.data == NULL ||
	       bias_row(panel, r)[key * sequence->bias.key_stride] != -INFINITY;
}

static bool row_has_key(const struct panel *panel, size_t r)
{
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++)
		if (key_allowed(panel, r, key))
			return true;
	return false;
}

/* ---- scores to exponentials */

/* Subtracts slope * |i' - j| (Press et al. 2022) from scores of keys from first on. */
static void scores_slope(float *scores, size_t count, float slope, double diagonal, size_t first)
{
	for (size_t j = 0; j < count; j++)
		scores[j] -= slope * (float)fabs(diagonal - (double)(first + j));
}

/* Adds; a bias of -infinity takes the place of the score, NaN too. */
static void scores_bias(float *scores, size_t count, const float *bias, size_t stride)
{
	for (size_t j = 0; j < count; j++) {
		float add = bias[j * stride];
		scores[j] = add == -INFINITY ? -INFINITY : scores[j] + add;
	}
}

static void scores_mask(float *scores, size_t count, const uint8_t *mask, size_t stride)
{
	for (size_t j = 0; j < count; j++)
		scores[j] = mask[j * stride] != 0 ? scores[j] : -INFINITY;
}

/* Everything between the product and the softmax, on the keys of the row's span. */
static void row_adjust(const struct panel *panel, size_t r)
{
	const struct call *call = panel->call;
	const attn_sequence *sequence = panel->sequence;
	const struct span span = panel->spans[r];
	const size_t count = span.hi - span.lo;
	float *scores = panel->scores + r * call->plan.stride + (span.lo - panel->lo);
	const float softcap = call->options->softcap;
	for (size_t j = 0; softcap > 0 && j < count; j++)
		scores[j] = softcap * tanhf(scores[j] / softcap);
	if (sequence->bias.data != NULL) {
		size_t stride = sequence->bias.key_stride;
		scores_bias(scores, count, bias_row(panel, r) + span.lo * stride, stride);
	}
	if (call->options->slopes != NULL) {
		double diagonal = (double)(panel->first + r) + (double)diagonal_offset(call, sequence);
		scores_slope(scores, count, call->options->slopes[panel->head], diagonal, span.lo);
	}
	if (sequence->mask.data != NULL) {
		size_t stride = sequence->mask.key_stride;
		scores_mask(scores, count, mask_row(panel, r) + span.lo * stride, stride);
	}
}

static void fill(float *row, size_t from, size_t to, float value)
{
	for (size_t i = from; i < to; i++)
		row[i] = value;
}

/* Scores of row r to exp(score - maximum), 0 for excluded keys; the sum goes to inverse[r]. A NaN among the
 * allowed scores, or only -infinity, makes the sum NaN. */
static void row_softmax(struct panel *panel, size_t r)
{
	const struct call *call = panel->call;
	const size_t width = panel->hi - panel->lo;
	const size_t lo = panel->spans[r].lo - panel->lo, hi = panel->spans[r].hi - panel->lo;
	const size_t start = lo / ATTN_LANES * ATTN_LANES, end = round_up(hi, ATTN_LANES);
	float *row = panel->scores + r * call->plan.stride;
	panel->inverse[r] = 0;
	if (panel->spans[r].lo == panel->spans[r].hi) {
		fill(row, 0, width, 0);
		return;
	}
	row_adjust(panel, r);
	fill(row, start, lo, -INFINITY);
	fill(row, hi, end, -INFINITY);
	float max = call->kernels->row_max(row + start, end - start);
	if (max == -INFINITY && !row_has_key(panel, r)) {
		fill(row, 0, width, 0);
		return;
	}
	double sink = 0;
	if (call->options->sink != NULL) {
		float logit = call->options->sink[panel->head];
		max = logit > max ? logit : max;
		sink = exp((double)(logit - max));
	}
	double sum = call->kernels->row_exp(row + start, end - start, max) + sink;
	fill(row, 0, start, 0);
	fill(row, end, width, 0);
	panel->inverse[r] = (float)(1.0 / sum);
}

/* ---- results */

/* Weights of row r over all keys. */
static void row_weights(const struct panel *panel, size_t r, float *out)
{
	const struct span span = panel->spans[r];
	const float *row = panel->scores + r * panel->call->plan.stride;
	const float inverse = panel->inverse[r];
	fill(out, 0, span.lo, 0);
	for (size_t key = span.lo; key < span.hi; key++)
		out[key] = row[key - panel->lo] * inverse;
	fill(out, span.hi, panel->call->shape->keys, 0);
	for (size_t key = span.lo; isnan(inverse) && key < span.hi; key++)
		out[key] = key_allowed(panel, r, key) ? inverse : 0;
}

/* One head's weights into the mean over heads, heads coming in their order. */
static void row_mean(const struct panel *panel, const float *weights, float *mean)
{
	const size_t keys = panel->call->shape->keys, heads = panel->call->shape->heads;
	const float share = 1.0f / (float)heads;
	if (panel->head == 0)
		fill(mean, 0, keys, 0);
	for (size_t key = 0; key < keys; key++)
		mean[key] += weights[key];
	for (size_t key = 0; panel->head + 1 == heads && key < keys; key++)
		mean[key] *= share;
}

static void panel_weights(const struct panel *panel)
{
	const attn_sequence *sequence = panel->sequence;
	const attn_shape *shape = panel->call->shape;
	if (sequence->weights == NULL && sequence->mean_weights == NULL)
		return;
	for (size_t r = 0; r < panel->rows; r++) {
		size_t query = panel->first + r;
		float *out = panel->mean_row;
		if (sequence->weights != NULL)
			out = sequence->weights + (panel->head * shape->queries + query) * shape->keys;
		row_weights(panel, r, out);
		if (sequence->mean_weights != NULL)
			row_mean(panel, out, sequence->mean_weights + query * shape->keys);
	}
}

static float *context_row(const struct panel *panel, size_t r)
{
	const attn_sequence *sequence = panel->sequence;
	return sequence->context + panel->head * sequence->context_head_stride +
	       (panel->first + r) * sequence->context_row_stride;
}

static size_t kv_head(const struct panel *panel)
{
	return panel->head / (panel->call->shape->heads / panel->call->shape->kv_heads);
}

static const float *value_row(const struct panel *panel, size_t key)
{
	const attn_heads *value = &panel->sequence->value;
	return value->data + kv_head(panel) * value->head_stride + key * value->row_stride;
}

/* Leading dimension of a matrix; one row needs none. */
static size_t leading(size_t rows, size_t stride, size_t width)
{
	return rows == 1 ? width : stride;
}

/* Multiplies row by factor; false when a number is not finite then. */
static bool row_scale(float *row, size_t count, float factor)
{
	float probe[ATTN_LANES] = {0}; /* zeros while all numbers are finite */
	bool finite = true;
	size_t i = 0;
	for (; i + ATTN_LANES <= count; i += ATTN_LANES) {
		for (size_t lane = 0; lane < ATTN_LANES; lane++) {
			row[i + lane] *= factor;
			probe[lane] += row[i + lane] * 0.0f;
		}
	}
	for (; i < count; i++) {
		row[i] *= factor;
		probe[0] += row[i] * 0.0f;
	}
	for (size_t lane = 0; lane < ATTN_LANES; lane++)
		finite = finite && probe[lane] == 0.0f;
	return finite;
}

/* Context of the panel's rows from values [hi - lo, value_width]. False when a row came out not finite that
 * has no NaN among its own weights. */
static bool panel_context(const struct panel *panel, const float *values, size_t stride)
{
	const struct call *call = panel->call;
	const size_t width = call->shape->value_width, keys = panel->hi - panel->lo;
	const struct attn_gemm product = {
	    .m = panel->rows,
	    .n = width,
	    .k = keys,
	    .alpha = 1,
	    .a = panel->scores,
	    .lda = call->plan.stride,
	    .b = values,
	    .ldb = leading(keys, stride, width),
	    .c = context_row(panel, 0),
	    .ldc = leading(panel->rows, panel->sequence->context_row_stride, width),
	};
	call->kernels->gemm(&product);
	bool finite = true;
	for (size_t r = 0; r < panel->rows; r++) {
		bool row_finite = row_scale(context_row(panel, r), width, panel->inverse[r]);
		finite = finite && (row_finite || isnan(panel->inverse[r]));
	}
	return finite;
}

/* ---- values that are not finite */

/* Context of row r by plain loops over the keys that are allowed, whatever their weight. */
static void row_context_plain(const struct panel *panel, size_t r)
{
	enum { BLOCK = 64 };
	const float *row = panel->scores + r * panel->call->plan.stride;
	const size_t width = panel->call->shape->value_width;
	const double inverse = (double)panel->inverse[r];
	float *out = context_row(panel, r);
	for (size_t first = 0; first < width; first += BLOCK) {
		size_t count = width - first < BLOCK ? width - first : BLOCK;
		double sum[BLOCK] = {0};
		for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++) {
			if (!key_allowed(panel, r, key))
				continue;
			double weight = (double)row[key - panel->lo] * inverse;
			const float *value = value_row(panel, key) + first;
			for (size_t d = 0; d < count; d++)
				sum[d] += weight * (double)value[d];
		}
		for (size_t d = 0; d < count; d++)
			out[first + d] = (float)sum[d];
	}
}

static bool row_needs_plain(const struct panel *panel, size_t r, const uint8_t *odd)
{
	if (isnan(panel->inverse[r]))
		return false;
	const float *row = context_row(panel, r);
	for (size_t d = 0; d < panel->call->shape->value_width; d++)
		if (!isfinite(row[d]))
			return true;
	for (size_t key = panel->spans[r].lo; key < panel->spans[r].hi; key++)
		if (odd[key - panel->lo] && key_allowed(panel, r, key))
			return true;
	return false;
}

/* Computes the context again from a copy of the values with zeros where they are not finite, so that excluded
 * ones change nothing; rows that are allowed such a value, or overflow, go through plain loops. */
static attn_status panel_context_odd(const struct panel *panel, attn_arena *scratch)
{
	const size_t width = panel->call->shape->value_width, keys = panel->hi - panel->lo;
	float *values = attn_arena_floats(scratch, keys * width);
	uint8_t *odd = attn_arena_alloc(scratch, keys);
	if (values == NULL || odd == NULL)
		return ATTN_MEMORY;
	for (size_t j = 0; j < keys; j++) {
		const float *value = value_row(panel, panel->lo + j);
		odd[j] = 0;
		for (size_t d = 0; d < width; d++) {
			bool finite = isfinite(value[d]);
			odd[j] |= !finite;
			values[j * width + d] = finite ? value[d] : 0;
		}
	}
	panel_context(panel, values, width);
	for (size_t r = 0; r < panel->rows; r++)
		if (row_needs_plain(panel, r, odd))
			row_context_plain(panel, r);
	return ATTN_OK;
}

/* ---- tiles */

static void panel_scores(const struct panel *panel)
{
	const struct call *call = panel->call;
	const attn_heads *query = &panel->sequence->query, *key = &panel->sequence->key;
	const size_t width = call->shape->head_width;
	const struct attn_gemm product = {
	    .m = panel->rows,
	    .n = panel->hi - panel->lo,
	    .k = width,
	    .alpha = call->options->scale,
	    .a = query->data + panel->head * query->head_stride + panel->first * query->row_stride,
	    .lda = leading(panel->rows, query->row_stride, width),
	    .b = key->data + kv_head(panel) * key->head_stride + panel->lo * key->row_stride,
	    .ldb = leading(panel->hi - panel->lo, key->row_stride, width),
	    .b_transposed = true,
	    .c = panel->scores,
	    .ldc = call->plan.stride,
	};
	call->kernels->gemm(&product);
}

static attn_status panel_run(struct panel *panel, attn_arena *scratch)
{
	panel_spans(panel);
	if (panel->lo == panel->hi) { /* no row has a key */
		for (size_t r = 0; r < panel->rows; r++) {
			panel->inverse[r] = 0;
			fill(context_row(panel, r), 0, panel->call->shape->value_width, 0);
		}
		panel_weights(panel);
		return ATTN_OK;
	}
	panel_scores(panel);
	for (size_t r = 0; r < panel->rows; r++)
		row_softmax(panel, r);
	panel_weights(panel);
	if (panel_context(panel, value_row(panel, panel->lo), panel->sequence->value.row_stride))
		return ATTN_OK;
	attn_arena_mark mark = attn_arena_here(scratch);
	attn_status status = panel_context_odd(panel, scratch);
	attn_arena_rewind(scratch, mark);
	return status;
}

static attn_status unit_run(struct panel *panel, size_t unit, attn_arena *scratch)
{
	const struct call *call = panel->call;
	const size_t heads = call->shape->heads;
	const size_t index = unit % call->plan.panels, rest = unit / call->plan.panels;
	const size_t first_head = call->all_heads ? 0 : rest % heads;
	const size_t head_count = call->all_heads ? heads : 1;
	panel->sequence = &call->sequences[call->all_heads ? rest : rest / heads];
	panel->first = index * call->plan.rows;
	panel->rows = call->shape->queries - panel->first;
	if (panel->rows > call->plan.rows)
		panel->rows = call->plan.rows;
	attn_status status = ATTN_OK;
	for (size_t h = 0; h < head_count && status == ATTN_OK; h++) {
		panel->head = first_head + h;
		status = panel_run(panel, scratch);
	}
	return status;
}

static attn_status attend_tile(void *arg, size_t tile, attn_arena *scratch)
{
	const struct call *call = arg;
	const struct plan *plan = &call->plan;
	struct panel panel = {
	    .call = call,
	    .spans = attn_arena_alloc(scratch, plan->rows * sizeof(struct span)),
	    .scores = attn_arena_floats(scratch, plan->rows * plan->stride),
	    .inverse = attn_arena_floats(scratch, plan->rows),
	    .mean_row = attn_arena_floats(scratch, call->shape->keys),
	};
	if (panel.spans == NULL || panel.scores == NULL || panel.inverse == NULL || panel.mean_row == NULL)
		return ATTN_MEMORY;
	size_t first = tile * call->tile_size;
	size_t end = call->units - first < call->tile_size ? call->units : first + call->tile_size;
	attn_status status = ATTN_OK;
	for (size_t unit = first; unit < end && status == ATTN_OK; unit++)
		status = unit_run(&panel, unit, scratch);
	return status;
}

/* The sum of what attend_tile and panel_context_odd take, each block rounded up to its alignment. */
size_t attn_attend_tile_bytes(const attn_shape *shape)
{
	const size_t blocks = 6, alignment = 64;
	size_t values = 0, floats = 0, bytes = 0;
	size_t wide = 0;
	if (!attn_size_mul(shape->keys, shape->value_width + 2, &values) ||
	    !attn_size_mul(shape->keys + 1, shape->head_width + shape->value_width + 8, &wide) ||
	    wide > SIZE_MAX / 2)
		return SIZE_MAX;
	struct plan plan = plan_make(shape);
	if (!attn_size_mul(plan.rows, plan.stride + 1 + sizeof(struct span) / sizeof(float), &floats) ||
	    !attn_size_add(floats, values, &floats) || !attn_size_mul(floats, sizeof(float), &bytes) ||
	    !attn_size_add(bytes, blocks * alignment, &bytes))
		return SIZE_MAX;
	return bytes;
}

/* ---- checks */

static bool options_valid(const attn_options *options)
{
	return isfinite(options->scale) && options->softcap >= 0 && isfinite(options->softcap) &&
	       options->window_left >= -1 && options->window_right >= -1 &&
	       options->causal <= ATTN_CAUSAL_OFFSET;
}

static bool shape_valid(const attn_shape *shape)
{
	return shape->heads > 0 && shape->kv_heads > 0 && shape->heads % shape->kv_heads == 0 &&
	       shape->head_width > 0 && shape->value_width > 0;
}

/* Rows that overlap are not a matrix. */
static bool rows_apart(size_t rows, size_t stride, size_t width)
{
	return rows <= 1 || stride >= width;
}

static bool sequence_valid(const attn_shape *shape, const attn_sequence *sequence)
{
	return sequence->key_length <= shape->keys &&
	       rows_apart(shape->queries, sequence->query.row_stride, shape->head_width) &&
	       rows_apart(shape->keys, sequence->key.row_stride, shape->head_width) &&
	       rows_apart(shape->keys, sequence->value.row_stride, shape->value_width) &&
	       rows_apart(shape->queries, sequence->context_row_stride, shape->value_width);
}

/* BLAS counts in int. */
static bool sequence_counts(const attn_sequence *sequence)
{
	return sequence->query.row_stride <= INT_MAX && sequence->key.row_stride <= INT_MAX &&
	       sequence->value.row_stride <= INT_MAX && sequence->context_row_stride <= INT_MAX;
}

static bool shape_counts(const attn_shape *shape, size_t count)
{
	const size_t scores[] = {count, shape->heads, shape->queries, shape->keys, sizeof(float)};
	size_t product = 0;
	return shape->queries < INT_MAX - 64 && shape->keys < INT_MAX - 64 && shape->head_width <= INT_MAX &&
	       shape->value_width <= INT_MAX && attn_size_product(scores, 5, &product) &&
	       attn_attend_tile_bytes(shape) != SIZE_MAX;
}

static attn_status call_check(const attn_shape *shape, const attn_options *options,
                              const attn_sequence *sequences, size_t count)
{
	if (!shape_valid(shape) || !options_valid(options))
		return ATTN_INVALID;
	if (!shape_counts(shape, count))
		return ATTN_OVERFLOW;
	for (size_t s = 0; s < count; s++) {
		if (!sequence_valid(shape, &sequences[s]))
			return ATTN_INVALID;
		if (!sequence_counts(&sequences[s]))
			return ATTN_OVERFLOW;
	}
	return ATTN_OK;
}

attn_status attn_attend(const attn_kernels *kernels, attn_executor *executor, const attn_shape *shape,
                        const attn_options *options, const attn_sequence *sequences, size_t count)
{
	attn_status status = call_check(shape, options, sequences, count);
	if (status != ATTN_OK || count == 0 || shape->queries == 0)
		return status;
	struct call call = {
	    .kernels = kernels,
	    .shape = shape,
	    .options = options,
	    .sequences = sequences,
	    .plan = plan_make(shape),
	};
	for (size_t s = 0; s < count; s++)
		call.all_heads = call.all_heads || sequences[s].mean_weights != NULL;
	size_t unit_heads = call.all_heads ? shape->heads : 1;
	size_t unit_flops = SIZE_MAX;
	attn_size_mul(call.plan.flops, unit_heads, &unit_flops);
	call.units = count * (shape->heads / unit_heads) * call.plan.panels;
	call.tile_size = unit_flops < TILE_FLOPS ? TILE_FLOPS / unit_flops : 1;
	size_t tiles = divide_up(call.units, call.tile_size);
	return executor->parallel_for(executor, tiles, attend_tile, &call);
}
