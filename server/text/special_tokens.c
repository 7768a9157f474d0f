#include "text/special_tokens.h"

#include "text/load_config.h"

#include <stdlib.h>
#include <string.h>

static const char *const roles[] = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                    "pad_token", "cls_token", "mask_token", NULL};

/* What stands for a role: a text, or an object with "content". */
static const json_t *entry(const struct special_tokens *tokens, const char *role)
{
	const json_t *places[] = {tokens->config, tokens->map, tokens->defaults};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const json_t *found = json_object_get(places[i], role);
		if (json_is_string(found) || json_is_string(json_object_get(found, "content")))
			return found;
	}
	return NULL;
}

static const char *content(const json_t *found)
{
	return json_is_string(found) ? json_string_value(found)
	                             : json_string_value(json_object_get(found, "content"));
}

const char *special_tokens_text(const struct special_tokens *tokens, const char *role)
{
	return content(entry(tokens, role));
}

static bool is_listed(const json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *there = json_string_value(json_object_get(json_array_get(list, i), "content"));
		if (strcmp(there, text) == 0)
			return true;
	}
	return false;
}

/* Adds a token, unless it is there already or not in the vocabulary. */
static bool add(json_t *list, const struct special_tokens *tokens, const json_t *found, bool left)
{
	const char *text = content(found);
	const json_t *id = text != NULL ? json_object_get(tokens->vocabulary, text) : NULL;
	if (id == NULL || is_listed(list, text))
		return true;
	json_t *token = json_pack("{s:s,s:O,s:b,s:b,s:b}", "content", text, "id", id, "special", 1,
	                          "normalized", 0, "lstrip", left);
	static const char *const flags[] = {"lstrip", "rstrip", "single_word", "normalized", NULL};
	for (size_t i = 0; token != NULL && flags[i] != NULL; i++) {
		json_t *flag = json_object_get(found, flags[i]);
		if (flag != NULL && json_object_set(token, flags[i], flag) != 0) {
			json_decref(token);
			token = NULL;
		}
	}
	return json_array_append_new(list, token) == 0;
}

static bool add_roles(json_t *list, const struct special_tokens *tokens)
{
	bool good = true;
	for (size_t i = 0; roles[i] != NULL && good; i++) {
		const json_t *found = entry(tokens, roles[i]);
		/* where only the class says so, a mask takes in the blank before it */
		bool left = strcmp(roles[i], "mask_token") == 0 && tokens->defaults != NULL &&
		            found == json_object_get(tokens->defaults, "mask_token") &&
		            json_is_true(json_object_get(tokens->defaults, "mask_lstrip"));
		good = add(list, tokens, found, left);
	}
	const json_t *more = json_object_get(tokens->config, "additional_special_tokens");
	for (size_t i = 0; i < json_array_size(more) && good; i++)
		good = add(list, tokens, json_array_get(more, i), false);
	return good;
}

static int compare_id(const void *left, const void *right)
{
	json_int_t a = json_integer_value(json_object_get(*(json_t *const *)left, "id"));
	json_int_t b = json_integer_value(json_object_get(*(json_t *const *)right, "id"));
	return (a > b) - (a < b);
}

/* A token of added_tokens_decoder with its id; NULL: no memory. */
static json_t *with_id(const char *id, json_t *value)
{
	json_t *token = json_object(); /* json_copy would go on where memory is refused */
	bool good = token != NULL && json_object_update(token, value) == 0 &&
	            json_object_set_new(token, "id", json_integer(strtoll(id, NULL, 10))) == 0;
	if (good)
		return token;
	json_decref(token);
	return NULL;
}

/* The tokens of added_tokens_decoder, an object of id to token, by id. */
static attn_status add_decoder(json_t *list, json_t *decoder, attn_error *err)
{
	const char *key;
	json_t *value;
	size_t count = 0;
	attn_status status = ATTN_OK;
	json_t **tokens = calloc(json_object_size(decoder) + 1, sizeof(json_t *));
	if (tokens == NULL)
		return load_no_memory(err);
	json_object_foreach(decoder, key, value)
	{
		if (!json_is_object(value))
			status = load_failed(err, ATTN_CONFIG, "added_tokens_decoder: %s is no token", key);
		else if ((tokens[count] = with_id(key, value)) == NULL)
			status = load_no_memory(err);
		if (status != ATTN_OK)
			break;
		count++;
	}
	if (count > 0)
		qsort(tokens, count, sizeof(json_t *), compare_id);
	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(list, tokens[i]) != 0 && status == ATTN_OK)
			status = load_no_memory(err);
	}
	free(tokens);
	return status;
}

attn_status special_tokens_list(const struct special_tokens *tokens, json_t **out, attn_error *err)
{
	json_t *decoder = json_object_get(tokens->config, "added_tokens_decoder");
	json_t *list = json_array();
	attn_status status = list != NULL ? ATTN_OK : load_no_memory(err);
	if (status == ATTN_OK && json_object_size(decoder) > 0)
		status = add_decoder(list, decoder, err);
	else if (status == ATTN_OK && !add_roles(list, tokens))
		status = load_no_memory(err);
	if (status != ATTN_OK) {
		json_decref(list);
		return status;
	}
	*out = list;
	return ATTN_OK;
}
