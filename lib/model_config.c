#include "model_config.h"

#include "error.h"
#include "model_json.h"
#include "model_path.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct attn_config {
	json_t *root;
};

static attn_status model_type_check(const attn_config *config, attn_error *err)
{
	if (attn_config_model_type(config))
		return ATTN_OK;
	return attn_error_set(err, ATTN_CONFIG, "config.json: model_type is missing or not a string");
}

attn_status attn_config_open(const char *directory, attn_config **out, attn_error *err)
{
	attn_status status = ATTN_MEMORY;
	char *path = attn_model_path(directory, "config.json");
	attn_config *config = calloc(1, sizeof(*config));
	if (!path || !config) {
		attn_error_set(err, ATTN_MEMORY, "out of memory");
		goto done;
	}
	status = attn_model_json_load(path, &config->root, err);
	if (status == ATTN_OK)
		status = model_type_check(config, err);
done:
	free(path);
	if (status != ATTN_OK) {
		attn_config_free(config);
		return status;
	}
	*out = config;
	return ATTN_OK;
}

void attn_config_free(attn_config *config)
{
	if (!config)
		return;
	json_decref(config->root);
	free(config);
}

const char *attn_config_model_type(const attn_config *config)
{
	return json_string_value(json_object_get(config->root, "model_type"));
}

/* The member of an object or the element of a list that the first length bytes of name say; NULL: none. */
static const json_t *part_find(const json_t *whole, const char *name, size_t length)
{
	if (!json_is_array(whole))
		return json_object_getn(whole, name, length);
	return isdigit((unsigned char)*name) ? json_array_get(whole, strtoul(name, NULL, 10)) : NULL;
}

/* The value of a key, a dot going into an object or a list; NULL when it is missing or null. */
static const json_t *value_find(const attn_config *config, const char *key)
{
	const json_t *value = config->root;
	for (const char *dot = strchr(key, '.'); dot; dot = strchr(key, '.')) {
		value = part_find(value, key, (size_t)(dot - key));
		key = dot + 1;
	}
	value = part_find(value, key, strlen(key));
	return json_is_null(value) ? NULL : value;
}

bool attn_config_has(const attn_config *config, const char *key)
{
	return value_find(config, key) != NULL;
}

attn_status attn_config_size(const attn_config *config, const char *key, size_t least, size_t *out,
                             attn_error *err)
{
	const json_t *value = value_find(config, key);
	json_int_t number = json_integer_value(value);
	if (!value)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is missing", key);
	if (!json_is_integer(value))
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not an integer", key);
	if (number < 0 || (uintmax_t)number > SIZE_MAX || (size_t)number < least)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is %lld, must be at least %zu", key,
		                      (long long)number, least);
	*out = (size_t)number;
	return ATTN_OK;
}

attn_status attn_config_number(const attn_config *config, const char *key, double *out, attn_error *err)
{
	const json_t *value = value_find(config, key);
	if (!value)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is missing", key);
	if (!json_is_number(value))
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not a number", key);
	*out = json_number_value(value);
	return ATTN_OK;
}

attn_status attn_config_flag(const attn_config *config, const char *key, bool fallback, bool *out,
                             attn_error *err)
{
	const json_t *value = value_find(config, key);
	*out = fallback;
	if (!value)
		return ATTN_OK;
	if (!json_is_boolean(value))
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not true or false", key);
	*out = json_is_true(value);
	return ATTN_OK;
}

attn_status attn_config_text(const attn_config *config, const char *key, const char **out, attn_error *err)
{
	const json_t *value = value_find(config, key);
	*out = json_string_value(value);
	if (value && !*out)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not a string", key);
	return ATTN_OK;
}

attn_status attn_config_list_text(const attn_config *config, const char *key, size_t index, const char **out,
                                  attn_error *err)
{
	const json_t *list = value_find(config, key);
	*out = NULL;
	if (!list)
		return ATTN_OK;
	*out = json_string_value(json_array_get(list, index));
	if (!*out)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s has no string at index %zu", key,
		                      index);
	return ATTN_OK;
}
