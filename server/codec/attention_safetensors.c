#include "codec/attention_safetensors.h"

#include "codec/attention_fields.h"
#include "codec/attention_tensors.h"
#include "codec/binary.h"
#include "codec/json_envelope.h"
#include "codec/json_path.h"
#include "codec/tensor_room.h"

#include <ctype.h>
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROJECTIONS "projections"
#define SINK "sink"
/* A key of __metadata__ that libraries write to say whose tensors these are ("pt", "np"). */
#define LIBRARY "format"

/* A body on its way into the request and the envelope. */
struct unpacking {
	const attn_safetensors *file;
	bool model;
	struct tensor_room room;
	struct attention_request *request;
	json_t *envelope;
	struct problem *problem;
};

/* ---- names */

/* Whether the name is the pointer's names with dots between. */
static bool names_place(const char *name, const char *pointer)
{
	for (pointer++; *name != '\0' && *name == (*pointer == '/' ? '.' : *pointer); name++)
		pointer++;
	return *name == '\0' && *pointer == '\0';
}

/* The place of a tensor of that name on any route, or ATTENTION_PLACES. */
static enum attention_place find_place(const char *name)
{
	enum attention_place place = PLACE_QUERY;
	while (place < ATTENTION_PLACES && !names_place(name, attention_rules[place].pointer))
		place++;
	return place;
}

static bool is_field(const struct unpacking *unpacking, const char *name)
{
	struct problem ignored = {.code = PROBLEM_NONE};
	return attention_fields_known(name, unpacking->model, &ignored);
}

/* Puts the value, which is taken over, into the envelope: "group.name" into the object of a known group. */
static void put(struct unpacking *unpacking, const char *name, json_t *value)
{
	json_t *object = unpacking->envelope;
	const size_t group = sizeof(PROJECTIONS) - 1;
	if (strncmp(name, PROJECTIONS ".", group + 1) == 0) {
		if (json_object_get(object, PROJECTIONS) == NULL)
			json_object_set_new(object, PROJECTIONS, json_object());
		object = json_object_get(object, PROJECTIONS);
		name += group + 1;
	}
	if (json_object_set_new(object, name, value) != 0)
		problem_note(unpacking->problem, PROBLEM_MEMORY, "",
		             "the system refused memory for the fields of the body");
}

static void note_wrong_type(struct unpacking *unpacking, const char *name, const char *detail)
{
	char pointer[JSON_POINTER_MAX];
	json_pointer_member("", name, pointer);
	problem_note(unpacking->problem, PROBLEM_WRONG_TYPE, pointer, "%s", detail);
}

/* ---- __metadata__ */

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
static void note_text(struct unpacking *unpacking, const char *name, const struct problem *own)
{
	char pointer[2 * JSON_POINTER_MAX];
	json_pointer_member("", name, pointer);
	size_t length = strlen(pointer);
	snprintf(pointer + length, sizeof(pointer) - length, "%s", own->pointer);
	problem_note(unpacking->problem, own->code, pointer, "in the text of __metadata__: %s", own->detail);
}

/* The value that a field's text says, or NULL with a problem noted. */
static json_t *read_text(struct unpacking *unpacking, const char *name, const char *text)
{
	const struct json_limits limits = {.elements = 0, .envelope = JSON_ENVELOPE_MAX};
	struct problem own = {.code = PROBLEM_NONE};
	struct json_scan scan = {0};
	json_t *value = NULL;
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
		note_text(unpacking, name, &own);
	return value;
}

static void take_field(struct unpacking *unpacking, const char *name, const char *text)
{
	if (find_place(name) < ATTENTION_PLACES || strcmp(name, PROJECTIONS) == 0) {
		note_wrong_type(unpacking, name,
		                "a tensor is expected, named as the field, found text in __metadata__");
		return;
	}
	json_t *value = is_field(unpacking, name) ? read_text(unpacking, name, text) : json_null();
	if (value != NULL)
		put(unpacking, name, value);
}

