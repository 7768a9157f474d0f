#include "random_linear.h"

#include <check.h>

#include "packed.h"

attn_linear draw_linear(struct draw *draw, size_t in, size_t out)
{
	const bool out_in = draw_chance(draw, 50);
	const size_t stride = (out_in ? in : out) + (draw_chance(draw, 30) ? draw_size(draw, 1, 5) : 0);
	return (attn_linear){
	    .in = in,
	    .out = out,
	    .stride = stride,
	    .layout = out_in ? ATTN_OUT_IN : ATTN_IN_OUT,
	    .bias = draw_chance(draw, 50) ? draw_floats(draw, out) : NULL,
	    .weight = draw_floats(draw, (out_in ? out : in) * stride),
	};
}

static attn_packed *packed_new(struct draw *draw, const attn_kernels *kernels, size_t in, size_t out)
{
	const size_t bytes = attn_packed_bytes(kernels, in, out);
	if (bytes == 0)
		return NULL;
	void *memory = attn_arena_alloc(draw->arena, bytes);
	ck_assert_ptr_nonnull(memory);
	return attn_packed_init(memory, kernels, in, out);
}

/* Other maps' columns around it hold NaN, which must not get through. */
attn_linear pack_linear(struct draw *draw, const attn_kernels *kernels, const attn_linear *linear)
{
	attn_linear result = *linear;
	const size_t before = draw_chance(draw, 50) ? draw_size(draw, 0, 40) : 0;
	const size_t after = draw_chance(draw, 50) ? draw_size(draw, 0, 40) : 0;
	attn_packed *packed = packed_new(draw, kernels, linear->in, before + linear->out + after);
	if (packed == NULL)
		return result;
	float *nan = draw_floats(draw, linear->in);
	for (size_t i = 0; i < linear->in; i++)
		nan[i] = __builtin_nanf("");
	for (size_t column = 0; column < before + linear->out + after; column++)
		attn_packed_put(packed, column, 1, nan, linear->in, ATTN_OUT_IN);
	attn_packed_put(packed, before, linear->out, linear->weight, linear->stride, linear->layout);
	result.packed = packed;
	result.packed_first = before;
	return result;
}

void pack_together(struct draw *draw, const attn_kernels *kernels, attn_linear *const *linears, size_t count)
{
	size_t out = 0;
	for (size_t i = 0; i < count; i++)
		out += linears[i]->out;
	attn_packed *packed = packed_new(draw, kernels, linears[0]->in, out);
	if (packed == NULL)
		return;
	out = 0;
	for (size_t i = 0; i < count; i++) {
		attn_packed_put(packed, out, linears[i]->out, linears[i]->weight, linears[i]->stride,
		                linears[i]->layout);
		linears[i]->packed = packed;
		linears[i]->packed_first = out;
		out += linears[i]->out;
	}
}
