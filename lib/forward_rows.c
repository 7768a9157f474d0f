#include "forward_rows.h"

#include <string.h>

#include "kernels.h"
#include "packed.h"
#include "rounding.h"

/* Numbers of a tile: some tens of microseconds. */
#define TILE_NUMBERS ((size_t)32 << 10)

void attn_table_read(const attn_table *table, size_t index, float *out)
{
	if (table->packed != NULL)
		attn_packed_column(table->packed, index, out);
	else
		memcpy(out, table->rows + index * table->width, table->width * sizeof(*out));
}

/* Work on one row of sequence s at position p of x. */
struct work {
	const struct attn_rows *rows;
	void (*run)(const struct work *work, size_t s, size_t p, float *x);
	const attn_embedding *embedding;
	const struct attn_rows_pass *pass;
	float *x;
	size_t tile_rows;
};

static attn_status work_tile(void *arg, size_t tile, attn_arena *scratch)
{
	(void)scratch;
	const struct work *work = arg;
	const struct attn_rows *rows = work->rows;
	const size_t first = tile * work->tile_rows;
	const size_t end = attn_smaller(rows->count * rows->length, first + work->tile_rows);
	for (size_t row = first; row < end; row++)
		work->run(work, row / rows->length, row % rows->length, work->x + row * rows->width);
	return ATTN_OK;
}

static attn_status work_run(attn_executor *executor, struct work *work)
{
	const struct attn_rows *rows = work->rows;
	work->tile_rows = attn_larger(TILE_NUMBERS / rows->width, 1);
	return executor->parallel_for(executor, attn_divide_up(rows->count * rows->length, work->tile_rows),
	                              work_tile, work);
}

static void hidden_write(const struct attn_rows *rows, size_t number, size_t s, size_t p, const float *x)
{
	float *const *hidden = rows->sequences[s].stacks[rows->stack].hidden;
	if (hidden != NULL && hidden[number] != NULL)
		memcpy(hidden[number] + p * rows->width, x, rows->width * sizeof(*x));
}

static void embed_row(const struct work *work, size_t s, size_t p, float *x)
{
	const attn_embedding *embedding = work->embedding;
	const size_t width = work->rows->width;
	const attn_forward_stack *input = &work->rows->sequences[s].stacks[work->rows->stack];
	if (input->tokens != NULL) {
		attn_table_read(&embedding->tokens, (size_t)input->tokens[p], x);
		if (embedding->token_scale != 1)
			attn_row_scale(x, embedding->token_scale, width);
	} else {
		memcpy(x, input->embeddings + p * width, width * sizeof(*x));
	}
	if (embedding->type != NULL)
		attn_row_add(x, embedding->type, width);
	if (embedding->positions != NULL)
		attn_row_add(x, embedding->positions + p * width, width);
	work->rows->kernels->norm_row(&embedding->norm, width, x, x);
	hidden_write(work->rows, 0, s, p, x);
}

attn_status attn_rows_embed(attn_executor *executor, const struct attn_rows *rows,
                            const attn_embedding *embedding, float *x)
{
	struct work work = {.rows = rows, .run = embed_row, .embedding = embedding, .x = x};
	return work_run(executor, &work);
}

static void pass_row(const struct work *work, size_t s, size_t p, float *x)
{
	const struct attn_rows_pass *pass = work->pass;
	const size_t width = work->rows->width, offset = (size_t)(x - pass->x);
	if (pass->add != NULL)
		attn_row_add(x, pass->add + offset, width);
	if (pass->normed != NULL)
		work->rows->kernels->norm_row(pass->norm, width, x, pass->normed + offset);
	if (pass->hidden != ATTN_NO_HIDDEN)
		hidden_write(work->rows, pass->hidden, s, p, x);
}

attn_status attn_rows_run(attn_executor *executor, const struct attn_rows *rows,
                          const struct attn_rows_pass *pass)
{
	struct work work = {.rows = rows, .run = pass_row, .pass = pass, .x = pass->x};
	return work_run(executor, &work);
}
