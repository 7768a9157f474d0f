#include "codec/forward_texts.h"

#include "byte_reader.h"
#include "forward_body.h"
#include "suite.h"

#include <string.h>

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 100000, .reply_bytes = 100000000, .timeout_ms = 30000};

static struct problem problem;
static attn_model *decoder, *pair;

static void start(void)
{
	decoder = forward_model("gpt2-head"); /* 16 positions, 50 tokens */
	pair = forward_model("t5-relu");
}

static void stop(void)
{
	attn_model_free(decoder);
	attn_model_free(pair);
}

static struct forward_request *read(const attn_model *model, const char *body, enum body_form reply)
{
	const struct text_reader reader = byte_reader();
	return forward_body_read(body, (struct body_forms){.reply = reply}, model, &reader, &roomy, &problem);
}

/* The reply to a request whose results are zeros, for the caller to free, with a NUL behind it. */
static char *reply_to(const attn_model *model, const char *body, enum body_form form, size_t *length)
{
	struct forward_request *request = read(model, body, form);
	ck_assert_msg(request != NULL, "%s: %s %s", body, problem.pointer, problem.detail);
	ck_assert(forward_request_reserve(request));
	char *text = forward_reply_format(request, NULL, length, &problem);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_le(*length, forward_request_reply_bytes(request));
	text = realloc(text, *length + 1);
	ck_assert_ptr_nonnull(text);
	text[*length] = '\0';
	forward_request_free(request);
	return text;
}

static void replies(const attn_model *model, const char *body, const char *wanted)
{
	size_t length;
	char *text = reply_to(model, body, BODY_JSON, &length);
	ck_assert_str_eq(text, wanted);
	free(text);
}

static void refuses(const attn_model *model, const char *body, enum problem_code code, const char *pointer)
{
	ck_assert_ptr_null(read(model, body, BODY_JSON));
	ck_assert_msg(problem.code == code, "%s: %s", body, problem.detail);
	ck_assert_str_eq(problem.pointer, pointer);
}

START_TEST(a_text_is_told_with_its_tokens_their_ranges_and_their_texts)
{
	start();
	replies(decoder, "{'text':'!a','outputs':[]}",
	        "{\"tokens\":[1,33,47,2],\"token_offsets\":[[0,0],[0,1],[1,2],[0,0]],"
	        "\"token_strings\":[\"\\\"\",\"B\",null,\"#\"]}\n");
	replies(decoder, "{'text':'','outputs':[]}",
	        "{\"tokens\":[1,2],\"token_offsets\":[[0,0],[0,0]],\"token_strings\":[\"\\\"\",\"#\"]}\n");
	stop();
}
END_TEST

START_TEST(texts_are_rows_of_any_length)
{
	start();
	replies(
	    decoder, "{'text':['!','','\\u00e9'],'outputs':[]}",
	    "{\"tokens\":[[1,33,2],[1,2],[1,45,19,2]],\"token_offsets\":[[[0,0],[0,1],[0,0]],[[0,0],[0,0]],"
	    "[[0,0],[0,1],[1,2],[0,0]]],\"token_strings\":[[\"\\\"\",\"B\",\"#\"],[\"\\\"\",\"#\"],"
	    "[\"\\\"\",null,\"4\",\"#\"]]}\n");
	replies(decoder, "{'text':[],'outputs':[]}",
	        "{\"tokens\":[],\"token_offsets\":[],\"token_strings\":[]}\n");
	stop();
}
END_TEST

