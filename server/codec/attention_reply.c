#include "codec/attention_reply.h"

#include "codec/attention_outputs.h"
#include "codec/reply_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	struct reply_output outputs[ATTENTION_OUTPUTS_MAX];
	size_t count = attention_outputs_list(request, outputs);
	const char *before = "";
	json_writer_text(writer, "{");
	for (size_t i = 0; i < count; i++) {
		if (!reply_output_write(writer, before, &outputs[i], problem))
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
