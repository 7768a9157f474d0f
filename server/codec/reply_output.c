#include "codec/reply_output.h"

#include "codec/numbers.h"
#include "codec/reply_path.h"
#include "codec/saturating.h"

#include <string.h>

void reply_tensor_shape(struct reply_tensor *tensor, const size_t *dims, size_t rank)
{
	tensor->rank = rank;
	memcpy(tensor->dims, dims, rank * sizeof(*dims));
	if (!attn_size_product(dims, rank, &tensor->count))
		tensor->count = SIZE_MAX;
	for (size_t i = 0; i < rank; i++)
		tensor->count = dims[i] == 0 ? 0 : tensor->count;
}

/* Brackets and commas of every array, and the numbers. */
size_t reply_output_text_bytes(const struct reply_output *output)
{
	const struct reply_tensor *tensor = &output->tensor;
	size_t arrays = 1, bytes = 0;
	for (size_t i = 0; i < tensor->rank; i++) {
		bytes = saturating_add(bytes, saturating_mul(arrays, 3));
		arrays = saturating_mul(arrays, tensor->dims[i]);
	}
	return saturating_add(bytes, saturating_mul(arrays, NUMBER_TEXT_MAX));
}

static bool set_not_finite(const struct reply_output *output, const size_t *index, struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	reply_path_pointer(output->path, index, output->tensor.rank, pointer);
	return problem_set(problem, PROBLEM_RESULT_NOT_FINITE, pointer,
	                   "this number of the result is NaN or infinite, which JSON cannot say");
}

bool reply_output_write(struct json_writer *writer, const char *before, const struct reply_output *output,
                        struct problem *problem)
{
	const struct reply_tensor *tensor = &output->tensor;
	size_t index[TENSOR_MAX_RANK];
	reply_path_write(writer, before, output->path);
	writer->lowest = output->lowest;
	enum json_written written =
	    output->integers ? json_writer_indices(writer, tensor->indices, tensor->dims, tensor->rank)
	                     : json_writer_tensor(writer, tensor->data, tensor->dims, tensor->rank, index);
	if (written == JSON_NOT_FINITE)
		return set_not_finite(output, index, problem);
	return written == JSON_WRITTEN || problem_set_status(problem, ATTN_CANCELLED);
}
