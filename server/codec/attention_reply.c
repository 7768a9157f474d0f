#include "codec/attention_reply.h"

#include "codec/attention_request.h"
#include "codec/json_path.h"
#include "codec/json_writer.h"

#include <stdio.h>
#include <stdlib.h>

/* `"name":[...],`; RESULT_NOT_FINITE with the place of the number. */
static bool write_tensor(struct json_writer *writer, const char *name, const float *data, const size_t *dims,
                         size_t rank, struct problem *problem)
{
	size_t index[TENSOR_MAX_RANK];
	char pointer[JSON_POINTER_MAX];
	json_writer_text(writer, "\"%s\":", name);
	if (json_writer_tensor(writer, data, dims, rank, index)) {
		json_writer_text(writer, ",");
		return true;
	}
	size_t length = (size_t)snprintf(pointer, sizeof(pointer), "/%s", name);
	for (size_t i = 0; i < rank; i++)
		length += (size_t)snprintf(pointer + length, sizeof(pointer) - length, "/%zu", index[i]);
	return problem_set(problem, PROBLEM_RESULT_NOT_FINITE, pointer,
	                   "this number of the result is NaN or infinite, which JSON cannot say");
}

static bool write_reply(struct json_writer *writer, const struct attention_request *request,
                        struct problem *problem)
{
	const attn_shape *shape = &request->shape;
	const struct reply_tensor *context = &request->context;
	size_t dims[TENSOR_MAX_RANK];
	size_t rank = attention_request_weights_shape(request, dims);
	json_writer_text(writer, "{");
	if (!write_tensor(writer, "context", context->data, context->dims, context->rank, problem))
		return false;
	if (rank > 0 && !write_tensor(writer, "weights", request->weights_out.data, dims, rank, problem))
		return false;
	json_writer_text(
	    writer,
	    "\"shape\":{\"batch\":%zu,\"heads\":%zu,\"kv_heads\":%zu,\"queries\":%zu,\"keys\":%zu,"
	    "\"head_width\":%zu,\"value_width\":%zu}}\n",
	    request->batch, shape->heads, shape->kv_heads, shape->queries, shape->keys, shape->head_width,
	    shape->value_width);
	return true;
}

char *attention_reply_format(const struct attention_request *request, size_t *length, struct problem *problem)
{
	struct json_writer writer;
	if (!json_writer_open(&writer, attention_request_reply_bytes(request), request->precision)) {
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
