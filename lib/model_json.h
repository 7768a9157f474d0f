/*
 * model_json.h - JSON files of a model directory.
 */
#ifndef ATTN_MODEL_JSON_H
#define ATTN_MODEL_JSON_H

#include "attn.h"

#include <jansson.h>

/* Reads a regular file of at most 64 MiB that holds one JSON object without duplicate keys; the caller
 * decrefs it. ATTN_FILE, ATTN_FORMAT; the message names the path. */
attn_status attn_model_json_load(const char *path, json_t **out, attn_error *err);

#endif
