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

/* Keys of nested objects and places in lists are written with dots. Below, a key that is null is missing;
 * ATTN_CONFIG when the value is of another kind. */

bool attn_config_has(const attn_config *config, const char *key);
/* An integer of at least `least`, that must be there. */
attn_status attn_config_size(const attn_config *config, const char *key, size_t least, size_t *out,
                             attn_error *err);
/* A number, that must be there; it is finite. */
attn_status attn_config_number(const attn_config *config, const char *key, double *out, attn_error *err);
/* A boolean, or fallback where the key is missing. */
attn_status attn_config_flag(const attn_config *config, const char *key, bool fallback, bool *out,
                             attn_error *err);
/* A string, NULL where the key is missing; it lives as long as config. */
attn_status attn_config_text(const attn_config *config, const char *key, const char **out, attn_error *err);
/* The string at that index of a list, which must be there; NULL where the key is missing. */
attn_status attn_config_list_text(const attn_config *config, const char *key, size_t index, const char **out,
                                  attn_error *err);

#endif
