#include "loader.h"

#include <math.h>
#include <string.h>

#include "error.h"

#define CONFIG_FILE "config.json: "

/* Keeps the first failure. */
static void fail_with(attn_loader *load, attn_status status)
{
	if (load->status == ATTN_OK)
		load->status = status;
}

bool attn_load_has(const attn_loader *load, const char *key)
{
	return attn_config_has(load->config, key);
}

size_t attn_load_size(attn_loader *load, const char *key)
{
	size_t size = 1;
	if (attn_load_ok(load))
		fail_with(load, attn_config_size(load->config, key, 1, &size, load->err));
	return size;
}

size_t attn_load_size_or(attn_loader *load, const char *key, size_t fallback)
{
	return attn_load_has(load, key) ? attn_load_size(load, key) : fallback;
}

size_t attn_load_count(attn_loader *load, const char *key, size_t fallback)
{
	size_t count = fallback;
	if (attn_load_ok(load) && attn_load_has(load, key))
		fail_with(load, attn_config_size(load->config, key, 0, &count, load->err));
	return count;
}

size_t attn_load_layers(attn_loader *load, const char *key)
{
	size_t layers = attn_load_size(load, key), tensors = attn_weights_count(load->weights);
	if (layers <= tensors)
		return layers;
	attn_load_fail(load, ATTN_CONFIG, CONFIG_FILE "%s is %zu, but there are only %zu tensors", key,
	               layers, tensors);
	return 1;
}

double attn_load_number(attn_loader *load, const char *key, double fallback)
{
	double number = fallback;
	if (!attn_load_ok(load) || !attn_load_has(load, key))
		return fallback;
	fail_with(load, attn_config_number(load->config, key, &number, load->err));
	if (attn_load_ok(load) && !(number > 0 && isfinite(number)))
		attn_load_fail(load, ATTN_CONFIG, CONFIG_FILE "%s is %g, must be over 0", key, number);
	return number;
}

bool attn_load_flag(attn_loader *load, const char *key, bool fallback)
{
	bool flag = fallback;
	if (attn_load_ok(load))
		fail_with(load, attn_config_flag(load->config, key, fallback, &flag, load->err));
	return flag;
}

/* The text of a key, NULL where it is missing or the load has failed. */
static const char *text_of(attn_loader *load, const char *key)
{
	const char *text = NULL;
	if (attn_load_ok(load))
		fail_with(load, attn_config_text(load->config, key, &text, load->err));
	return text;
}

/* The key has a value that is not one of those known. */
static void fail_unknown(attn_loader *load, const char *key, const char *value, const char *known)
{
	attn_load_fail(load, ATTN_UNSUPPORTED, CONFIG_FILE "%s \"%.*s\" is not supported, only %s", key,
	               attn_error_quote(value), value, known);
}

#define CHOICES_TEXT 160

/* "relu, gelu, silu" as far as they fit. */
static void choices_text(char text[CHOICES_TEXT], const char *const *choices)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; choices[i]; i++) {
		size_t length = strlen(choices[i]), comma = i > 0 ? 2 : 0;
		if (used + comma + length >= CHOICES_TEXT)
			return;
		memcpy(text + used, ", ", comma);
		memcpy(text + used + comma, choices[i], length + 1);
		used += comma + length;
	}
}

size_t attn_load_choice(attn_loader *load, const char *key, const char *const *choices, size_t fallback)
{
	const char *text = text_of(load, key);
	if (!text)
		return fallback;
	for (size_t i = 0; choices[i]; i++)
		if (strcmp(choices[i], text) == 0)
			return i;
	char known[CHOICES_TEXT];
	choices_text(known, choices);
	fail_unknown(load, key, text, known);
	return fallback;
}

enum attn_activation attn_load_activation(attn_loader *load, const char *key, enum attn_activation fallback)
{
	static const char *const names[] = {"relu",      "gelu",       "gelu_new", "gelu_pytorch_tanh",
	                                    "gelu_fast", "quick_gelu", "silu",     "swish",
	                                    "tanh",      NULL};
	static const enum attn_activation activations[] = {
	    ATTN_ACTIVATION_RELU,      ATTN_ACTIVATION_GELU,      ATTN_ACTIVATION_GELU_TANH,
	    ATTN_ACTIVATION_GELU_TANH, ATTN_ACTIVATION_GELU_TANH, ATTN_ACTIVATION_QUICK_GELU,
	    ATTN_ACTIVATION_SILU,      ATTN_ACTIVATION_SILU,      ATTN_ACTIVATION_TANH,
	};
	if (!attn_load_has(load, key))
		return fallback;
	return activations[attn_load_choice(load, key, names, 0)];
}

void attn_load_only_flag(attn_loader *load, const char *key, bool value)
{
	if (attn_load_flag(load, key, value) != value)
		attn_load_fail(load, ATTN_UNSUPPORTED, CONFIG_FILE "%s %s is not supported, only %s", key,
		               value ? "false" : "true", value ? "true" : "false");
}

void attn_load_only_text(attn_loader *load, const char *key, const char *value)
{
	const char *text = text_of(load, key);
	if (text && strcmp(text, value) != 0)
		fail_unknown(load, key, text, value);
}

void attn_load_only_size(attn_loader *load, const char *key, size_t value)
{
	size_t size = attn_load_size_or(load, key, value);
	if (size != value)
		attn_load_fail(load, ATTN_UNSUPPORTED, CONFIG_FILE "%s %zu is not supported, only %zu", key,
		               size, value);
}

void attn_load_no_key(attn_loader *load, const char *key)
{
	if (attn_load_has(load, key))
		attn_load_fail(load, ATTN_UNSUPPORTED, CONFIG_FILE "%s is not supported", key);
}

const char *attn_load_list_text(attn_loader *load, const char *key, size_t index)
{
	const char *text = NULL;
	if (attn_load_ok(load))
		fail_with(load, attn_config_list_text(load->config, key, index, &text, load->err));
	return text;
}

size_t attn_load_product(attn_loader *load, size_t a, size_t b, const char *what)
{
	size_t product = 1;
	if (!attn_size_mul(a, b, &product)) {
		attn_load_fail(load, ATTN_CONFIG, CONFIG_FILE "%s, %zu times %zu, is too large", what, a, b);
		return 1;
	}
	return product;
}

size_t attn_load_head_width(attn_loader *load, size_t width, size_t heads, const char *heads_key)
{
	if (width % heads == 0)
		return width / heads;
	attn_load_fail(load, ATTN_CONFIG, CONFIG_FILE "%s %zu does not divide the width %zu", heads_key,
	               heads, width);
	return 1;
}
