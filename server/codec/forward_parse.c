#include "codec/forward_request.h"

#include "codec/forward_fields.h"
#include "codec/forward_inputs.h"
#include "codec/forward_meaning.h"
#include "codec/forward_members.h"
#include "codec/forward_words.h"

#include <stdlib.h>

static bool check_reply(const struct forward_request *request, size_t limit, struct problem *problem)
{
	size_t bytes = forward_request_reply_bytes(request);
	if (bytes <= limit)
		return true;
	struct forward_advice advice = forward_request_advice(request);
	if (advice.output == NULL)
		return problem_set(
		    problem, PROBLEM_REPLY_TOO_LARGE, "",
		    "the reply may take %zu bytes, the limit is %zu; fewer or shorter sequences would fit",
		    bytes, limit);
	return problem_set(
	    problem, PROBLEM_REPLY_TOO_LARGE, "",
	    "the reply may take %zu bytes, the limit is %zu; without `%s` it would take %zu: %s", bytes,
	    limit, advice.output, advice.without, advice.instead);
}

/* The fields, then what they and the inputs mean together; the order in which problems are told. */
static bool fill_request(struct forward_request *request, const json_t *envelope,
                         const struct attention_limits *limits, struct problem *problem)
{
	struct forward_fields fields = {.top_k = 0};
	bool filled = forward_fields_read(envelope, limits, &fields, problem) &&
	              forward_meaning_resolve(request, &fields, problem);
	forward_fields_clear(&fields);
	if (!filled)
		return false;
	forward_words_measure(request);
	if (!forward_members_list(request))
		return problem_set_status(problem, ATTN_MEMORY);
	return check_reply(request, limits->reply_bytes, problem);
}

struct forward_request *forward_request_parse(const char *body, size_t length, struct body_forms forms,
                                              const attn_model *model, const struct text_reader *reader,
                                              const struct attention_limits *limits, attn_executor *executor,
                                              struct problem *problem)
{
	struct forward_request *request = calloc(1, sizeof(*request));
	*problem = (struct problem){.code = PROBLEM_NONE};
	if (request == NULL) {
		problem_set_status(problem, ATTN_MEMORY);
		return NULL;
	}
	request->info = attn_model_info_of(model);
	request->reader = *reader;
	request->reply_form = forms.reply;
	json_t *envelope =
	    forward_inputs_read(body, length, forms.request, limits, executor, request, problem);
	if (envelope == NULL || !fill_request(request, envelope, limits, problem)) {
		forward_request_free(request);
		request = NULL;
	}
	json_decref(envelope);
	return request;
}
