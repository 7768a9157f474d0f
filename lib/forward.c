#include "attn.h"

#include "forward_check.h"
#include "forward_head.h"
#include "forward_stack.h"
#include "model.h"
#include "rounding.h"
#include "scratch_size.h"

struct forward {
	const attn_model *model;
	const attn_kernels *kernels;
	attn_executor *executor;
	const attn_forward_call *call;
	const attn_forward_sequence *sequences;
	size_t count;
	float *x[ATTN_STACKS]; /* [count * length, width]: what each stack has made */
};

static struct attn_rows rows_of(const struct forward *forward, size_t stack)
{
	return (struct attn_rows){
	    .kernels = forward->kernels,
	    .sequences = forward->sequences,
	    .count = forward->count,
	    .length = forward->call->lengths[stack],
	    .width = attn_model_stack(forward->model, stack)->width,
	    .stack = stack,
	};
}

/* Runs one stack into x of its own. */
static attn_status stack_run(struct forward *forward, size_t stack)
{
	const struct attn_stack_run run = {
	    .model = forward->model,
	    .kernels = forward->kernels,
	    .executor = forward->executor,
	    .call = forward->call,
	    .rows = rows_of(forward, stack),
	    .memory = forward->x[ATTN_FIRST_STACK],
	    .memory_length = forward->call->lengths[ATTN_FIRST_STACK],
	};
	const size_t rows = run.rows.count * run.rows.length;
	forward->x[stack] = attn_arena_floats(forward->executor->scratch, rows * run.rows.width);
	if (forward->x[stack] == NULL)
		return ATTN_MEMORY;
	return rows > 0 ? attn_stack_run(&run, forward->x[stack]) : ATTN_OK;
}

static attn_status forward_run(struct forward *forward)
{
	const struct attn_rows first = rows_of(forward, ATTN_FIRST_STACK);
	const size_t last = attn_last_stack(forward->call);
	const struct attn_rows head = rows_of(forward, last);
	attn_status status = stack_run(forward, ATTN_FIRST_STACK);
	if (status == ATTN_OK)
		status =
		    attn_pooled_write(forward->executor, &first, forward->call, forward->x[ATTN_FIRST_STACK]);
	if (status == ATTN_OK && forward->call->second)
		status = stack_run(forward, ATTN_SECOND_STACK);
	bool logits = false;
	for (size_t s = 0; s < forward->count; s++)
		logits = logits || attn_logits_wanted(&forward->sequences[s]);
	if (status == ATTN_OK && logits)
		status =
		    attn_logits_write(forward->kernels, forward->executor, attn_model_head(forward->model),
		                      &head, forward->call, forward->x[last]);
	return status;
}

attn_status attn_model_forward(const attn_model *model, const attn_kernels *kernels, attn_executor *executor,
                               const attn_forward_call *call, const attn_forward_sequence *sequences,
                               size_t count)
{
	struct forward forward = {model, kernels, executor, call, sequences, count, {NULL}};
	attn_status status = attn_forward_check(model, call, sequences, count);
	if (status != ATTN_OK || count == 0)
		return status;
	const attn_arena_mark mark = attn_arena_here(executor->scratch);
	status = forward_run(&forward);
	attn_arena_rewind(executor->scratch, mark);
	return status;
}

size_t attn_forward_scratch_bytes(const attn_model *model, const attn_forward_call *call, size_t count)
{
	const attn_head *head = attn_model_head(model);
	const size_t last = attn_last_stack(call);
	size_t bytes = 0, kept = 0;
	if (head->linear.out > 0)
		bytes = attn_logits_scratch_bytes(head, call, call->lengths[last], count);
	for (size_t s = ATTN_FIRST_STACK; s <= last; s++) {
		const size_t width = attn_model_stack(model, s)->width;
		bytes = attn_larger(bytes, attn_stack_scratch_bytes(model, call, s, count));
		attn_scratch_add(&kept, (const size_t[]){count, call->lengths[s], width, sizeof(float)}, 4);
	}
	return attn_size_add(bytes, kept, &bytes) ? bytes : SIZE_MAX;
}

size_t attn_forward_tile_bytes(const attn_model *model, const attn_forward_call *call)
{
	size_t bytes = attn_logits_tile_bytes(call);
	for (size_t s = ATTN_FIRST_STACK; s <= attn_last_stack(call); s++)
		bytes = attn_larger(bytes, attn_stack_tile_bytes(model, call, s));
	return bytes;
}

double attn_forward_work(const attn_model *model, const attn_forward_call *call)
{
	const attn_head *head = attn_model_head(model);
	double work = 2 * (double)head->linear.in * (double)head->linear.out;
	for (size_t s = ATTN_FIRST_STACK; s <= attn_last_stack(call); s++)
		work += attn_stack_work(model, call, s);
	return work;
}
