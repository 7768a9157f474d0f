#include "codec/attention_reply.h"

#include "codec/attention_outputs.h"
#include "codec/reply_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set_not_finite(const struct attention_output *output, const size_t *index,
                           struct problem *problem)
{
	char pointer[JSON_POINTER_MAX];
	reply_path_pointer(output->path, index, output->tensor.rank, pointer);
	return problem_set(problem, PROBLEM_RESULT_NOT_FINITE, pointer,
	                   "this number of the result is NaN or infinite, which JSON cannot say");
}

/* RESULT_NOT_FINITE with the place of the number, or DEADLINE. */
static bool write_output(struct json_writer *writer, const struct attention_output *output,
                         struct problem *problem)
{
	const struct reply_tensor *tensor = &output->tensor;
	size_t index[TENSOR_MAX_RANK];
	writer->lowest = output->lowest;
	enum json_written written =
	    output->integers ? json_writer_indices(writer, tensor->indices, tensor->dims, tensor->rank)
	                     : json_writer_tensor(writer, tensor->data, tensor->dims, tensor->rank, index);
	if (written == JSON_NOT_FINITE)
		return set_not_finite(output, index, problem);
	return written == JSON_WRITTEN || problem_set_status(problem, ATTN_CANCELLED);
}

void attention_reply_shape(const struct attention_request *request, char out[ATTENTION_SHAPE_TEXT_MAX])
{
	const attn_shape *shape = &request->shape;
	snprintf(out, ATTENTION_SHAPE_TEXT_MAX,
	         "{\"batch\":%zu,\"heads\":%zu,\"kv_heads\":%zu,\"queries\":%zu,\"keys\":%zu,"
	         "\"head_width\":%zu,\"value_width\":%zu}",
	         request->batch, shape->heads, shape->kv_heads, shape->queries, shape->keys,
	         shape->head_width, shape->value_width);
}

static bool write_reply(struct json_writer *writer, const struct attention_request *request,
                        struct problem *problem)
{
	char shape[ATTENTION_SHAPE_TEXT_MAX];
	struct attention_output outputs[ATTENTION_OUTPUTS_MAX];
	size_t count = attention_outputs_list(request, outputs);
	const char *before = "";
	json_writer_text(writer, "{");
	for (size_t i = 0; i < count; i++) {
		reply_path_write(writer, before, outputs[i].path);
		if (!write_output(writer, &outputs[i], problem))
			return false;
		before = outputs[i].path;
	}
	reply_path_write(writer, before, "shape");
	attention_reply_shape(request, shape);
	json_writer_text(writer, "%s}\n", shape);
	return true;
}

static char *format_json(const struct attention_request *request, attn_executor *executor, size_t *length,
                         struct problem *problem)
{
	struct json_writer writer;
	if (!json_writer_open(&writer, attention_request_reply_bytes(request), request->precision,
	                      executor)) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	if (!write_reply(&writer, request, problem)) {
		free(writer.text);
		return NULL;
	}
	*length = writer.length;
	char *shrunk = realloc(writer.text, writer.length);
	return shrunk != NULL ? shrunk : writer.text;
}

char *attention_reply_format(const struct attention_request *request, attn_executor *executor, size_t *length,
                             struct problem *problem)
{
	return request->reply_form == BODY_SAFETENSORS ? attention_reply_binary(request, length, problem)
	                                               : format_json(request, executor, length, problem);
}
