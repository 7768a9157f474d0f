#include "forward_body.h"
#include "suite.h"

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 100000, .reply_bytes = 100000000, .timeout_ms = 30000};

static struct problem problem;
static attn_model *decoder, *pair, *layer;

static void start(void)
{
	decoder = forward_model("gpt2-head"); /* 2 layers, 3 heads, 16 positions, 50 tokens */
	pair = forward_model("t5-relu");      /* 2 and 3 layers, 3 heads, 50 tokens */
	layer = forward_model("torch-mha-self");
}

static void stop(void)
{
	attn_model_free(decoder);
	attn_model_free(pair);
	attn_model_free(layer);
}

static struct forward_request *request_for(const attn_model *model, const char *text)
{
	struct forward_request *request =
	    forward_body_parse(text, (struct body_forms){0}, model, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s: %s %s", text, problem.pointer, problem.detail);
	return request;
}

struct refusal {
	const char *body;
	enum problem_code code;
	const char *pointer;
};

static void refuses(const attn_model *model, const struct refusal *refusals, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct refusal *each = &refusals[i];
		ck_assert_msg(
		    forward_body_parse(each->body, (struct body_forms){0}, model, &roomy, &problem) == NULL,
		    "%s", each->body);
		ck_assert_msg(problem.code == each->code, "%s: %s", each->body,
		              problem_code_text(problem.code));
		ck_assert_str_eq(problem.pointer, each->pointer);
	}
}
#define REFUSES(model, ...)                                                                                  \
	refuses(model, (const struct refusal[]){__VA_ARGS__},                                                \
	        sizeof((const struct refusal[]){__VA_ARGS__}) / sizeof(struct refusal))

START_TEST(rows_of_tokens_are_told_apart)
{
	start();
	struct forward_request *request = request_for(decoder, "{'tokens':[[1,2],[],[3]]}");
	const struct forward_input *input = &request->inputs[ATTN_FIRST_STACK];
	const int64_t values[] = {1, 2, 3};
	const size_t lengths[] = {2, 0, 1}, starts[] = {0, 2, 2};
	ck_assert(request->batched && input->ragged);
	ck_assert_uint_eq(request->batch, 3);
	ck_assert_mem_eq(input->rows.values, values, sizeof(values));
	ck_assert_mem_eq(input->rows.lengths, lengths, sizeof(lengths));
	ck_assert_mem_eq(input->starts, starts, sizeof(starts));
	forward_request_free(request);

	request = request_for(decoder, "{'tokens':[4]}");
	ck_assert(!request->batched && !request->inputs[ATTN_FIRST_STACK].ragged);
	ck_assert_uint_eq(request->batch, 1);
	forward_request_free(request);
	stop();
}
END_TEST

START_TEST(the_forms_of_tokens_say_the_same)
{
	static const char *const bodies[] = {
	    "{'tokens':[[1,2],[3,4]]}",
	    "{'tokens':{'shape':[2,2],'data':[1,2,3,4]}}",
	    "{'tokens':{'shape':[2,2.0],'data':[1,2.0,3,4]}}",
	    "{'tokens':{'shape':[2,2],'dtype':'int32','base64':'AQAAAAIAAAADAAAABAAAAA=='}}",
	};
	start();
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const int64_t values[] = {1, 2, 3, 4};
		struct forward_request *request = request_for(decoder, bodies[i]);
		ck_assert_uint_eq(request->batch, 2);
		ck_assert_mem_eq(request->inputs[0].rows.values, values, sizeof(values));
		forward_request_free(request);
	}
	stop();
}
END_TEST

START_TEST(indices_count_from_the_end_of_what_they_are_about)
{
	start();
	struct forward_request *request = request_for(
	    pair, "{'tokens':[1],'decoder_tokens':[2],'outputs':'weights','layers':[-1,0],'heads':[-3],"
	          "'ablate':[['cross',-1,-1]]}");
	const size_t encoder[] = {1, 0}, decoders[] = {2, 0};
	ck_assert_mem_eq(request->layers[ATTN_FIRST_STACK], encoder, sizeof(encoder));
	ck_assert_mem_eq(request->layers[ATTN_SECOND_STACK], decoders, sizeof(decoders));
	ck_assert_mem_eq(request->layers[ATTN_CROSS_STACKS], decoders, sizeof(decoders));
	ck_assert_uint_eq(request->heads[ATTN_CROSS_STACKS][0], 0);
	ck_assert_uint_eq(request->ablation_count, 1);
	ck_assert_uint_eq(request->ablations[0].kind, ATTN_CROSS_STACKS);
	ck_assert_uint_eq(request->ablations[0].layer, 2);
	ck_assert_uint_eq(request->ablations[0].head, 2);
	forward_request_free(request);
	stop();
}
END_TEST