/* ---- tensors */

/* As the limits and the places of tensors want it. */
static bool check_shape(struct unpacking *unpacking, const attn_stored_tensor *stored, const char *pointer,
                        size_t least_rank, size_t most_rank, size_t *count)
{
	if (!attn_size_product(stored->shape, stored->rank, count))
		return problem_note(unpacking->problem, PROBLEM_SHAPE_OVERFLOW, pointer,
		                    "the product of the dimensions overflows");
	if (stored->rank < least_rank || stored->rank > most_rank)
		return problem_note(unpacking->problem, PROBLEM_SHAPE_MISMATCH, pointer,
		                    "%zu to %zu dimensions are expected, this has %zu", least_rank, most_rank,
		                    stored->rank);
	return tensor_room_take(&unpacking->room, pointer, *count, stored->shape, stored->rank,
	                        unpacking->problem);
}

static void take_floats(struct unpacking *unpacking, const attn_stored_tensor *stored, const char *pointer,
                        size_t least_rank, size_t most_rank, struct tensor *out)
{
	size_t count;
	if (!binary_is_number(stored->dtype)) {
		problem_note(unpacking->problem, PROBLEM_WRONG_TYPE, pointer,
		             "a tensor of F32, F16, BF16 or F64 is expected, found %s",
		             attn_dtype_name(stored->dtype));
		return;
	}
	if (!check_shape(unpacking, stored, pointer, least_rank, most_rank, &count) || out->data != NULL)
		return;
	float *data = binary_floats(stored->dtype, stored->data, count, pointer, unpacking->problem);
	if (data == NULL)
		return;
	*out = (struct tensor){.data = data, .rank = stored->rank, .count = count};
	memcpy(out->dims, stored->shape, stored->rank * sizeof(*out->dims));
}

static void take_mask(struct unpacking *unpacking, const attn_stored_tensor *stored, struct mask_tensor *out)
{
	const char *pointer = attention_rules[PLACE_MASK].pointer;
	size_t count;
	if (stored->dtype != ATTN_BOOL) {
		problem_note(unpacking->problem, PROBLEM_WRONG_TYPE, pointer,
		             "a tensor of BOOL is expected, found %s; numbers to add to the scores go in "
		             "`bias`",
		             attn_dtype_name(stored->dtype));
		return;
	}
	if (!check_shape(unpacking, stored, pointer, 1, TENSOR_MAX_RANK, &count) ||
	    !binary_check_booleans(stored->data, count, pointer, unpacking->problem))
		return;
	uint8_t *data = malloc(count + 1);
	if (data == NULL) {
		problem_note(unpacking->problem, PROBLEM_MEMORY, "",
		             "the system refused memory for the mask");
		return;
	}
	memcpy(data, stored->data, count);
	*out = (struct mask_tensor){.data = data, .rank = stored->rank, .count = count};
	memcpy(out->dims, stored->shape, stored->rank * sizeof(*out->dims));
}

/* One number, or one a head; finite, as in JSON. */
static void take_sink(struct unpacking *unpacking, const attn_stored_tensor *stored)
{
	struct tensor *sink = &unpacking->request->sink;
	if (json_object_get(unpacking->envelope, SINK) != NULL) {
		problem_note(unpacking->problem, PROBLEM_DUPLICATE_KEY, "/" SINK,
		             "the sink is given twice, as a tensor and in __metadata__");
		return;
	}
	take_floats(unpacking, stored, "/" SINK, 0, 1, sink);
	for (size_t i = 0; i < sink->count; i++) {
		if (!isfinite(sink->data[i]))
			problem_note(unpacking->problem, PROBLEM_NOT_FINITE, "/" SINK,
			             "a sink is a finite number, number %zu is not", i);
	}
}

