#include "attention_body.h"
#include "codec/attention_request.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const struct attention_limits roomy = {
    .sequence_length = 1000, .elements = 1000, .reply_bytes = 1000000, .timeout_ms = 30000};

static struct problem problem;

/* A body of a header, single quotes for double ones, and data at an odd address; its reply is of the form. */
static struct attention_request *parse_for(const char *header, const void *data, size_t size,
                                           enum body_form reply)
{
	size_t length = strlen(header);
	char *bytes = malloc(8 + length + size + 1), *body = bytes + 1;
	ck_assert_ptr_nonnull(bytes);
	memset(body, 0, 8);
	body[0] = (char)(length & 0xFF);
	body[1] = (char)(length >> 8);
	for (size_t i = 0; i < length; i++)
		body[8 + i] = (char)(header[i] == '\'' ? '"' : header[i]);
	memcpy(body + 8 + length, data, size);
	struct body_forms forms = {BODY_SAFETENSORS, reply};
	struct attention_request *request =
	    attention_request_parse(body, 8 + length + size, forms, NULL, &roomy, NULL, &problem);
	memset(bytes, 0xA5, 8 + length + size + 1); /* nothing of the body is needed any more */
	free(bytes);
	return request;
}

static struct attention_request *accepted(const char *header, const void *data, size_t size)
{
	struct attention_request *request = parse_for(header, data, size, BODY_SAFETENSORS);
	ck_assert_msg(request != NULL, "%s: %s %s", header, problem.pointer, problem.detail);
	return request;
}

static void refused(const char *header, const void *data, size_t size, enum problem_code code,
                    const char *pointer)
{
	ck_assert_ptr_null(parse_for(header, data, size, BODY_SAFETENSORS));
	ck_assert_msg(problem.code == code && strcmp(problem.pointer, pointer) == 0, "%s: %s at %s: %s",
	              header, problem_code_text(problem.code), problem.pointer, problem.detail);
}

#define QUERY "'query':{'dtype':'F32','shape':[2,2],'data_offsets':[0,16]}"
static const float four[] = {1, 2, 3, 4};

START_TEST(tensors_are_copied_to_the_fields_of_their_names)
{
	static const struct __attribute__((packed)) {
		float query[4];
		uint8_t mask[4];
		uint16_t matrix[2];
		double key[2];
	} data = {{1, NAN, -INFINITY, 4}, {1, 0, 0, 1}, {0x3F80, 0xC000}, {0.5, INFINITY}};
	struct attention_request *request =
	    accepted("{" QUERY ",'mask':{'dtype':'BOOL','shape':[2,2],'data_offsets':[16,20]},"
	             "'projections.query':{'dtype':'BF16','shape':[2,1],'data_offsets':[20,24]},"
	             "'key':{'dtype':'F64','shape':[2,1],'data_offsets':[24,40]}}",
	             &data, sizeof(data));
	ck_assert_mem_eq(request->query.data, data.query, sizeof(data.query));
	ck_assert(request->query.rank == 2 && request->query.dims[0] == 2 && request->query.count == 4);
	ck_assert_mem_eq(request->mask.data, data.mask, sizeof(data.mask));
	ck_assert(request->projections[0].data[0] == 1 && request->projections[0].data[1] == -2);
	ck_assert(request->key.data[0] == 0.5f && isinf(request->key.data[1]));
	ck_assert_ptr_null(request->bias.data);
	attention_request_free(request);
}
END_TEST

