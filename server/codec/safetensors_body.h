/*
 * safetensors_body.h - the safetensors body of a request on its way to what a JSON body comes to: tensors,
 * and an envelope of the rest.
 *
 * What is not a tensor stands in __metadata__ as JSON text by the name of its field, where a bare word is a
 * string; its key `format`, which libraries write, says nothing. Problems are noted, so that the foremost is
 * told; the pointers are those of a JSON body. One thread at a time.
 */
#ifndef ATTND_CODEC_SAFETENSORS_BODY_H
#define ATTND_CODEC_SAFETENSORS_BODY_H

#include "attn.h"
#include "codec/json_body.h"
#include "codec/tensor.h"
#include "codec/tensor_room.h"

#include <jansson.h>

/* Bytes of a body's header, names and fields, at most. */
#define SAFETENSORS_BODY_HEADER_MAX ((size_t)1 << 20)

struct safetensors_body {
	attn_safetensors *file;
	struct tensor_room room;
	json_t *envelope;
	body_field_known *known;
	struct problem *problem;
};

/* Opens bytes that must outlive it, for at most that many elements, with an empty envelope. false with
 * BAD_SAFETENSORS, BODY_TOO_LARGE for the header, or MEMORY set; nothing is to be closed then. */
bool safetensors_body_open(struct safetensors_body *body, const char *bytes, size_t length, size_t elements,
                           body_field_known *known, struct problem *problem);
/* The envelope, for the caller to free; NULL when a problem is noted. */
json_t *safetensors_body_close(struct safetensors_body *body);

/* The key of __metadata__ after one, that says something of the request; as
 * attn_safetensors_metadata_next. */
const char *safetensors_body_next_field(const struct safetensors_body *body, const char *name);
/* The value that the text of a field of __metadata__ says, null for a field that is not known (for the reader
 * of the envelope to refuse), or NULL with a problem noted. */
json_t *safetensors_body_field(struct safetensors_body *body, const char *name);
/* Puts the value, which is taken over, into the envelope, or an object in it. */
void safetensors_body_put(struct safetensors_body *body, json_t *object, const char *name, json_t *value);

/* Whether the name is one of a field. */
bool safetensors_body_knows(const struct safetensors_body *body, const char *name);
void safetensors_body_note_wrong_type(struct safetensors_body *body, const char *name, const char *detail);

/* Whether the ranks and the room allow the tensor, which takes *count elements of it. */
bool safetensors_body_check_shape(struct safetensors_body *body, const attn_stored_tensor *stored,
                                  const char *pointer, size_t least_rank, size_t most_rank, size_t *count);
/* Numbers of any float type as float32 into a tensor that is empty, else left as it is. */
void safetensors_body_floats(struct safetensors_body *body, const attn_stored_tensor *stored,
                             const char *pointer, size_t least_rank, size_t most_rank, struct tensor *out);

#endif
