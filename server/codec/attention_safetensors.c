#include "codec/attention_safetensors.h"

#include "codec/attention_fields.h"
#include "codec/attention_tensors.h"
#include "codec/binary.h"
#include "codec/safetensors_body.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROJECTIONS "projections"
#define SINK "sink"

/* A body on its way into the request and the envelope. */
struct unpacking {
	struct safetensors_body body;
	bool model;
	struct attention_request *request;
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

/* Puts the value, which is taken over, into the envelope: "group.name" into the object of a known group. */
static void put(struct unpacking *unpacking, const char *name, json_t *value)
{
	json_t *object = unpacking->body.envelope;
	const size_t group = sizeof(PROJECTIONS) - 1;
	if (strncmp(name, PROJECTIONS ".", group + 1) == 0) {
		if (json_object_get(object, PROJECTIONS) == NULL)
			json_object_set_new(object, PROJECTIONS, json_object());
		object = json_object_get(object, PROJECTIONS);
		name += group + 1;
	}
	safetensors_body_put(&unpacking->body, object, name, value);
}

static void take_field(struct unpacking *unpacking, const char *name)
{
	if (find_place(name) < ATTENTION_PLACES || strcmp(name, PROJECTIONS) == 0) {
		safetensors_body_note_wrong_type(
		    &unpacking->body, name,
		    "a tensor is expected, named as the field, found text in __metadata__");
		return;
	}
	json_t *value = safetensors_body_field(&unpacking->body, name);
	if (value != NULL)
		put(unpacking, name, value);
}

/* ---- tensors */

static void take_mask(struct safetensors_body *body, const attn_stored_tensor *stored,
                      struct mask_tensor *out)
{
	const char *pointer = attention_rules[PLACE_MASK].pointer;
	size_t count;
	if (stored->dtype != ATTN_BOOL) {
		problem_note(body->problem, PROBLEM_WRONG_TYPE, pointer,
		             "a tensor of BOOL is expected, found %s; numbers to add to the scores go in "
		             "`bias`",
		             attn_dtype_name(stored->dtype));
		return;
	}
	if (!safetensors_body_check_shape(body, stored, pointer, 1, TENSOR_MAX_RANK, &count) ||
	    !binary_check_booleans(stored->data, count, pointer, body->problem))
		return;
	uint8_t *data = malloc(count + 1);
	if (data == NULL) {
		problem_note(body->problem, PROBLEM_MEMORY, "", "the system refused memory for the mask");
		return;
	}
	memcpy(data, stored->data, count);
	*out = (struct mask_tensor){.data = data, .rank = stored->rank, .count = count};
	memcpy(out->dims, stored->shape, stored->rank * sizeof(*out->dims));
}

/* One number, or one a head; finite, as in JSON. */
static void take_sink(struct unpacking *unpacking, const attn_stored_tensor *stored)
{
	struct safetensors_body *body = &unpacking->body;
	struct tensor *sink = &unpacking->request->sink;
	if (json_object_get(body->envelope, SINK) != NULL) {
		problem_note(body->problem, PROBLEM_DUPLICATE_KEY, "/" SINK,
		             "the sink is given twice, as a tensor and in __metadata__");
		return;
	}
	safetensors_body_floats(body, stored, "/" SINK, 0, 1, sink);
	for (size_t i = 0; i < sink->count; i++) {
		if (!isfinite(sink->data[i]))
			problem_note(body->problem, PROBLEM_NOT_FINITE, "/" SINK,
			             "a sink is a finite number, number %zu is not", i);
	}
}

static void take_place(struct unpacking *unpacking, const attn_stored_tensor *stored,
                       enum attention_place place)
{
	put(unpacking, stored->name, json_integer(place));
	if (place == PLACE_MASK)
		take_mask(&unpacking->body, stored, &unpacking->request->mask);
	else
		safetensors_body_floats(&unpacking->body, stored, attention_rules[place].pointer, 1,
		                        TENSOR_MAX_RANK, attention_tensors_at(unpacking->request, place));
}

/* Names that no field has are left to the reader of the envelope to complain about. */
static void take_tensor(struct unpacking *unpacking, const attn_stored_tensor *stored)
{
	enum attention_place place = find_place(stored->name);
	if (place < (unpacking->model ? ATTENTION_MODEL_PLACES : ATTENTION_PLACES))
		take_place(unpacking, stored, place);
	else if (strcmp(stored->name, SINK) == 0)
		take_sink(unpacking, stored);
	else if (safetensors_body_knows(&unpacking->body, stored->name))
		safetensors_body_note_wrong_type(
		    &unpacking->body, stored->name,
		    "this field is not a tensor; it stands in __metadata__ as JSON text "
		    "(projections: tensors "
		    "named projections.query and so on)");
	else
		put(unpacking, stored->name, json_null());
}

/* ---- the whole */

static void unpack(struct unpacking *unpacking, const struct attention_limits *limits)
{
	struct safetensors_body *body = &unpacking->body;
	for (const char *name = NULL; (name = safetensors_body_next_field(body, name)) != NULL;)
		take_field(unpacking, name);
	for (size_t i = 0; i < attn_safetensors_count(body->file); i++)
		take_tensor(unpacking, attn_safetensors_at(body->file, i));
	attention_tensors_note_lengths(unpacking->request,
	                               attention_tensors_query(body->envelope, body->problem),
	                               limits->sequence_length, body->problem);
}

json_t *attention_safetensors_read(const char *body, size_t length, bool model,
                                   const struct attention_limits *limits, struct attention_request *request,
                                   struct problem *problem)
{
	struct unpacking unpacking = {.model = model, .request = request};
	if (!safetensors_body_open(&unpacking.body, body, length, limits->elements,
	                           attention_fields_of(model), problem))
		return NULL;
	unpack(&unpacking, limits);
	return safetensors_body_close(&unpacking.body);
}