START_TEST(metadata_says_what_json_says)
{
	struct attention_request *request =
	    accepted("{'__metadata__':{'causal':'true','heads':' 2 ','weights':'{\\'top_k\\':1}',"
	             "'positions':'alibi','output_dtype':'\\'bfloat16\\'','statistics':'[\\'max\\']',"
	             "'key_lengths':'1','precision':'shortest'}," QUERY "}",
	             four, sizeof(four));
	ck_assert_int_eq(request->options.causal, ATTN_CAUSAL_BOTTOM_RIGHT);
	ck_assert_uint_eq(request->shape.heads, 2);
	ck_assert(request->weights == WEIGHTS_TOP && request->selection.top_k == 1);
	ck_assert_ptr_nonnull(request->options.slopes);
	ck_assert_int_eq(request->output_dtype, ATTN_BFLOAT16);
	ck_assert(request->wants_statistic[ATTENTION_MAXIMUM] &&
	          !request->wants_statistic[ATTENTION_ENTROPY]);
	ck_assert_int_eq((int)request->key_lengths[0], 1);
	attention_request_free(request);
}
END_TEST

START_TEST(the_format_that_libraries_note_in_metadata_is_ignored)
{
	static const char *const values[] = {"pt", "np", "", "{", "a b"};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char header[256];
		snprintf(header, sizeof(header), "{'__metadata__':{'format':'%s','causal':'true'}," QUERY "}",
		         values[i]);
		struct attention_request *request = accepted(header, four, sizeof(four));
		ck_assert_int_eq(request->options.causal, ATTN_CAUSAL_BOTTOM_RIGHT);
		attention_request_free(request);
	}
	refused("{'__metadata__':{'formats':'pt'}," QUERY "}", four, sizeof(four), PROBLEM_UNKNOWN_FIELD,
	        "/formats");
	refused("{" QUERY ",'format':{'dtype':'F32','shape':[],'data_offsets':[16,20]}}",
	        (const float[]){1, 2, 3, 4, 5}, 20, PROBLEM_UNKNOWN_FIELD, "/format");
}
END_TEST

START_TEST(a_sink_is_a_tensor_or_a_field_but_not_both)
{
	static const float data[] = {1, 2, 3, 4, 5, -6};
	struct attention_request *request =
	    accepted("{'__metadata__':{'heads':'2'}," QUERY
	             ",'sink':{'dtype':'F32','shape':[2],'data_offsets':[16,24]}}",
	             data, sizeof(data));
	ck_assert(request->options.sink[0] == 5 && request->options.sink[1] == -6);
	attention_request_free(request);
	refused("{'__metadata__':{'sink':'1'}," QUERY
	        ",'sink':{'dtype':'F32','shape':[],'data_offsets':[16,20]}}",
	        data, 20, PROBLEM_DUPLICATE_KEY, "/sink");
	refused("{" QUERY ",'sink':{'dtype':'F32','shape':[2],'data_offsets':[16,24]}}", data, sizeof(data),
	        PROBLEM_SHAPE_MISMATCH, "/sink");
	refused("{" QUERY ",'sink':{'dtype':'F32','shape':[1,1],'data_offsets':[16,20]}}", data, 20,
	        PROBLEM_SHAPE_MISMATCH, "/sink");
}
END_TEST

