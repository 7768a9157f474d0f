#include "codec/attention_readers.h"

#include <stdlib.h>

static int64_t nearer_than_far(int64_t value)
{
	return value > ATTENTION_FAR ? ATTENTION_FAR : value < -ATTENTION_FAR ? -ATTENTION_FAR : value;
}

bool attention_read_causal(const json_t *value, const char *pointer, struct reading *reading)
{
	static const char *const words[] = {"top_left", "bottom_right"};
	struct attention_fields *out = reading->out;
	out->has_causal = true;
	if (json_is_boolean(value)) {
		out->causal = json_is_true(value) ? ATTN_CAUSAL_BOTTOM_RIGHT : ATTN_CAUSAL_NONE;
		return true;
	}
	if (json_is_string(value)) {
		size_t word;
		if (!json_value_word(value, pointer, words, 2, &word, reading->problem))
			return false;
		out->causal = word == 0 ? ATTN_CAUSAL_TOP_LEFT : ATTN_CAUSAL_BOTTOM_RIGHT;
		return true;
	}
	if (!json_is_number(value) && !json_is_array(value))
		return problem_set(
		    reading->problem, PROBLEM_WRONG_TYPE, pointer,
		    "false, true, \"top_left\", \"bottom_right\", an integer offset or a list of "
		    "them is expected, found %s",
		    json_value_kind(value));
	out->causal = ATTN_CAUSAL_OFFSET;
	out->causal_is_list = json_is_array(value);
	if (!json_value_integers(value, pointer, INT64_MIN, INT64_MAX, &out->causal_offsets,
	                         reading->problem))
		return false;
	for (size_t i = 0; i < out->causal_offsets.count; i++)
		out->causal_offsets.values[i] = nearer_than_far(out->causal_offsets.values[i]);
	return true;
}

bool attention_read_key_lengths(const json_t *value, const char *pointer, struct reading *reading)
{
	reading->out->key_lengths_is_list = json_is_array(value);
	return json_value_integers(value, pointer, 0, INT64_MAX, &reading->out->key_lengths,
	                           reading->problem);
}

bool attention_read_window(const json_t *value, const char *pointer, struct reading *reading)
{
	struct integer_list window = {0};
	bool read = false;
	if (!json_is_array(value) || json_array_size(value) != 2) {
		problem_set(reading->problem, json_is_array(value) ? PROBLEM_BAD_VALUE : PROBLEM_WRONG_TYPE,
		            pointer, "a list of two integers, [left, right], is expected");
		goto done;
	}
	if (!json_value_integers(value, pointer, -1, INT64_MAX, &window, reading->problem))
		goto done;
	reading->out->has_window = true;
	reading->out->window_left = nearer_than_far(window.values[0]);
	reading->out->window_right = nearer_than_far(window.values[1]);
	read = true;
done:
	free(window.values);
	return read;
}