START_TEST(the_decoder_has_texts_of_its_own)
{
	start();
	replies(pair, "{'text':'!','decoder_text':'#','outputs':[]}",
	        "{\"tokens\":[1,33,2],\"token_offsets\":[[0,0],[0,1],[0,0]],\"decoder_tokens\":[1,35,2],"
	        "\"decoder_token_offsets\":[[0,0],[0,1],[0,0]],\"token_strings\":[\"\\\"\",\"B\",\"#\"],"
	        "\"decoder_token_strings\":[\"\\\"\",\"D\",\"#\"]}\n");
	replies(pair, "{'text':'!','decoder_tokens':[0],'outputs':[],'layers':[0],'statistics':'entropy'}",
	        "{\"tokens\":[1,33,2],\"token_offsets\":[[0,0],[0,1],[0,0]],\"decoder_tokens\":[0],"
	        "\"statistics\":{\"entropy\":{\"encoder\":[[[0,0,0],[0,0,0],[0,0,0]]],\"decoder\":[[[0],[0],["
	        "0]]],"
	        "\"cross\":[[[0],[0],[0]]]}},\"token_strings\":[\"\\\"\",\"B\",\"#\"],"
	        "\"decoder_token_strings\":[\"!\"],\"layers\":{\"encoder\":[0],\"decoder\":[0],\"cross\":[0]}"
	        "}\n");
	stop();
}
END_TEST

START_TEST(tokens_are_told_with_their_texts_but_no_ranges)
{
	start();
	replies(decoder, "{'tokens':[3,49],'outputs':[]}",
	        "{\"tokens\":[3,49],\"token_strings\":[\"$\",null]}\n");
	stop();
}
END_TEST

START_TEST(a_binary_reply_holds_ranges_as_a_tensor_and_texts_as_metadata)
{
	start();
	size_t length;
	char *reply = reply_to(decoder, "{'text':['!','!'],'outputs':'weights','layers':[0]}",
	                       BODY_SAFETENSORS, &length);
	attn_safetensors *file = NULL;
	attn_error err = {.status = ATTN_OK};
	ck_assert_msg(attn_safetensors_parse(reply, length, &file, &err) == ATTN_OK, "%s", err.message);
	ck_assert_str_eq(attn_safetensors_metadata(file, "token_strings"),
	                 "[[\"\\\"\",\"B\",\"#\"],[\"\\\"\",\"B\",\"#\"]]");
	ck_assert_str_eq(attn_safetensors_metadata(file, "layers"), "[0]");
	const attn_stored_tensor *ranges = attn_safetensors_find(file, "token_offsets");
	ck_assert_ptr_nonnull(ranges);
	ck_assert(ranges->dtype == ATTN_INT64 && ranges->rank == 3 && ranges->shape[0] == 2 &&
	          ranges->shape[1] == 3 && ranges->shape[2] == 2);
	const int64_t wanted[] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0};
	ck_assert_mem_eq(ranges->data, wanted, sizeof wanted);
	attn_safetensors_free(file);
	free(reply);
	stop();
}
END_TEST

START_TEST(what_is_wrong_with_a_text_is_told_at_its_place)
{
	start();
	refuses(decoder, "{'text':['a','~']}", PROBLEM_BAD_VALUE, "/text/1");
	refuses(decoder, "{'text':'~'}", PROBLEM_BAD_VALUE, "/text");
	refuses(decoder, "{'text':3}", PROBLEM_WRONG_TYPE, "/text");
	refuses(decoder, "{'text':['a',3]}", PROBLEM_WRONG_TYPE, "/text");
	refuses(decoder, "{'text':'a','tokens':[1]}", PROBLEM_BAD_VALUE, "/text");
	refuses(decoder, "{'text':'a','embeddings':[[1]]}", PROBLEM_BAD_VALUE, "/embeddings");
	refuses(decoder, "{'text':['a','123456789012345']}", PROBLEM_SEQUENCE_TOO_LONG, "/text/1");
	refuses(decoder, "{'text':'a','decoder_text':'a'}", PROBLEM_BAD_VALUE, "/decoder_text");
	refuses(pair, "{'decoder_text':'a'}", PROBLEM_MISSING_FIELD, "/tokens");
	refuses(pair, "{'text':['a'],'decoder_text':'a'}", PROBLEM_SHAPE_MISMATCH, "/decoder_text");
	stop();
}
END_TEST

SUITE_MAIN("forward_texts", a_text_is_told_with_its_tokens_their_ranges_and_their_texts,
           texts_are_rows_of_any_length, the_decoder_has_texts_of_its_own,
           tokens_are_told_with_their_texts_but_no_ranges,
           a_binary_reply_holds_ranges_as_a_tensor_and_texts_as_metadata,
           what_is_wrong_with_a_text_is_told_at_its_place)
