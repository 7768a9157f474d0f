#include "codec/attention_reply.h"

#include "codec/attention_outputs.h"
#include "codec/safetensors_writer.h"

#include <stdlib.h>

/* Names of outputs, and the text of `shape` with a backslash before each quote. */
#define HEADER_MAX                                                                                           \
	(SAFETENSORS_FRAME_MAX + (ATTENTION_OUTPUTS_MAX + 1) * SAFETENSORS_ENTRY_MAX +                       \
	 ATTENTION_OUTPUTS_MAX * ATTENTION_PATH_MAX + 2 * ATTENTION_SHAPE_TEXT_MAX)

static attn_dtype dtype_of(const struct attention_request *request, const struct reply_output *output)
{
	return output->integers ? ATTN_INT64 : request->output_dtype;
}

size_t attention_reply_binary_bytes(const struct attention_request *request)
{
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	size_t count = attention_outputs_list(request, outputs), total = HEADER_MAX, bytes;
	for (size_t i = 0; i < count; i++) {
		size_t size = attn_dtype_size(dtype_of(request, &outputs[i]));
		if (!attn_size_mul(outputs[i].tensor.count, size, &bytes) ||
		    !attn_size_add(total, bytes, &total))
			return SIZE_MAX;
	}
	return total;
}

/* Those of integers, which have 8 bytes an element, or those of numbers. */
static void write_entries(struct safetensors_writer *writer, const struct attention_request *request,
                          const struct reply_output *outputs, size_t count, bool integers)
{
	for (size_t i = 0; i < count; i++) {
		const struct reply_tensor *tensor = &outputs[i].tensor;
		if (outputs[i].integers == integers)
			safetensors_writer_entry(writer, outputs[i].path, dtype_of(request, &outputs[i]),
			                         tensor->dims, tensor->rank);
	}
}

static void write_data(struct safetensors_writer *writer, const struct attention_request *request,
                       const struct reply_output *outputs, size_t count, bool integers)
{
	for (size_t i = 0; i < count; i++) {
		const struct reply_tensor *tensor = &outputs[i].tensor;
		if (outputs[i].integers != integers)
			continue;
		if (integers)
			safetensors_writer_integers(writer, tensor->indices, tensor->count);
		else
			safetensors_writer_floats(writer, request->output_dtype, tensor->data, tensor->count);
	}
}

char *attention_reply_binary(const struct attention_request *request, size_t *length, struct problem *problem)
{
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	size_t count = attention_outputs_list(request, outputs);
	char shape[ATTENTION_SHAPE_TEXT_MAX];
	struct safetensors_writer writer;
	if (!safetensors_writer_open(&writer, attention_reply_binary_bytes(request))) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	attention_reply_shape(request, shape);
	safetensors_writer_metadata(&writer, "shape", shape);
	write_entries(&writer, request, outputs, count, true);
	write_entries(&writer, request, outputs, count, false);
	safetensors_writer_end_header(&writer);
	write_data(&writer, request, outputs, count, true);
	write_data(&writer, request, outputs, count, false);
	*length = writer.length;
	return writer.bytes;
}
