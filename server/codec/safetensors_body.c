#include "codec/safetensors_body.h"

#include "codec/binary.h"
#include "codec/json_envelope.h"
#include "codec/json_path.h"

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

/* A key of __metadata__ that libraries write to say whose tensors these are ("pt", "np"). */
#define LIBRARY "format"

/* ---- opening and closing */

/* Names and fields are kept to what a JSON body may have of them. */
static bool check_header(const char *bytes, size_t length, struct problem *problem)
{
	uint64_t header = 0;
	if (length < sizeof(header))
		return true; /* for the reader of the format to refuse */
	memcpy(&header, bytes, sizeof(header));
	header = le64toh(header);
	if (header <= SAFETENSORS_BODY_HEADER_MAX || header > length - sizeof(header))
		return true;
	return problem_set(problem, PROBLEM_BODY_TOO_LARGE, "",
	                   "the header of the safetensors body takes %zu bytes, the limit is %zu",
	                   (size_t)header, SAFETENSORS_BODY_HEADER_MAX);
}

bool safetensors_body_open(struct safetensors_body *body, const char *bytes, size_t length, size_t elements,
                           body_field_known *known, struct problem *problem)
{
	attn_error error = {.status = ATTN_OK};
	*body = (struct safetensors_body){.room = {.limit = elements}, .known = known, .problem = problem};
	if (!check_header(bytes, length, problem))
		return false;
	attn_status status = attn_safetensors_parse(bytes, length, &body->file, &error);
	if (status == ATTN_FORMAT)
		return problem_set(problem, PROBLEM_BAD_SAFETENSORS, "", "%s", error.message);
	if (status != ATTN_OK)
		return problem_set_status(problem, status);
	body->envelope = json_object();
	if (body->envelope != NULL)
		return true;
	attn_safetensors_free(body->file);
	return problem_set_status(problem, ATTN_MEMORY);
}

json_t *safetensors_body_close(struct safetensors_body *body)
{
	attn_safetensors_free(body->file);
	if (body->problem->code == PROBLEM_NONE)
		return body->envelope;
	json_decref(body->envelope);
	return NULL;
}

/* ---- fields */

const char *safetensors_body_next_field(const struct safetensors_body *body, const char *name)
{
	do {
		name = attn_safetensors_metadata_next(body->file, name);
	} while (name != NULL && strcmp(name, LIBRARY) == 0);
	return name;
}

bool safetensors_body_knows(const struct safetensors_body *body, const char *name)
{
	struct problem ignored = {.code = PROBLEM_NONE};
	return body->known(name, &ignored);
}

void safetensors_body_put(struct safetensors_body *body, json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) != 0)
		problem_note(body->problem, PROBLEM_MEMORY, "",
		             "the system refused memory for the fields of the body");
}

void safetensors_body_note_wrong_type(struct safetensors_body *body, const char *name, const char *detail)
{
	char pointer[JSON_POINTER_MAX];
	json_pointer_member("", name, pointer);
	problem_note(body->problem, PROBLEM_WRONG_TYPE, pointer, "%s", detail);
}

/* A letter, then letters, digits and '_'. */
static bool is_bare_word(const char *text)
{
	if (!isalpha((unsigned char)*text))
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return *text == '\0';
}

/* A problem of a field's text, whose pointers begin in it. */
static void note_text(struct safetensors_body *body, const char *name, const struct problem *own)
{
	char pointer[2 * JSON_POINTER_MAX];
	json_pointer_member("", name, pointer);
	size_t length = strlen(pointer);
	snprintf(pointer + length, sizeof(pointer) - length, "%s", own->pointer);
	problem_note(body->problem, own->code, pointer, "in the text of __metadata__: %s", own->detail);
}

json_t *safetensors_body_field(struct safetensors_body *body, const char *name)
{
	const struct json_limits limits = {.elements = 0, .envelope = JSON_ENVELOPE_MAX};
	const char *text = attn_safetensors_metadata(body->file, name);
	struct problem own = {.code = PROBLEM_NONE};
	struct json_scan scan = {0};
	json_t *value = NULL;
	if (!safetensors_body_knows(body, name))
		return json_null();
	json_scan(text, strlen(text), NULL, 0, &limits, NULL, &scan, &own);
	if (own.code == PROBLEM_NONE) {
		value = json_envelope_read(&scan, &own);
	} else if (own.code == PROBLEM_SYNTAX && is_bare_word(text)) {
		own.code = PROBLEM_NONE;
		value = json_string(text);
		if (value == NULL)
			problem_set_status(&own, ATTN_MEMORY);
	}
	json_scan_clear(&scan);
	if (own.code != PROBLEM_NONE)
		note_text(body, name, &own);
	return value;
}

/* ---- tensors */

bool safetensors_body_check_shape(struct safetensors_body *body, const attn_stored_tensor *stored,
                                  const char *pointer, size_t least_rank, size_t most_rank, size_t *count)
{
	if (!attn_size_product(stored->shape, stored->rank, count))
		return problem_note(body->problem, PROBLEM_SHAPE_OVERFLOW, pointer,
		                    "the product of the dimensions overflows");
	if (stored->rank < least_rank || stored->rank > most_rank)
		return problem_note(body->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "%zu to %zu dimensions are expected, this has %zu", least_rank, most_rank,
		                    stored->rank);
	return tensor_room_take(&body->room, pointer, *count, stored->shape, stored->rank, body->problem);
}

void safetensors_body_floats(struct safetensors_body *body, const attn_stored_tensor *stored,
                             const char *pointer, size_t least_rank, size_t most_rank, struct tensor *out)
{
	size_t count;
	if (!binary_is_number(stored->dtype)) {
		problem_note(body->problem, PROBLEM_WRONG_TYPE, pointer,
		             "a tensor of F32, F16, BF16 or F64 is expected, found %s",
		             attn_dtype_name(stored->dtype));
		return;
	}
	if (!safetensors_body_check_shape(body, stored, pointer, least_rank, most_rank, &count) ||
	    out->data != NULL)
		return;
	float *data = binary_floats(stored->dtype, stored->data, count, pointer, body->problem);
	if (data == NULL)
		return;
	*out = (struct tensor){.data = data, .rank = stored->rank, .count = count};
	memcpy(out->dims, stored->shape, stored->rank * sizeof(*out->dims));
}
