/*
 * json_body.h - the JSON body of a request: its tensors into a scan, the rest as an envelope, with the
 * problems told in the order of API errors.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_JSON_BODY_H
#define ATTND_CODEC_JSON_BODY_H

#include "codec/json_scan.h"

#include <jansson.h>

/* UNKNOWN_FIELD, with the nearest that is, for a name that is not a field of a route; else true. */
typedef bool body_field_known(const char *name, struct problem *problem);

/* Walks a body whose tensors may stand at the places, with at most `elements` numbers in them. The envelope,
 * an object for the caller to free, or NULL with the problem set; the problem may hold notes of the walk even
 * so. scan is always set, and cleared by the caller. executor: as json_scan. */
json_t *json_body_read(const char *body, size_t length, const struct json_rule *places, size_t place_count,
                       size_t elements, body_field_known *known, attn_executor *executor,
                       struct json_scan *scan, struct problem *problem);

#endif