START_TEST(a_problem_of_metadata_has_the_place_in_the_text)
{
	static const struct {
		const char *metadata;
		enum problem_code code;
		const char *pointer;
	} cases[] = {
	    {"'weights':'{\\'heads\\':[0,x]}'", PROBLEM_SYNTAX, "/weights/heads/1"},
	    {"'weights':'{\\'heads\\':[0,2]}'", PROBLEM_BAD_VALUE, "/weights/heads/1"},
	    {"'weights':'{\\'heads\\':[\\'a\\\\u0000\\']}'", PROBLEM_NUL_ESCAPE, "/weights/heads/0"},
	    {"'scale':'1e999'", PROBLEM_BEYOND_FLOAT32, "/scale"},
	    {"'scale':'-Infinity'", PROBLEM_NOT_FINITE, "/scale"},
	    {"'scale':'1 2'", PROBLEM_SYNTAX, "/scale"},
	    {"'scale':'word'", PROBLEM_WRONG_TYPE, "/scale"},
	    {"'causal':'top left'", PROBLEM_SYNTAX, "/causal"},
	    {"'causal':'null'", PROBLEM_WRONG_TYPE, "/causal"},
	    {"'layer':'0'", PROBLEM_UNKNOWN_FIELD, "/layer"},
	    {"'a/b':'}'", PROBLEM_UNKNOWN_FIELD, "/a~1b"},
	    {"'projections.query':'1'", PROBLEM_WRONG_TYPE, "/projections.query"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char header[256];
		snprintf(header, sizeof(header), "{'__metadata__':{%s}," QUERY "}", cases[i].metadata);
		refused(header, four, sizeof(four), cases[i].code, cases[i].pointer);
	}
}
END_TEST

START_TEST(a_tensor_without_a_field_is_told_with_the_nearest)
{
	refused("{'qery':{'dtype':'F32','shape':[2,2],'data_offsets':[0,16]}}", four, sizeof(four),
	        PROBLEM_UNKNOWN_FIELD, "/qery");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`query`"));
	refused("{'query':{'dtype':'F32','shape':[1,2],'data_offsets':[0,8]},"
	        "'projections.querybias':{'dtype':'F32','shape':[2],'data_offsets':[8,16]}}",
	        four, sizeof(four), PROBLEM_UNKNOWN_FIELD, "/projections/querybias");
	ck_assert_ptr_nonnull(strstr(problem.detail, "`query_bias`"));
	refused("{'query':{'dtype':'F32','shape':[1,2],'data_offsets':[0,8]},"
	        "'projections/query':{'dtype':'F32','shape':[2,1],'data_offsets':[8,16]}}",
	        four, sizeof(four), PROBLEM_UNKNOWN_FIELD, "/projections~1query");
	refused("{'heads':{'dtype':'F32','shape':[2,2],'data_offsets':[0,16]}}", four, sizeof(four),
	        PROBLEM_WRONG_TYPE, "/heads");
}
END_TEST

START_TEST(a_shape_is_told_before_an_unknown_name_as_in_json)
{
	refused("{'nobody':{'dtype':'F32','shape':[2],'data_offsets':[0,8]},"
	        "'query':{'dtype':'F32','shape':[1,1,1,1,2],'data_offsets':[8,16]}}",
	        four, sizeof(four), PROBLEM_SHAPE_MISMATCH, "/query");
}
END_TEST

START_TEST(elements_are_counted_over_all_tensors)
{
	static const float many[1002];
	refused("{'query':{'dtype':'F32','shape':[1,501],'data_offsets':[0,2004]},"
	        "'key':{'dtype':'F32','shape':[1,500],'data_offsets':[2004,4004]}}",
	        many, 4004, PROBLEM_TOO_MANY_ELEMENTS, "/key");
	refused("{'query':{'dtype':'F32','shape':[0,1001],'data_offsets':[0,0]}}", many, 0,
	        PROBLEM_TOO_MANY_ELEMENTS, "/query");
}
END_TEST

START_TEST(a_text_reply_has_no_output_dtype)
{
	const char *header = "{'__metadata__':{'output_dtype':'float16'}," QUERY "}";
	ck_assert_ptr_null(parse_for(header, four, sizeof(four), BODY_JSON));
	ck_assert_str_eq(problem.pointer, "/output_dtype");
	attention_request_free(accepted(header, four, sizeof(four)));
}
END_TEST

/* A JSON request with every kind of output, answered in the other form; its numbers count up from 0. */
static char *binary_reply(const char *dtype, size_t *length)
{
	char text[512];
	snprintf(text, sizeof(text),
	         "{'query': [[1,2],[3,4],[5,6]], 'heads': 2, 'weights': {'top_k': 1}, 'statistics': "
	         "['logsumexp'], 'projected': true, 'output_dtype': '%s', 'past_key': {'shape': [1,2,0,1], "
	         "'data': []}, 'past_value': {'shape': [1,2,0,1], 'data': []}}",
	         dtype);
	struct attention_request *request = attention_body_parse_for(
	    text, (struct body_forms){BODY_JSON, BODY_SAFETENSORS}, NULL, &roomy, &problem);
	ck_assert_msg(request != NULL, "%s", problem.detail);
	ck_assert(attention_request_reserve(request));
	for (size_t i = 0; i < request->context.count; i++)
		request->context.data[i] = (float)i + 1.0f / 3;
	for (size_t i = 0; i < request->top_indices.count; i++)
		request->top_indices.indices[i] = 7 * (int64_t)i;
	request->statistics[ATTENTION_LOGSUMEXP].data[0] = -INFINITY;
	char *reply = attention_reply_format(request, NULL, length, &problem);
	ck_assert_ptr_nonnull(reply);
	ck_assert_uint_le(*length, attention_request_reply_bytes(request));
	attention_request_free(request);
	return reply;
}

/* count numbers of a tensor of a reply. */
static float *stored(const attn_safetensors *file, const char *name, const char *dtype, size_t count)
{
	const attn_stored_tensor *tensor = attn_safetensors_find(file, name);
	size_t found;
	ck_assert_msg(tensor != NULL, "%s", name);
	ck_assert_str_eq(attn_dtype_name(tensor->dtype), dtype);
	ck_assert(attn_size_product(tensor->shape, tensor->rank, &found) && found == count);
	ck_assert_uint_eq((uintptr_t)tensor->data % attn_dtype_size(tensor->dtype), 0);
	float *numbers = malloc(count * sizeof(float));
	ck_assert_int_eq(attn_to_float32(tensor->dtype, tensor->data, count, numbers), ATTN_OK);
	return numbers;
}

START_TEST(a_binary_reply_has_every_output_by_its_path)
{
	static const struct {
		const char *word, *name;
		float third; /* as the type has it */
	} types[] = {{"float32", "F32", 1.0f / 3},
	             {"float16", "F16", 0.333251953125f},
	             {"bfloat16", "BF16", 0.333984375f},
	             {"float64", "F64", 1.0f / 3}};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t length;
		char *reply = binary_reply(types[i].word, &length);
		attn_safetensors *file = NULL;
		attn_error error = {.status = ATTN_OK};
		ck_assert_msg(attn_safetensors_parse(reply, length, &file, &error) == ATTN_OK, "%s",
		              error.message);
		ck_assert_uint_eq(attn_safetensors_count(file), 9);
		float *context = stored(file, "context", types[i].name, 6);
		float *indices = stored(file, "weights.indices", "I64", 6);
		float *sums = stored(file, "statistics.logsumexp", types[i].name, 6);
		ck_assert(context[0] == types[i].third && indices[5] == 35 && sums[0] == -INFINITY);
		free(context);
		free(indices);
		free(sums);
		free(stored(file, "weights.values", types[i].name, 6));
		free(stored(file, "projected.query", types[i].name, 6));
		free(stored(file, "projected.key", types[i].name, 6));
		free(stored(file, "projected.value", types[i].name, 6));
		free(stored(file, "present_key", types[i].name, 6));
		ck_assert_uint_eq(attn_safetensors_find(file, "present_value")->rank, 4);
		ck_assert_str_eq(attn_safetensors_metadata(file, "shape"),
		                 "{\"batch\":1,\"heads\":2,\"kv_heads\":2,\"queries\":3,\"keys\":3,"
		                 "\"head_width\":1,\"value_width\":1}");
		attn_safetensors_free(file);
		free(reply);
	}
}
END_TEST

SUITE_MAIN("attention_safetensors", tensors_are_copied_to_the_fields_of_their_names,
           metadata_says_what_json_says, the_format_that_libraries_note_in_metadata_is_ignored,
           a_sink_is_a_tensor_or_a_field_but_not_both, a_problem_of_metadata_has_the_place_in_the_text,
           a_tensor_without_a_field_is_told_with_the_nearest,
           a_shape_is_told_before_an_unknown_name_as_in_json, elements_are_counted_over_all_tensors,
           a_text_reply_has_no_output_dtype, a_binary_reply_has_every_output_by_its_path)