static void take_place(struct unpacking *unpacking, const attn_stored_tensor *stored,
                       enum attention_place place)
{
	put(unpacking, stored->name, json_integer(place));
	if (place == PLACE_MASK)
		take_mask(unpacking, stored, &unpacking->request->mask);
	else
		take_floats(unpacking, stored, attention_rules[place].pointer, 1, TENSOR_MAX_RANK,
		            attention_tensors_at(unpacking->request, place));
}

/* Names that no field has are left to the reader of the envelope to complain about. */
static void take_tensor(struct unpacking *unpacking, const attn_stored_tensor *stored)
{
	enum attention_place place = find_place(stored->name);
	if (place < (unpacking->model ? ATTENTION_MODEL_PLACES : ATTENTION_PLACES))
		take_place(unpacking, stored, place);
	else if (strcmp(stored->name, SINK) == 0)
		take_sink(unpacking, stored);
	else if (is_field(unpacking, stored->name))
		note_wrong_type(unpacking, stored->name,
		                "this field is not a tensor; it stands in __metadata__ as JSON text "
		                "(projections: tensors "
		                "named projections.query and so on)");
	else
		put(unpacking, stored->name, json_null());
}

/* ---- the whole */

/* Names and fields are kept to what a JSON body may have of them. */
static bool check_header(const char *body, size_t length, struct problem *problem)
{
	uint64_t header = 0;
	if (length < sizeof(header))
		return true; /* for the reader of the format to refuse */
	memcpy(&header, body, sizeof(header));
	header = le64toh(header);
	if (header <= ATTENTION_SAFETENSORS_HEADER_MAX || header > length - sizeof(header))
		return true;
	return problem_set(problem, PROBLEM_BODY_TOO_LARGE, "",
	                   "the header of the safetensors body takes %zu bytes, the limit is %zu",
	                   (size_t)header, ATTENTION_SAFETENSORS_HEADER_MAX);
}

static attn_safetensors *open_file(const char *body, size_t length, struct problem *problem)
{
	attn_safetensors *file = NULL;
	attn_error error = {.status = ATTN_OK};
	if (!check_header(body, length, problem))
		return NULL;
	attn_status status = attn_safetensors_parse(body, length, &file, &error);
	if (status == ATTN_FORMAT)
		problem_set(problem, PROBLEM_BAD_SAFETENSORS, "", "%s", error.message);
	else if (status != ATTN_OK)
		problem_set_status(problem, status);
	return file;
}

static void unpack(struct unpacking *unpacking, const struct attention_limits *limits)
{
	const attn_safetensors *file = unpacking->file;
	for (const char *name = NULL; (name = attn_safetensors_metadata_next(file, name)) != NULL;) {
		if (strcmp(name, LIBRARY) != 0)
			take_field(unpacking, name, attn_safetensors_metadata(file, name));
	}
	for (size_t i = 0; i < attn_safetensors_count(file); i++)
		take_tensor(unpacking, attn_safetensors_at(file, i));
	attention_tensors_note_lengths(unpacking->request,
	                               attention_tensors_query(unpacking->envelope, unpacking->problem),
	                               limits->sequence_length, unpacking->problem);
}

json_t *attention_safetensors_read(const char *body, size_t length, bool model,
                                   const struct attention_limits *limits, struct attention_request *request,
                                   struct problem *problem)
{
	attn_safetensors *file = open_file(body, length, problem);
	json_t *envelope = NULL;
	if (file == NULL)
		return NULL;
	envelope = json_object();
	if (envelope == NULL)
		problem_set_status(problem, ATTN_MEMORY);
	else
		unpack(&(struct unpacking){.file = file,
		                           .model = model,
		                           .room = {.limit = limits->elements},
		                           .request = request,
		                           .envelope = envelope,
		                           .problem = problem},
		       limits);
	attn_safetensors_free(file);
	if (problem->code == PROBLEM_NONE)
		return envelope;
	json_decref(envelope);
	return NULL;
}
