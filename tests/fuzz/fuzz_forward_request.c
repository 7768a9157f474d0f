/*
 * Any bytes as a body of POST /v1/models/{model}/forward, JSON where they begin like it and safetensors
 * else, for a decoder and for an encoder with a decoder, answered in both forms.
 *
 * Refused with a problem that is a client's to mend; or a request whose parts fit each other and whose reply,
 * zeros here, keeps its form within its bound.
 */
#include "codec/forward_members.h"

#include "byte_reader.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct attention_limits limits = {
    .sequence_length = 64, .elements = 1 << 12, .reply_bytes = 1 << 18, .timeout_ms = 1000};

static const char *const folders[] = {"tests/models/gpt2-head", "tests/models/t5-relu"};
#define MODELS (sizeof(folders) / sizeof(folders[0]))

static void expect(int holds)
{
	if (!holds)
		abort();
}

static const attn_model *const *models_open(void)
{
	static attn_model *models[MODELS];
	static attn_kernels *kernels; /* lives as long as the models */
	if (models[0] != NULL)
		return (const attn_model *const *)models;
	expect(attn_kernels_new("reference", &kernels) == ATTN_OK);
	for (size_t i = 0; i < MODELS; i++)
		expect(attn_model_open(folders[i], kernels, &models[i], NULL) == ATTN_OK);
	return (const attn_model *const *)models;
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

static void check_inputs(const struct forward_request *request)
{
	size_t sequences = 0;
	for (size_t i = 0; i < request->groups.count; i++)
		sequences += request->groups.list[i].count;
	expect(sequences == request->batch);
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		const struct forward_input *input = &request->inputs[stack];
		size_t positions = request->info.stacks[stack].positions;
		expect(!input->given || input->rows.rows == request->batch);
		for (size_t row = 0; row < input->rows.rows; row++)
			expect(input->rows.lengths[row] <= limits.sequence_length &&
			       (positions == 0 || input->rows.lengths[row] <= positions));
		for (size_t i = 0; i < input->rows.count && input->rows.values != NULL; i++)
			expect(input->rows.values[i] >= 0 &&
			       (size_t)input->rows.values[i] < request->info.stacks[stack].vocabulary);
	}
}

/* Every sequence has its own place in every member. */
static void check_members(const struct forward_request *request)
{
	for (size_t i = 0; i < request->member_count; i++) {
		const struct forward_member *member = &request->members[i];
		size_t total = 0, dims[FORWARD_MEMBER_RANK];
		for (size_t sequence = 0; sequence < request->batch; sequence++) {
			const struct forward_groups *groups = &request->groups;
			size_t count =
			    forward_member_dims(member, groups->list[groups->group[sequence]].lengths, dims);
			size_t offset = forward_member_offset(request, member, sequence);
			total += count;
			expect(offset <= member->count && count <= member->count - offset);
		}
		expect(total == member->count);
	}
}

static void check_reply(const struct forward_request *request)
{
	struct problem problem = {.code = PROBLEM_NONE};
	size_t length;
	char *reply = forward_reply_format(request, NULL, &length, &problem);
	expect(reply != NULL && length <= forward_request_reply_bytes(request));
	if (request->reply_form == BODY_SAFETENSORS) {
		attn_safetensors *file = NULL;
		expect(attn_safetensors_parse(reply, length, &file, NULL) == ATTN_OK);
		attn_safetensors_free(file);
	} else {
		json_t *root = json_loadb(reply, length, JSON_REJECT_DUPLICATES, NULL);
		expect(json_is_object(root));
		json_decref(root);
	}
	free(reply);
}

static void check_body(const uint8_t *data, size_t size, const attn_model *model, struct body_forms forms)
{
	struct problem problem = {.code = PROBLEM_NONE};
	const struct text_reader reader = byte_reader();
	struct forward_request *request =
	    forward_request_parse((const char *)data, size, forms, model, &reader, &limits, NULL, &problem);
	if (request == NULL) {
		check_problem(&problem);
		return;
	}
	expect(problem.code == PROBLEM_NONE);
	expect(forward_request_reply_bytes(request) <= limits.reply_bytes);
	expect(forward_request_reserve(request));
	check_inputs(request);
	check_members(request);
	check_reply(request);
	forward_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const attn_model *const *models = models_open();
	enum body_form form = size > 0 && data[0] == '{' ? BODY_JSON : BODY_SAFETENSORS;
	for (size_t i = 0; i < MODELS; i++) {
		check_body(data, size, models[i], (struct body_forms){form, BODY_JSON});
		check_body(data, size, models[i], (struct body_forms){form, BODY_SAFETENSORS});
	}
	return 0;
}
