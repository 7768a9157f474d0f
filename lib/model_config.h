/*
 * model_config.h - config.json of a model directory, read key by key.
 *
 * Every getter's message names the key, what was found or that it is missing, and what it may be.
 */
#ifndef ATTN_MODEL_CONFIG_H
#define ATTN_MODEL_CONFIG_H

#include "attn.h"

typedef struct attn_config attn_config;

/* Reads <directory>/config.json; model_type must be a string. ATTN_FILE, ATTN_FORMAT, ATTN_CONFIG,
 * ATTN_MEMORY. */
attn_status attn_config_open(const char *directory, attn_config **out, attn_error *err);
void attn_config_free(attn_config *config);

const char *attn_config_model_type(const attn_config *config);

/* An integer of at least 1 that must be there: ATTN_CONFIG otherwise. */
attn_status attn_config_size(const attn_config *config, const char *key, size_t *out, attn_error *err);
/* A boolean, or fallback where the key is missing or null: ATTN_CONFIG for anything else. */
attn_status attn_config_flag(const attn_config *config, const char *key, bool fallback, bool *out,
                             attn_error *err);

#endif
