#include "codec/attention_request.h"

#include "codec/attention_fields.h"
#include "codec/attention_meaning.h"
#include "codec/attention_outputs.h"
#include "codec/attention_safetensors.h"
#include "codec/attention_tensors.h"
#include "codec/json_body.h"

#include <stdlib.h>

/* ---- a JSON body */

/* Its tensors into the request; its envelope, which the caller frees, or NULL with the problem set. */
static json_t *read_json(const char *body, size_t length, bool model, const struct attention_limits *limits,
                         attn_executor *executor, struct attention_request *request, struct problem *problem)
{
	struct json_scan scan = {0};
	size_t places = model ? ATTENTION_MODEL_PLACES : ATTENTION_PLACES;
	json_t *envelope = json_body_read(body, length, attention_rules, places, limits->elements,
	                                  attention_fields_of(model), executor, &scan, problem);
	if (envelope != NULL && !attention_tensors_take(&scan, envelope, limits, request, problem)) {
		json_decref(envelope);
		envelope = NULL;
	}
	json_scan_clear(&scan);
	return envelope;
}

/* ---- outputs */

/* Bytes of the reply if other weights, and no stages, were asked for. */
static size_t reply_bytes_with(const struct attention_request *request, enum weights_form weights)
{
	struct attention_request other = *request;
	attention_outputs_ask(&other, weights);
	return attention_request_reply_bytes(&other);
}

static bool check_reply(const struct attention_request *request, size_t limit, struct problem *problem)
{
	size_t bytes = attention_request_reply_bytes(request);
	size_t mean = reply_bytes_with(request, WEIGHTS_MEAN), none = reply_bytes_with(request, WEIGHTS_NONE);
	if (bytes <= limit)
		return true;
	if (request->weights == WEIGHTS_PER_HEAD && mean <= limit)
		return problem_set(
		    problem, PROBLEM_REPLY_TOO_LARGE, "/weights",
		    "the reply may take %zu bytes, the limit is %zu; \"weights\":\"mean\" would take %zu and "
		    "\"weights\":false %zu",
		    bytes, limit, mean, none);
	if (none < bytes && none <= limit)
		return problem_set(
		    problem, PROBLEM_REPLY_TOO_LARGE, "/weights",
		    "the reply may take %zu bytes, the limit is %zu; \"weights\":false would take %zu", bytes,
		    limit, none);
	if (none < bytes)
		return problem_set(
		    problem, PROBLEM_REPLY_TOO_LARGE, "",
		    "the reply may take %zu bytes, the limit is %zu; even without weights it would take %zu",
		    bytes, limit, none);
	return problem_set(
	    problem, PROBLEM_REPLY_TOO_LARGE, "",
	    "the reply may take %zu bytes, the limit is %zu; fewer or shorter sequences would fit", bytes,
	    limit);
}

/* ---- the whole */

/* The fields, then what they and the tensors mean together; the order in which problems are told. */
static bool fill_request(struct attention_request *request, const json_t *envelope, const attn_model *model,
                         const struct attention_limits *limits, struct problem *problem)
{
	struct attention_fields fields = {0};
	const char *query = json_object_get(envelope, "query") != NULL ? "/query" : "/embeddings";
	bool filled = attention_fields_read(envelope, model != NULL, limits, &fields, problem);
	if (filled && request->sink.data != NULL) {
		fields.sinks = (struct float_list){request->sink.data, request->sink.count};
		fields.sink_is_list = request->sink.rank > 0;
		request->sink = (struct tensor){0};
	}
	filled = filled && attention_meaning_resolve(request, &fields, model, query, problem);
	attention_fields_clear(&fields);
	if (!filled)
		return false;
	attention_outputs_shape(request);
	return check_reply(request, limits->reply_bytes, problem);
}

struct attention_request *attention_request_parse(const char *body, size_t length, struct body_forms forms,
                                                  const attn_model *model,
                                                  const struct attention_limits *limits,
                                                  attn_executor *executor, struct problem *problem)
{
	struct attention_request *request = calloc(1, sizeof(*request));
	*problem = (struct problem){.code = PROBLEM_NONE};
	if (request == NULL) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	request->reply_form = forms.reply;
	json_t *envelope =
	    forms.request == BODY_SAFETENSORS
	        ? attention_safetensors_read(body, length, model != NULL, limits, request, problem)
	        : read_json(body, length, model != NULL, limits, executor, request, problem);
	if (envelope == NULL || !fill_request(request, envelope, model, limits, problem)) {
		attention_request_free(request);
		request = NULL;
	}
	json_decref(envelope);
	return request;
}
