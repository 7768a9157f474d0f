#include "model_config.h"

#include "error.h"
#include "model_json.h"
#include "model_path.h"

#include <stdlib.h>

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

attn_status attn_config_size(const attn_config *config, const char *key, size_t *out, attn_error *err)
{
	const json_t *value = json_object_get(config->root, key);
	json_int_t number = json_integer_value(value);
	if (!value)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is missing", key);
	if (!json_is_integer(value))
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not an integer", key);
	if (number < 1 || (uintmax_t)number > SIZE_MAX)
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is %lld, must be at least 1", key,
		                      (long long)number);
	*out = (size_t)number;
	return ATTN_OK;
}

attn_status attn_config_flag(const attn_config *config, const char *key, bool fallback, bool *out,
                             attn_error *err)
{
	const json_t *value = json_object_get(config->root, key);
	*out = fallback;
	if (!value || json_is_null(value))
		return ATTN_OK;
	if (!json_is_boolean(value))
		return attn_error_set(err, ATTN_CONFIG, "config.json: %s is not true or false", key);
	*out = json_is_true(value);
	return ATTN_OK;
}
