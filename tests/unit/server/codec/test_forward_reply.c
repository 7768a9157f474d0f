#include "codec/forward_members.h"

#include "forward_body.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 100000, .reply_bytes = 100000000, .timeout_ms = 30000};

static struct problem problem;

static struct forward_request *request_of(const attn_model *model, const char *text, enum body_form reply)
{
	struct forward_request *request =
	    forward_body_parse(text, (struct body_forms){.reply = reply}, model, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s: %s %s", text, problem.pointer, problem.detail);
	ck_assert(forward_request_reserve(request));
	return request;
}

/* Each sequence's results count up from ten times its number. */
static void fill(struct forward_request *request)
{
	for (size_t i = 0; i < request->member_count; i++) {
		struct forward_member *member = &request->members[i];
		for (size_t n = 0; n < request->batch && member->result != FORWARD_RESULT_TOKENS; n++) {
			const struct forward_groups *groups = &request->groups;
			size_t dims[FORWARD_MEMBER_RANK];
			size_t count =
			    forward_member_dims(member, groups->list[groups->group[n]].lengths, dims);
			size_t offset = forward_member_offset(request, member, n);
			for (size_t k = 0; k < count; k++) {
				if (member->integers)
					member->indices[offset + k] = (int64_t)(10 * n + k);
				else
					member->data[offset + k] = (float)(10 * n + k);
			}
		}
	}
}

static void replies(const attn_model *model, const char *body, const char *wanted)
{
	struct forward_request *request = request_of(model, body, BODY_JSON);
	size_t length;
	fill(request);
	char *text = forward_reply_format(request, NULL, &length, &problem);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_le(length, forward_request_reply_bytes(request));
	text = realloc(text, length + 1);
	text[length] = '\0';
	ck_assert_str_eq(text, wanted);
	free(text);
	forward_request_free(request);
}

#define NARROW "'outputs':'weights','heads':[0],'queries':[-1]"

START_TEST(weights_are_a_list_by_layer)
{
	attn_model *model = forward_model("gpt2-head");
	replies(model, "{'tokens':[7,8]," NARROW "}",
	        "{\"tokens\":[7,8],\"weights\":[[[[0,1]]],[[[0,1]]]]}\n");
	replies(model, "{'tokens':[[7,8],[5,6]]," NARROW ",'layers':[-1]}",
	        "{\"tokens\":[[7,8],[5,6]],\"weights\":[[[[[0,1]]],[[[10,11]]]]],\"layers\":[1]}\n");
	attn_model_free(model);
}
END_TEST

START_TEST(ragged_members_are_lists_in_the_order_of_the_request)
{
	attn_model *model = forward_model("gpt2-head");
	replies(
	    model, "{'tokens':[[7,8],[5],[1,2]]," NARROW ",'layers':[0]}",
	    "{\"tokens\":[[7,8],[5],[1,2]],\"weights\":[[[[[0,1]]],[[[10]]],[[[20,21]]]]],\"layers\":[0]}\n");
	replies(
	    model, "{'tokens':[[7,8],[5]]," NARROW ",'layers':[0],'top_k':1,'top_logits':1}",
	    "{\"tokens\":[[7,8],[5]],\"top_logits\":{\"indices\":[[0],[10]],\"values\":[[0],[10]]},"
	    "\"weights\":[{\"indices\":[[[[0]]],[[[10]]]],\"values\":[[[[0]]],[[[10]]]]}],\"layers\":[0]}\n");
	attn_model_free(model);
}
END_TEST

START_TEST(kinds_have_names_where_there_are_several)
{
	attn_model *model = forward_model("t5-relu");
	replies(model, "{'tokens':[7,8],'decoder_tokens':[5]," NARROW ",'layers':[1]}",
	        "{\"tokens\":[7,8],\"decoder_tokens\":[5],\"weights\":{\"encoder\":[[[[0,1]]]],"
	        "\"decoder\":[[[[0]]]],\"cross\":[[[[0,1]]]]},\"layers\":{\"encoder\":[1],\"decoder\":[1],"
	        "\"cross\":[1]}}\n");
	replies(model, "{'tokens':[7],'outputs':[],'statistics':'entropy','rollout':true,'layers':[0]}",
	        "{\"tokens\":[7],\"statistics\":{\"entropy\":{\"encoder\":[[[0],[1],[2]]]}},\"rollout\":{"
	        "\"encoder\":[[0]]},\"layers\":{\"encoder\":[0]}}\n");
	attn_model_free(model);
}
END_TEST

START_TEST(hidden_is_the_memory_of_the_last_of_hidden_all)
{
	attn_model *model = forward_model("gpt2-head");
	struct forward_request *request =
	    request_of(model, "{'tokens':[[1],[2,3]],'outputs':['hidden','hidden_all']}", BODY_JSON);
	const struct forward_member *last = &request->members[request->member_count - 1];
	ck_assert_str_eq(request->members[1].path, "hidden");
	ck_assert_str_eq(last->path, "hidden_all.2");
	ck_assert_ptr_eq(request->members[1].data, last->data);
	ck_assert_uint_eq(forward_request_output_bytes(request), 3 * 3 * 24 * sizeof(float));
	forward_request_free(request);
	attn_model_free(model);
}
END_TEST

START_TEST(a_number_that_text_cannot_say_is_told_with_its_place)
{
	attn_model *model = forward_model("gpt2-head");
	struct forward_request *request =
	    request_of(model, "{'tokens':[[1],[2,3]],'outputs':['weights']}", BODY_JSON);
	size_t length;
	for (size_t i = 0; i < request->member_count; i++) {
		struct forward_member *member = &request->members[i];
		if (strcmp(member->path, "weights.1") == 0)
			member->data[forward_member_offset(request, member, 1) + 5] = NAN;
	}
	ck_assert_ptr_null(forward_reply_format(request, NULL, &length, &problem));
	ck_assert_int_eq(problem.code, PROBLEM_RESULT_NOT_FINITE);
	ck_assert_str_eq(problem.pointer, "/weights/1/1/1/0/1");
	forward_request_free(request);
	attn_model_free(model);
}
END_TEST

START_TEST(a_binary_reply_names_layers_and_sequences)
{
	static const char *const names[] = {
	    "tokens.0",           "tokens.1", "hidden.0", "hidden.1",           "weights.1.0",
	    "weights.1.1",        "pooled",   "logits",   "top_logits.indices", "statistics.max.1.0",
	    "statistics.max.1.1", "rollout.0"};
	attn_model *model = forward_model("gpt2-head");
	struct forward_request *request =
	    request_of(model,
	               "{'tokens':[[7,8],[5]],'outputs':['hidden','weights','pooled','logits'],'layers':[1],"
	               "'top_logits':2,'statistics':'max','rollout':true}",
	               BODY_SAFETENSORS);
	attn_safetensors *file = NULL;
	size_t length;
	fill(request);
	char *reply = forward_reply_format(request, NULL, &length, &problem);
	ck_assert_ptr_nonnull(reply);
	ck_assert_uint_le(length, forward_request_reply_bytes(request));
	ck_assert_int_eq(attn_safetensors_parse(reply, length, &file, NULL), ATTN_OK);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(attn_safetensors_find(file, names[i]) != NULL, "%s", names[i]);
	const attn_stored_tensor *weights = attn_safetensors_find(file, "weights.1.1");
	float first;
	memcpy(&first, weights->data, sizeof(first));
	ck_assert_uint_eq(weights->rank, 3);
	ck_assert(first == 10);
	ck_assert_str_eq(attn_safetensors_metadata(file, "layers"), "[1]");
	attn_safetensors_free(file);
	free(reply);
	forward_request_free(request);
	attn_model_free(model);
}
END_TEST

SUITE_MAIN("forward_reply", weights_are_a_list_by_layer, ragged_members_are_lists_in_the_order_of_the_request,
           kinds_have_names_where_there_are_several, hidden_is_the_memory_of_the_last_of_hidden_all,
           a_number_that_text_cannot_say_is_told_with_its_place, a_binary_reply_names_layers_and_sequences)
