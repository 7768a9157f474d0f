/*
 * json_envelope.h - what json_scan leaves of a text, as a tree. One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_ENVELOPE_H
#define ATTND_CODEC_JSON_ENVELOPE_H

#include "codec/json_scan.h"

#include <jansson.h>

/* What is not tensors: bytes of text that the JSON library may be given. */
#define JSON_ENVELOPE_MAX ((size_t)1 << 20)

/* The scan's envelope, of any type, which the caller frees; NULL with DUPLICATE_KEY (and its place) or MEMORY
 * set. */
json_t *json_envelope_read(const struct json_scan *scan, struct problem *problem);

#endif
