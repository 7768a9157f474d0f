#include "attention_checks.h"

#include <jansson.h>

#include <stdlib.h>

static const struct attention_limits limits = {
    .sequence_length = 256, .elements = 1 << 14, .reply_bytes = 1 << 18, .timeout_ms = 1000};

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void check_problem(const struct problem *problem)
{
	char text[PROBLEM_JSON_MAX];
	int status = problem_status(problem->code);
	expect(status == 400 || status == 413);
	size_t length = problem_to_json(problem, text, sizeof(text));
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	expect(json_integer_value(json_object_get(root, "status")) == status);
	json_decref(root);
}

static void check_request(struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	expect(shape->heads >= 1 && shape->kv_heads >= 1 && shape->heads % shape->kv_heads == 0);
	expect(shape->queries <= limits.sequence_length && shape->keys <= limits.sequence_length);
	expect(request->query.data != NULL && request->query.count <= limits.elements);
	expect(attention_request_reply_bytes(request) <= limits.reply_bytes);
	expect(attention_request_reserve(request));
}

/* Lists of the selection, the past and everything a sequence has of its own stay within the shape. */
static void check_options(const struct attention_request *request)
{
	const attn_selection *selection = &request->selection;
	const attn_shape *shape = &request->shape;
	for (size_t i = 0; i < selection->head_count; i++)
		expect(selection->heads[i] < shape->heads);
	for (size_t i = 0; i < selection->query_count; i++)
		expect(selection->queries[i] < shape->queries);
	expect(selection->top_k <= shape->keys && shape->past <= shape->keys);
	expect(request->has_past == (request->past_key.data != NULL));
	for (size_t i = 0; i < request->batch && request->key_lengths != NULL; i++)
		expect(request->key_lengths[i] >= 0 && (size_t)request->key_lengths[i] <= shape->keys);
	if (request->has_past)
		expect(request->past_key.count ==
		           request->batch * shape->kv_heads * shape->past * shape->head_width &&
		       request->past_value.count ==
		           request->batch * shape->kv_heads * shape->past * shape->value_width);
}

/* Broadcast masks and biases reach no further than their memory. */
static void check_masks(const struct attention_request *request)
{
	const attn_shape *shape = &request->shape;
	if (request->batch == 0 || shape->queries == 0 || shape->keys == 0)
		return;
	size_t head = shape->heads - 1, query = shape->queries - 1, key = shape->keys - 1;
	attn_mask mask = attention_request_mask(request, request->batch - 1);
	attn_bias bias = attention_request_bias(request, request->batch - 1);
	if (mask.data != NULL)
		expect(
		    mask.data[head * mask.head_stride + query * mask.query_stride + key * mask.key_stride] <=
		    1);
	if (bias.data != NULL)
		(void)*(const volatile float *)&bias
		    .data[head * bias.head_stride + query * bias.query_stride + key * bias.key_stride];
}

static void check_text(const char *reply, size_t length)
{
	json_t *root = json_loadb(reply, length, JSON_REJECT_DUPLICATES, NULL);
	expect(json_is_object(json_object_get(root, "shape")));
	json_decref(root);
}

static void check_binary(const char *reply, size_t length)
{
	attn_safetensors *file = NULL;
	expect(attn_safetensors_parse(reply, length, &file, NULL) == ATTN_OK);
	expect(attn_safetensors_find(file, "context") != NULL);
	expect(attn_safetensors_metadata(file, "shape") != NULL);
	attn_safetensors_free(file);
}

static void check_reply(const struct attention_request *request)
{
	struct problem problem = {.code = PROBLEM_NONE};
	size_t length;
	char *reply = attention_reply_format(request, NULL, &length, &problem);
	expect(reply != NULL && length <= attention_request_reply_bytes(request));
	if (request->reply_form == BODY_SAFETENSORS)
		check_binary(reply, length);
	else
		check_text(reply, length);
	free(reply);
}

void attention_checks(const uint8_t *data, size_t size, struct body_forms forms)
{
	struct problem problem = {.code = PROBLEM_NONE};
	struct attention_request *request =
	    attention_request_parse((const char *)data, size, forms, NULL, &limits, NULL, &problem);
	if (!request) {
		check_problem(&problem);
		return;
	}
	expect(problem.code == PROBLEM_NONE);
	check_request(request);
	check_options(request);
	check_masks(request);
	check_reply(request);
	attention_request_free(request);
}