START_TEST(what_is_wrong_with_tokens_is_told_where_it_stands)
{
	start();
	REFUSES(decoder, {"{}", PROBLEM_MISSING_FIELD, "/tokens"}, {"[1]", PROBLEM_NOT_AN_OBJECT, ""},
	        {"{'tokens':[1,}", PROBLEM_SYNTAX, "/tokens/1"},
	        {"{'tokens':[]}", PROBLEM_BAD_VALUE, "/tokens"},
	        {"{'tokens':null}", PROBLEM_WRONG_TYPE, "/tokens"},
	        {"{'tokens':[[1],2]}", PROBLEM_WRONG_TYPE, "/tokens/1"},
	        {"{'tokens':[1,1.5]}", PROBLEM_WRONG_TYPE, "/tokens/1"},
	        {"{'tokens':[[1],[1,50]]}", PROBLEM_BAD_VALUE, "/tokens/1/1"},
	        {"{'tokens':[1e30]}", PROBLEM_BAD_VALUE, "/tokens/0"},
	        {"{'tokens':{'shape':[1,2],'data':[1,-1]}}", PROBLEM_BAD_VALUE, "/tokens/data/1"},
	        {"{'tokens':{'shape':[3],'data':[1,2]}}", PROBLEM_SHAPE_MISMATCH, "/tokens/data"},
	        {"{'tokens':{'shape':[-1],'data':[]}}", PROBLEM_BAD_VALUE, "/tokens/shape"},
	        {"{'tokens':{'shape':[1],'dtype':'float32','base64':'AAAAAA=='}}", PROBLEM_BAD_VALUE,
	         "/tokens/dtype"},
	        {"{'tokens':{'shape':[1],'dtype':'int64','base64':'AAAAAA=='}}", PROBLEM_SHAPE_MISMATCH,
	         "/tokens/base64"},
	        {"{'tokens':{'shape':[1],'data':[1],'size':1}}", PROBLEM_UNKNOWN_FIELD, "/tokens/size"},
	        {"{'tokens':[[1,1],[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]}", PROBLEM_SEQUENCE_TOO_LONG,
	         "/tokens/1"});
	stop();
}
END_TEST

START_TEST(limits_come_before_meaning_and_counts_before_limits)
{
	start();
	REFUSES(decoder,
	        {"{'tokens':[99,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],'nothing':1}", PROBLEM_SEQUENCE_TOO_LONG,
	         "/tokens"},
	        {"{'tokens':{'shape':[18],'data':[1]},'nothing':1}", PROBLEM_SHAPE_MISMATCH, "/tokens/data"},
	        {"{'nothing':1,'tokens':[99]}", PROBLEM_UNKNOWN_FIELD, "/nothing"});
	stop();
}
END_TEST

START_TEST(what_the_model_has_not_is_refused)
{
	start();
	REFUSES(layer, {"{'tokens':[1]}", PROBLEM_NO_STACK, ""});
	REFUSES(decoder, {"{'text':'a'}", PROBLEM_NO_TOKENIZER, "/text"},
	        {"{'tokens':[1],'decoder_tokens':[1]}", PROBLEM_BAD_VALUE, "/decoder_tokens"},
	        {"{'tokens':[1],'decoder_text':'x'}", PROBLEM_BAD_VALUE, "/decoder_text"},
	        {"{'tokens':[1],'ablate':[['cross',0,0]]}", PROBLEM_BAD_VALUE, "/ablate/0"});
	REFUSES(pair, {"{'tokens':[1],'outputs':'logits'}", PROBLEM_MISSING_FIELD, "/decoder_tokens"},
	        {"{'tokens':[1],'decoder_tokens':[[1]]}", PROBLEM_SHAPE_MISMATCH, "/decoder_tokens"},
	        {"{'tokens':[1],'decoder_embeddings':[[1]]}", PROBLEM_SHAPE_MISMATCH, "/decoder_embeddings"},
	        {"{'tokens':[1],'ablate':[[0,0]]}", PROBLEM_BAD_VALUE, "/ablate/0"});
	stop();
}
END_TEST

START_TEST(a_field_about_an_output_that_is_not_asked_for_is_refused)
{
	start();
	REFUSES(decoder, {"{'tokens':[1],'top_k':1}", PROBLEM_BAD_VALUE, "/top_k"},
	        {"{'tokens':[1],'heads':[0]}", PROBLEM_BAD_VALUE, "/heads"},
	        {"{'tokens':[1],'queries':[0]}", PROBLEM_BAD_VALUE, "/queries"},
	        {"{'tokens':[1],'layers':[0]}", PROBLEM_BAD_VALUE, "/layers"},
	        {"{'tokens':[1],'pooling':'cls'}", PROBLEM_BAD_VALUE, "/pooling"},
	        {"{'tokens':[1],'normalize':false}", PROBLEM_BAD_VALUE, "/normalize"});
	forward_request_free(request_for(decoder, "{'tokens':[1],'layers':[0],'statistics':'max'}"));
	stop();
}
END_TEST

START_TEST(a_batch_of_nothing_costs_no_memory)
{
	start();
	REFUSES(
	    decoder, {"{'tokens':{'shape':[70000,0],'data':[]}}", PROBLEM_TOO_MANY_ELEMENTS, "/tokens/shape"},
	    {"{'embeddings':{'shape':[70000,0,24],'data':[]}}", PROBLEM_TOO_MANY_ELEMENTS, "/embeddings"});
	stop();
}
END_TEST

SUITE_MAIN("forward_parse", rows_of_tokens_are_told_apart, the_forms_of_tokens_say_the_same,
           indices_count_from_the_end_of_what_they_are_about,
           what_is_wrong_with_tokens_is_told_where_it_stands,
           limits_come_before_meaning_and_counts_before_limits, what_the_model_has_not_is_refused,
           a_field_about_an_output_that_is_not_asked_for_is_refused, a_batch_of_nothing_costs_no_memory)
