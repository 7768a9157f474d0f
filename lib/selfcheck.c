#include "kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "packed.h"

/* Largest extents of a random product; matrices of these sizes are drawn once and read in part. */
#define ROWS ((size_t)96) /* two tiles of ATTN_ROW_TILE_MAX */
#define COLUMNS ((size_t)272)
#define INNER ((size_t)784)
#define SCORES ((size_t)1024)
#define ROUNDS 24

struct check {
	attn_kernels *kernels;
	attn_kernels reference;
	uint64_t state;
	attn_arena *arena;
	float *a;                /* [ROWS, INNER] */
	float *b;                /* [COLUMNS, INNER] or [INNER, COLUMNS] */
	float *found, *wanted;   /* [ROWS, COLUMNS] */
	float *scores, *weights; /* [SCORES] */
	attn_error *err;
};

/* Steele, Lea, Flood 2014 (splitmix64). */
static uint64_t draw(struct check *check)
{
	uint64_t z = check->state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* In [1, most]. */
static size_t draw_size(struct check *check, size_t most)
{
	return 1 + (size_t)(draw(check) % most);
}

static void draw_floats(struct check *check, float *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (float)(draw(check) >> 40) * 0x1p-23f - 1.0f;
}

static bool check_init(struct check *check, attn_arena *arena)
{
	check->a = attn_arena_floats(arena, ROWS * INNER);
	check->b = attn_arena_floats(arena, COLUMNS * INNER);
	check->found = attn_arena_floats(arena, ROWS * COLUMNS);
	check->wanted = attn_arena_floats(arena, ROWS * COLUMNS);
	check->scores = attn_arena_floats(arena, SCORES);
	check->weights = attn_arena_floats(arena, SCORES);
	if (!check->a || !check->b || !check->found || !check->wanted || !check->scores || !check->weights)
		return false;
	attn_kernels_fill_reference(&check->reference);
	draw_floats(check, check->a, ROWS * INNER);
	draw_floats(check, check->b, COLUMNS * INNER);
	return true;
}

/* ---- products against the plain loops */

static struct attn_gemm draw_gemm(struct check *check)
{
	bool transposed = (draw(check) & 1) != 0;
	return (struct attn_gemm){
	    .m = draw_size(check, ROWS),
	    .n = draw_size(check, COLUMNS),
	    .k = draw_size(check, 96),
	    .alpha = 1,
	    .a = check->a,
	    .lda = INNER,
	    .b = check->b,
	    .ldb = transposed ? INNER : COLUMNS,
	    .b_transposed = transposed,
	    .c = check->found,
	    .ldc = COLUMNS,
	};
}

/* Compares what was found for a product with plain loops; inputs are in [-1, 1]. */
static attn_status compare(struct check *check, const char *name, struct attn_gemm gemm)
{
	const float limit = 1e-6f * (1.0f + 0.1f * (float)gemm.k);
	gemm.c = check->wanted;
	check->reference.gemm(&gemm);
	for (size_t i = 0; i < gemm.m; i++) {
		for (size_t j = 0; j < gemm.n; j++) {
			float found = check->found[i * COLUMNS + j], wanted = check->wanted[i * COLUMNS + j];
			if (fabsf(found - wanted) <= limit)
				continue;
			return attn_error_set(check->err, ATTN_SELF_CHECK,
			                      "%s kernels: %s [%zu,%zu]x[%zu,%zu]%s element [%zu,%zu] is %g, "
			                      "plain loops give %g",
			                      attn_kernels_name(check->kernels), name, gemm.m, gemm.k, gemm.k,
			                      gemm.n, gemm.b_transposed ? " transposed" : "", i, j,
			                      (double)found, (double)wanted);
		}
	}
	return ATTN_OK;
}

static attn_status check_gemm(struct check *check, const char *name, attn_gemm_fn *kernel,
                              struct attn_gemm gemm)
{
	kernel(&gemm);
	return compare(check, name, gemm);
}

static attn_status check_products(struct check *check)
{
	attn_status status = ATTN_OK;
	for (int round = 0; round < ROUNDS && status == ATTN_OK; round++) {
		struct attn_gemm gemm = draw_gemm(check);
		if (round == 0)
			gemm.k = INNER;
		if (check->kernels->gemm_rows != NULL)
			status = check_gemm(check, "gemm_rows", check->kernels->gemm_rows, gemm);
		gemm.alpha = 0.125f;
		if (status == ATTN_OK)
			status = check_gemm(check, "gemm", check->kernels->gemm, gemm);
	}
	return status;
}

/* ---- products of packed weights against the plain loops */

static attn_packed *pack(struct check *check, attn_arena *arena, const struct attn_gemm *gemm)
{
	const size_t bytes = attn_packed_bytes(check->kernels, gemm->k, gemm->n);
	void *memory = attn_arena_alloc(arena, bytes);
	if (memory == NULL)
		return NULL;
	attn_packed *packed = attn_packed_init(memory, check->kernels, gemm->k, gemm->n);
	attn_packed_put(packed, 0, gemm->n, gemm->b, gemm->ldb,
	                gemm->b_transposed ? ATTN_OUT_IN : ATTN_IN_OUT);
	return packed;
}

/* found [rows, COLUMNS] = a [rows, INNER] times all columns of packed from first on. */
static void packed_run(struct check *check, const attn_packed *packed, size_t first, size_t row, size_t rows)
{
	const float *x[ROWS];
	float *y[ROWS];
	for (size_t r = 0; r < rows; r++) {
		x[r] = check->a + (row + r) * INNER;
		y[r] = check->found + r * COLUMNS + first;
	}
	const struct attn_packed_tile tile = {
	    .packed = packed,
	    .first = first,
	    .columns = attn_packed_out(packed) - first,
	    .rows = rows,
	    .x = x,
	    .y = y,
	};
	check->kernels->packed(&tile);
}

/* A row alone, from a column on, must have the bits it has among others. */
static attn_status check_packed_row(struct check *check, const struct attn_gemm *gemm,
                                    const attn_packed *packed)
{
	const size_t row = draw(check) % gemm->m, first = draw(check) % gemm->n;
	memcpy(check->wanted, check->found + row * COLUMNS, COLUMNS * sizeof(float));
	packed_run(check, packed, first, row, 1);
	if (memcmp(check->found + first, check->wanted + first, (gemm->n - first) * sizeof(float)) == 0)
		return ATTN_OK;
	return attn_error_set(
	    check->err, ATTN_SELF_CHECK,
	    "%s kernels: packed [%zu,%zu]x[%zu,%zu]: the bits of row %zu depend on the others",
	    attn_kernels_name(check->kernels), gemm->m, gemm->k, gemm->k, gemm->n, row);
}

static attn_status check_packed(struct check *check, attn_arena *arena)
{
	attn_status status = ATTN_OK;
	for (int round = 0; round < ROUNDS && status == ATTN_OK; round++) {
		struct attn_gemm gemm = draw_gemm(check);
		gemm.m = round % 2 == 0 ? gemm.m : 1 + gemm.m % 8; /* few rows have ways of their own */
		const attn_arena_mark mark = attn_arena_here(arena);
		const attn_packed *packed = pack(check, arena, &gemm);
		if (packed == NULL)
			return attn_error_set(check->err, ATTN_MEMORY, "no memory for the self-check");
		packed_run(check, packed, 0, 0, gemm.m);
		status = compare(check, "packed", gemm);
		if (status == ATTN_OK)
			status = check_packed_row(check, &gemm, packed);
		attn_arena_rewind(arena, mark);
	}
	return status;
}

/* ---- rows of scores against the plain loops */

static attn_status check_row(struct check *check, size_t count)
{
	const attn_kernels *kernels = check->kernels;
	draw_floats(check, check->scores, count);
	for (size_t i = 0; i < count; i++)
		check->scores[i] *= 20.0f;
	check->scores[draw(check) % count] = -INFINITY;
	memcpy(check->weights, check->scores, count * sizeof(float));
	float found_max = kernels->row_max(check->scores, count);
	float max = check->reference.row_max(check->scores, count);
	if (found_max != max)
		return attn_error_set(check->err, ATTN_SELF_CHECK,
		                      "%s kernels: row_max of %zu is %g, plain loops give %g",
		                      attn_kernels_name(kernels), count, (double)found_max, (double)max);
	double found_sum = kernels->row_exp(check->scores, count, max);
	double sum = check->reference.row_exp(check->weights, count, max);
	for (size_t i = 0; i < count; i++)
		if (!(fabsf(check->scores[i] - check->weights[i]) <= 4 * FLT_EPSILON * check->weights[i]))
			return attn_error_set(
			    check->err, ATTN_SELF_CHECK, "%s kernels: row_exp gives %g, plain loops %g",
			    attn_kernels_name(kernels), (double)check->scores[i], (double)check->weights[i]);
	if (!(fabs(found_sum - sum) <= 1e-6 * sum))
		return attn_error_set(check->err, ATTN_SELF_CHECK,
		                      "%s kernels: row_exp sums to %g, plain loops to %g",
		                      attn_kernels_name(kernels), found_sum, sum);
	return ATTN_OK;
}

static attn_status check_rows(struct check *check)
{
	attn_status status = ATTN_OK;
	for (int round = 0; round < ROUNDS && status == ATTN_OK; round++)
		status = check_row(check, draw_size(check, SCORES / ATTN_LANES) * ATTN_LANES);
	return status;
}

/* ---- attention against the plain loops */

/* Queries, keys and values of two heads side by side in rows of a and b; context, then weights, of each set.
 */
#define HEAD_WIDTH ((size_t)40)
#define HEADS ((size_t)2)
#define KEYS_MOST ((size_t)96)

static attn_status attend(struct check *check, const attn_kernels *kernels, size_t queries, size_t keys,
                          float *out)
{
	const attn_shape shape = {.heads = HEADS,
	                          .kv_heads = 1,
	                          .queries = queries,
	                          .keys = keys,
	                          .head_width = HEAD_WIDTH,
	                          .value_width = HEAD_WIDTH};
	attn_options options = attn_options_default(HEAD_WIDTH);
	options.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
	const attn_sequence sequence = {
	    .query = {check->a, HEAD_WIDTH, INNER},
	    .key = {check->b, HEAD_WIDTH, INNER},
	    .value = {check->b + HEAD_WIDTH, HEAD_WIDTH, INNER},
	    .key_length = keys,
	    .context = out,
	    .context_head_stride = HEAD_WIDTH,
	    .context_row_stride = HEADS * HEAD_WIDTH,
	    .weights = out + ROWS * HEADS * HEAD_WIDTH,
	};
	attn_executor executor = attn_executor_serial(check->arena);
	return attn_attend(kernels, &executor, &shape, &options, &sequence, 1);
}

static attn_status check_attend(struct check *check, size_t queries, size_t keys)
{
	const size_t contexts = queries * HEADS * HEAD_WIDTH, weights = HEADS * queries * keys;
	const size_t first[] = {0, ROWS * HEADS * HEAD_WIDTH}, count[] = {contexts, weights};
	attn_status status = attend(check, check->kernels, queries, keys, check->found);
	if (status == ATTN_OK)
		status = attend(check, &check->reference, queries, keys, check->wanted);
	if (status != ATTN_OK)
		return attn_error_set(check->err, status, "no memory for the self-check");
	for (size_t part = 0; part < 2; part++) {
		for (size_t i = first[part]; i < first[part] + count[part]; i++) {
			if (fabsf(check->found[i] - check->wanted[i]) <= 4e-6f)
				continue;
			return attn_error_set(check->err, ATTN_SELF_CHECK,
			                      "%s kernels: attention of %zu queries, %zu keys: %s %zu is %g, "
			                      "plain loops give %g",
			                      attn_kernels_name(check->kernels), queries, keys,
			                      part == 0 ? "context" : "weight", i - first[part],
			                      (double)check->found[i], (double)check->wanted[i]);
		}
	}
	return ATTN_OK;
}

_Static_assert(ROWS *HEADS *HEAD_WIDTH + HEADS * ROWS * KEYS_MOST <= ROWS * COLUMNS, "room for both");

/* Few queries, then panels, in turn. */
static attn_status check_attention(struct check *check)
{
	attn_status status = ATTN_OK;
	for (int round = 0; round < ROUNDS / 3 && status == ATTN_OK; round++)
		status = check_attend(check, draw_size(check, round % 2 == 0 ? 4 : ROWS),
		                      draw_size(check, KEYS_MOST));
	return status;
}

/* ---- whether a row keeps its bits among others */

/* Multiplies one tile of rows, then the same rows at every place of a taller product. */
static bool rows_apart(struct check *check, struct attn_gemm gemm, size_t tile)
{
	const size_t row = gemm.n * sizeof(float);
	gemm.m = tile;
	check->kernels->gemm_rows(&gemm);
	for (size_t i = 0; i < tile; i++)
		memcpy(check->wanted + i * COLUMNS, check->found + i * COLUMNS, row);
	for (size_t place = 0; place < tile; place++) { /* the last of the tile moved to each place of it */
		memcpy(check->a + place * INNER, check->a + (tile - 1) * INNER, INNER * sizeof(float));
		check->kernels->gemm_rows(&gemm);
		if (memcmp(check->found + place * COLUMNS, check->wanted + (tile - 1) * COLUMNS, row) != 0)
			return false;
	}
	for (gemm.m = tile; gemm.m <= ROWS;
	     gemm.m += (gemm.m / tile / 2 + 1) * tile) { /* all rows are that row now */
		for (size_t i = 0; i < gemm.m; i++)
			memcpy(check->a + i * INNER, check->a, INNER * sizeof(float));
		check->kernels->gemm_rows(&gemm);
		for (size_t i = 0; i < gemm.m; i++)
			if (memcmp(check->found + i * COLUMNS, check->wanted + (tile - 1) * COLUMNS, row) !=
			    0)
				return false;
	}
	return true;
}

/* Stops stacking where a row's bits follow its neighbours. */
static void check_stacking(struct check *check)
{
	static const size_t SHAPES[][2] = {{256, 256}, {256, 784}, {64, 64}, {8, 8},
	                                   {48, 16},   {272, 100}, {33, 65}};
	attn_kernels *kernels = check->kernels;
	for (size_t s = 0; s < 2 * sizeof(SHAPES) / sizeof(SHAPES[0]); s++) {
		struct attn_gemm gemm = draw_gemm(check);
		gemm.n = SHAPES[s / 2][0];
		gemm.k = SHAPES[s / 2][1];
		gemm.b_transposed = s % 2 != 0;
		gemm.ldb = gemm.b_transposed ? INNER : COLUMNS;
		draw_floats(check, check->a, ROWS * INNER);
		size_t tile = attn_kernels_row_tile(kernels, gemm.n, gemm.k);
		if (tile > 0 && !rows_apart(check, gemm, tile))
			kernels->gemm_rows = NULL;
	}
}

attn_status attn_kernels_self_check(attn_kernels *kernels, uint64_t seed, attn_error *err)
{
	attn_arena *arena = attn_arena_new(0);
	struct check check = {.kernels = kernels, .state = seed, .arena = arena, .err = err};
	attn_status status = ATTN_MEMORY;
	if (arena == NULL || !check_init(&check, arena)) {
		attn_error_set(err, status, "no memory for the self-check");
		goto out;
	}
	status = check_products(&check);
	if (status == ATTN_OK && kernels->packed != NULL)
		status = check_packed(&check, arena);
	if (status == ATTN_OK)
		status = check_rows(&check);
	if (status == ATTN_OK)
		status = check_attention(&check);
	if (status == ATTN_OK)
		check_stacking(&check);
out:
	attn_arena_free(arena);
	return status;
}
