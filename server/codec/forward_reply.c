#include "codec/forward_reply.h"

#include "codec/forward_words.h"
#include "codec/json_writer.h"
#include "codec/reply_path.h"
#include "codec/safetensors_writer.h"
#include "codec/saturating.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- upper bounds */

#define FRAME_TEXT_MAX 160 /* bytes of what is around members */

static attn_dtype dtype_of(const struct forward_request *request, bool integers)
{
	return integers ? ATTN_INT64 : request->output_dtype;
}

/* Bytes of a tensor of those dimensions, what stands around it included. */
static size_t tensor_bytes(const struct forward_request *request, const struct forward_member *member,
                           const size_t *dims, size_t rank)
{
	struct reply_output output = {.integers = member->integers};
	reply_tensor_shape(&output.tensor, dims, rank);
	if (request->reply_form == BODY_JSON)
		return saturating_add(reply_output_text_bytes(&output), 2);
	size_t size = attn_dtype_size(dtype_of(request, member->integers));
	return saturating_add(saturating_mul(output.tensor.count, size),
	                      SAFETENSORS_ENTRY_MAX + FORWARD_PATH_MAX);
}

size_t forward_reply_member_bytes(const struct forward_request *request, const struct forward_member *member)
{
	const struct forward_groups *groups = &request->groups;
	size_t dims[TENSOR_MAX_RANK] = {request->batch}, bytes = 2 * FORWARD_PATH_MAX;
	if (!member->ragged) {
		forward_member_dims(member, groups->list[0].lengths, dims + 1);
		bool batched = request->batched;
		return saturating_add(bytes, tensor_bytes(request, member, batched ? dims : dims + 1,
		                                          batched ? member->rank + 1 : member->rank));
	}
	for (size_t i = 0; i < groups->count; i++) {
		forward_member_dims(member, groups->list[i].lengths, dims + 1);
		size_t each = tensor_bytes(request, member, dims + 1, member->rank);
		bytes = saturating_add(bytes, saturating_mul(each, groups->list[i].count));
	}
	return bytes;
}

size_t forward_reply_frame_bytes(const struct forward_request *request)
{
	return saturating_add(SAFETENSORS_FRAME_MAX + FRAME_TEXT_MAX, forward_words_bytes(request));
}

/* ---- JSON */

static bool write_members(struct json_writer *writer, const struct forward_request *request,
                          const struct forward_words *words, struct problem *problem)
{
	struct forward_walk walk = {.request = request};
	struct reply_output output;
	const char *before = "";
	json_writer_text(writer, "{");
	while (forward_walk_next(&walk, &output)) {
		if (!reply_output_write(writer, before, &output, problem))
			return false;
		before = output.path;
	}
	for (size_t i = 0; i < words->count; i++) {
		reply_path_write(writer, before, words->names[i]);
		before = words->names[i];
		json_writer_text(writer, "%s", words->texts[i]);
	}
	reply_path_leave(writer, before);
	json_writer_text(writer, "}\n");
	return true;
}

static char *format_json(const struct forward_request *request, const struct forward_words *words,
                         attn_executor *executor, size_t *length, struct problem *problem)
{
	struct json_writer writer;
	if (!json_writer_open(&writer, forward_request_reply_bytes(request), request->precision, executor)) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	if (!write_members(&writer, request, words, problem)) {
		free(writer.text);
		return NULL;
	}
	*length = writer.length;
	char *shrunk = realloc(writer.text, writer.length);
	return shrunk != NULL ? shrunk : writer.text;
}

/* ---- safetensors */

/* Those of integers, which have 8 bytes an element, or those of numbers. */
static void write_entries(struct safetensors_writer *writer, const struct forward_request *request,
                          bool integers)
{
	struct forward_walk walk = {.request = request};
	struct reply_output output;
	while (forward_walk_next(&walk, &output)) {
		if (output.integers == integers)
			safetensors_writer_entry(writer, output.path, dtype_of(request, integers),
			                         output.tensor.dims, output.tensor.rank);
	}
}

static void write_data(struct safetensors_writer *writer, const struct forward_request *request,
                       bool integers)
{
	struct forward_walk walk = {.request = request};
	struct reply_output output;
	while (forward_walk_next(&walk, &output)) {
		const struct reply_tensor *tensor = &output.tensor;
		if (output.integers != integers)
			continue;
		if (integers)
			safetensors_writer_integers(writer, tensor->indices, tensor->count);
		else
			safetensors_writer_floats(writer, request->output_dtype, tensor->data, tensor->count);
	}
}

static char *format_binary(const struct forward_request *request, const struct forward_words *words,
                           size_t *length, struct problem *problem)
{
	struct safetensors_writer writer;
	if (!safetensors_writer_open(&writer, forward_request_reply_bytes(request))) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	for (size_t i = 0; i < words->count; i++)
		safetensors_writer_metadata(&writer, words->names[i], words->texts[i]);
	write_entries(&writer, request, true);
	write_entries(&writer, request, false);
	safetensors_writer_end_header(&writer);
	write_data(&writer, request, true);
	write_data(&writer, request, false);
	*length = writer.length;
	return writer.bytes;
}

char *forward_reply_format(const struct forward_request *request, attn_executor *executor, size_t *length,
                           struct problem *problem)
{
	struct forward_words words;
	char *reply = NULL;
	if (!forward_words_make(request, &words))
		problem_set_status(problem, ATTN_MEMORY);
	else if (request->reply_form == BODY_SAFETENSORS)
		reply = format_binary(request, &words, length, problem);
	else
		reply = format_json(request, &words, executor, length, problem);
	forward_words_clear(&words);
	return reply;
}
