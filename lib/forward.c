#include "attn.h"

/* Whether the model has the stacks that a call runs. */
static bool stacks_exist(const attn_model *model, const attn_forward_call *call)
{
	const attn_model_info info = attn_model_info_of(model);
	return info.stacks[ATTN_FIRST_STACK].layers > 0 &&
	       (!call->second || info.stacks[ATTN_SECOND_STACK].layers > 0);
}

attn_status attn_model_forward(const attn_model *model, const attn_kernels *kernels, attn_executor *executor,
                               const attn_forward_call *call, const attn_forward_sequence *sequences,
                               size_t count)
{
	(void)kernels, (void)executor, (void)sequences, (void)count;
	return stacks_exist(model, call) ? ATTN_UNSUPPORTED : ATTN_INVALID;
}

size_t attn_forward_scratch_bytes(const attn_model *model, const attn_forward_call *call, size_t count)
{
	(void)model, (void)call, (void)count;
	return 0;
}

size_t attn_forward_tile_bytes(const attn_model *model, const attn_forward_call *call)
{
	(void)model, (void)call;
	return 0;
}

double attn_forward_work(const attn_model *model, const attn_forward_call *call)
{
	(void)model, (void)call;
	return 0;
}
