#include "model_files.h"
#include "small_models.h"
#include "suite.h"

#include <jansson.h>
#include <string.h>

/* Whatever config.json says, or the tensors are, a model is loaded as it is meant or refused in words that
 * name the key or the tensor. */

/* A copy of a folder of tests/models, whose weights are one file. */
struct copy {
	json_t *config;
	char *weights;
	size_t weights_size;
};

static void copy_open(struct copy *copy, const char *name)
{
	char path[160];
	json_error_t error;
	snprintf(path, sizeof(path), "tests/models/%s/config.json", name);
	copy->config = json_load_file(path, 0, &error);
	ck_assert_msg(copy->config, "%s: %s", path, error.text);
	snprintf(path, sizeof(path), "tests/models/%s/model.safetensors", name);
	copy->weights = file_read(path, &copy->weights_size);
}

static void copy_close(struct copy *copy)
{
	json_decref(copy->config);
	free(copy->weights);
}

/* A folder of the copy. */
static char *copy_write(const struct copy *copy)
{
	char *folder = folder_make();
	char *text = json_dumps(copy->config, 0);
	folder_write_text(folder, "config.json", text);
	folder_write(folder, "model.safetensors", copy->weights, copy->weights_size);
	free(text);
	return folder;
}

/* Opens the model of the copy; the status, with err filled. */
static attn_status copy_try(const struct copy *copy, attn_error *err)
{
	char *folder = copy_write(copy);
	attn_model *model = NULL;
	*err = (attn_error){ATTN_OK, ""};
	const attn_status status = attn_model_open(folder, plain_kernels(), &model, err);
	ck_assert((status == ATTN_OK) == (model != NULL));
	attn_model_free(model);
	folder_remove(folder);
	return status;
}

/* ---- config.json */

/* Sets a key, a dot going into an object, to a JSON value; NULL takes it away. */
static void key_set(json_t *config, const char *key, const char *value)
{
	const char *dot = strchr(key, '.');
	json_t *object = config;
	if (dot) {
		char section[64];
		snprintf(section, sizeof(section), "%.*s", (int)(dot - key), key);
		object = json_object_get(config, section);
		if (!json_is_object(object)) {
			object = json_object();
			json_object_set_new(config, section, object);
		}
		key = dot + 1;
	}
	if (value)
		ck_assert_int_eq(json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL)),
		                 0);
	else
		json_object_del(object, key);
}

/* With that value of the key, the model is refused with that status, in words that hold the key and what. */
static void key_refused(const char *name, const char *key, const char *value, attn_status wanted,
                        const char *what)
{
	struct copy copy;
	attn_error err;
	copy_open(&copy, name);
	key_set(copy.config, key, value);
	const attn_status status = copy_try(&copy, &err);
	ck_assert_msg(status == wanted, "%s: %s %s: %s \"%s\"", name, key, value ? value : "missing",
	              attn_status_text(status), err.message);
	ck_assert_msg(strstr(err.message, key) && strstr(err.message, what), "%s: %s %s: \"%s\"", name, key,
	              value ? value : "missing", err.message);
	copy_close(&copy);
}

struct rule {
	const char *name, *key, *value, *what;
};

static void each_refused(const struct rule *rules, size_t count, attn_status wanted)
{
	for (size_t i = 0; i < count; i++)
		key_refused(rules[i].name, rules[i].key, rules[i].value, wanted, rules[i].what);
}

START_TEST(a_key_that_changes_what_is_computed_is_refused_with_its_value)
{
	static const struct rule rules[] = {
	    {"bert-plain", "hidden_act", "\"mish\"", "\"mish\""},
	    {"bert-plain", "position_embedding_type", "\"relative_key\"", "\"relative_key\""},
	    {"bert-plain", "is_decoder", "true", "true"},
	    {"bert-plain", "add_cross_attention", "true", "true"},
	    {"gpt2-head", "activation_function", "\"laplace\"", "\"laplace\""},
	    {"gpt2-head", "scale_attn_weights", "false", "false"},
	    {"gpt2-head", "scale_attn_by_inverse_layer_idx", "true", "true"},
	    {"gpt2-head", "add_cross_attention", "true", "true"},
	    {"llama-grouped", "hidden_act", "\"xielu\"", "\"xielu\""},
	    {"llama-grouped", "rope_parameters.rope_type", "\"llama3\"", "\"llama3\""},
	    {"llama-grouped", "rope_scaling.rope_type", "\"dynamic\"", "\"dynamic\""},
	    {"llama-grouped", "rope_scaling.type", "\"linear\"", "\"linear\""},
	    {"llama-grouped", "rope_scaling", "{\"factor\":2}", "rope_type"},
	    {"llama-grouped", "partial_rotary_factor", "0.5", "only 1"},
	    {"qwen3-head-norms", "rope_scaling.rope_type", "\"yarn\"", "\"yarn\""},
	    {"qwen2-biases", "layer_types", "[\"chunked_attention\",\"full_attention\",\"full_attention\"]",
	     "\"chunked_attention\""},
	    {"t5-relu", "feed_forward_proj", "\"geglu\"", "\"geglu\""},
	    {"t5-relu", "is_encoder_decoder", "false", "false"},
	    {"bart-scaled", "activation_function", "\"mish\"", "\"mish\""},
	    {"bart-scaled", "normalize_before", "true", "true"},
	    {"marian-swish", "is_encoder_decoder", "false", "false"},
	    {"clip-text", "hidden_act", "\"mish\"", "\"mish\""},
	    {"torch-encoder-pre-norm", "activation", "\"mish\"", "\"mish\""},
	};
	each_refused(rules, sizeof(rules) / sizeof(rules[0]), ATTN_UNSUPPORTED);
}
END_TEST

START_TEST(a_key_that_is_missing_or_cannot_be_is_named)
{
	static const struct rule rules[] = {
	    {"bert-plain", "hidden_size", NULL, "missing"},
	    {"bert-plain", "hidden_size", "\"24\"", "not an integer"},
	    {"bert-plain", "hidden_size", "24.5", "not an integer"},
	    {"bert-plain", "hidden_size", "0", "at least 1"},
	    {"bert-plain", "hidden_size", "-24", "-24"},
	    {"bert-plain", "num_attention_heads", "5", "does not divide"},
	    {"bert-plain", "num_hidden_layers", "1000000000000000", "tensors"},
	    {"bert-plain", "layer_norm_eps", "\"small\"", "not a number"},
	    {"bert-plain", "layer_norm_eps", "-1e-5", "over 0"},
	    {"bert-plain", "hidden_act", "7", "not a string"},
	    {"bert-plain", "is_decoder", "\"no\"", "not true or false"},
	    {"gpt2-head", "n_embd", NULL, "missing"},
	    {"gpt2-head", "n_layer", "9223372036854775807", "tensors"},
	    {"llama-grouped", "num_hidden_layers", "0", "at least 1"},
	    {"llama-grouped", "rope_parameters.rope_theta", NULL, "missing"},
	    {"llama-grouped", "rope_parameters.rope_theta", "0", "over 0"},
	    {"llama-grouped", "rope_parameters.rope_theta", "[1]", "not a number"},
	    {"qwen2-biases", "layer_types", "[\"full_attention\"]", "index 1"},
	};
	each_refused(rules, sizeof(rules) / sizeof(rules[0]), ATTN_CONFIG);
}
END_TEST

START_TEST(heads_that_do_not_divide_or_turn_are_refused)
{
	struct copy copy;
	attn_error err;
	copy_open(&copy, "llama-grouped");
	key_set(copy.config, "num_key_value_heads", "3");
	ck_assert_int_eq(copy_try(&copy, &err), ATTN_CONFIG);
	ck_assert_msg(strstr(err.message, "do not divide"), "%s", err.message);
	copy_close(&copy);
	copy_open(&copy, "llama-grouped");
	key_set(copy.config, "head_dim", "7");
	ck_assert_int_eq(copy_try(&copy, &err), ATTN_CONFIG);
	ck_assert_msg(strstr(err.message, "odd"), "%s", err.message);
	copy_close(&copy);
}
END_TEST

/* Rotary positions are bounded by the key alone; some families read the vocabulary off the tensor. */
static bool is_size_of_tensor(const char *name, const char *key)
{
	static const char *const others[][2] = {{"llama-grouped", "max_position_embeddings"},
	                                        {"mistral-window", "max_position_embeddings"},
	                                        {"qwen3-head-norms", "max_position_embeddings"},
	                                        {"bart-scaled", "vocab_size"},
	                                        {"marian-swish", "vocab_size"},
	                                        {"marian-two-vocabularies", "vocab_size"}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i][0]) == 0 && strcmp(key, others[i][1]) == 0)
			return false;
	return true;
}

/* Configurations of Llama may carry the keys, which mean nothing there. */
START_TEST(a_window_is_of_the_families_that_have_one)
{
	static const char *const names[] = {"llama-grouped", "mistral-window"};
	for (size_t i = 0; i < 2; i++) {
		struct copy copy;
		copy_open(&copy, names[i]);
		key_set(copy.config, "use_sliding_window", "true");
		key_set(copy.config, "sliding_window", "3");
		char *folder = copy_write(&copy);
		attn_error err;
		attn_model *model = NULL;
		ck_assert_int_eq(attn_model_open(folder, plain_kernels(), &model, &err), ATTN_OK);
		ck_assert_int_eq(attn_model_options(model, 0, ATTN_SELF).window_left, i == 0 ? -1 : 2);
		attn_model_free(model);
		folder_remove(folder);
		copy_close(&copy);
	}
}
END_TEST

/* A table that is computed from config.json may be larger than any file. */
START_TEST(a_computed_table_larger_than_memory_is_refused_with_both_numbers)
{
	enum { HEADS = 1 << 20, BUCKETS = 4 };
	static const struct stored_tensor tensors[] = {
	    {"shared.weight", 2, {1, 1}},
	    {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 2, {BUCKETS, HEADS}},
	    {NULL, 0, {0}}};
	char *folder = folder_make();
	attn_model *model = NULL;
	attn_error err;
	folder_write_tensors(folder, "model.safetensors", tensors, 1);
	folder_write_text(
	    folder, "config.json",
	    "{\"model_type\": \"t5\", \"d_model\": 1, \"d_ff\": 1, \"d_kv\": 1, \"num_layers\": 1, "
	    "\"num_heads\": 1048576, \"vocab_size\": 1, \"relative_attention_num_buckets\": 4, "
	    "\"relative_attention_max_distance\": 1048576}");
	ck_assert_int_eq(attn_model_open(folder, plain_kernels(), &model, &err), ATTN_MEMORY);
	ck_assert_msg(
	    strstr(err.message, "the table of distances takes 8796097216512 bytes of memory, there are"),
	    "%s", err.message);
	folder_remove(folder);
}
END_TEST

/* Sizes that no tensor has are seen before memory is taken for them, and their products do not overflow. */
START_TEST(absurd_sizes_are_refused)
{
	static const char *const keys[] = {
	    "hidden_size",
	    "intermediate_size",
	    "vocab_size",
	    "max_position_embeddings",
	    "num_attention_heads",
	    "num_key_value_heads",
	    "head_dim",
	    "num_hidden_layers",
	    "n_embd",
	    "n_inner",
	    "n_head",
	    "n_positions",
	    "n_layer",
	    "type_vocab_size",
	    "d_model",
	    "d_ff",
	    "d_kv",
	    "num_layers",
	    "num_heads",
	    "encoder_ffn_dim",
	};
	static const char *const values[] = {"9223372036854775807", "4611686018427387904", "1099511627776",
	                                     "4294967296"};
	for (size_t m = 0; small_models[m]; m++) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
				struct copy copy;
				attn_error err;
				copy_open(&copy, small_models[m]);
				if (is_size_of_tensor(small_models[m], keys[k]) &&
				    json_object_get(copy.config, keys[k])) {
					key_set(copy.config, keys[k], values[v]);
					ck_assert_msg(copy_try(&copy, &err) != ATTN_OK, "%s: %s",
					              small_models[m], keys[k]);
				}
				copy_close(&copy);
			}
		}
	}
}
END_TEST

/* ---- tensors */

/* The place of `"name"` in the header, where a byte can be changed. */
static char *name_in_header(const struct copy *copy, const char *name)
{
	char quoted[200];
	snprintf(quoted, sizeof(quoted), "\"%s\"", name);
	char *at = memmem(copy->weights, copy->weights_size, quoted, strlen(quoted));
	ck_assert_msg(at, "%s", name);
	return at + 1;
}

static attn_safetensors *weights_of(const struct copy *copy)
{
	attn_safetensors *file = NULL;
	attn_error err;
	ck_assert_int_eq(attn_safetensors_parse(copy->weights, copy->weights_size, &file, &err), ATTN_OK);
	return file;
}

/* Whether a model has nothing to lose by a tensor of that name. */
static bool is_ignored(const char *folder, const char *name)
{
	static const char *const parts[] = {"position_ids", "pooler", "attn.bias", "masked_bias", "inv_freq"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i]))
			return true;
	/* Sinusoids, which are computed. */
	return strncmp(folder, "marian", 6) == 0 && strstr(name, "embed_positions");
}

START_TEST(a_tensor_by_another_name_is_missed_or_does_not_belong)
{
	for (size_t m = 0; small_models[m]; m++) {
		struct copy copy;
		copy_open(&copy, small_models[m]);
		attn_safetensors *file = weights_of(&copy);
		for (size_t i = 0; i < attn_safetensors_count(file); i++) {
			const char *name = attn_safetensors_at(file, i)->name;
			char *at = name_in_header(&copy, name), kept = *at;
			attn_error err;
			if (is_ignored(small_models[m], name))
				continue;
			*at = '#';
			ck_assert_msg(copy_try(&copy, &err) == ATTN_TENSOR, "%s: %s: \"%s\"", small_models[m],
			              name, err.message);
			ck_assert_msg(strstr(err.message, name + 1) || strstr(err.message, "is missing"),
			              "%s: %s: \"%s\"", small_models[m], name, err.message);
			*at = kept;
		}
		attn_safetensors_free(file);
		copy_close(&copy);
	}
}
END_TEST

START_TEST(a_turned_matrix_is_named_with_both_shapes)
{
	for (size_t m = 0; small_models[m]; m++) {
		struct copy copy;
		copy_open(&copy, small_models[m]);
		attn_safetensors *file = weights_of(&copy);
		for (size_t i = 0; i < attn_safetensors_count(file); i++) {
			const attn_stored_tensor *tensor = attn_safetensors_at(file, i);
			char shape[64], turned[64], message[64];
			if (tensor->rank != 2 || tensor->shape[0] == tensor->shape[1] ||
			    is_ignored(small_models[m], tensor->name))
				continue;
			snprintf(shape, sizeof(shape), "[%zu,%zu]", tensor->shape[0], tensor->shape[1]);
			snprintf(turned, sizeof(turned), "[%zu,%zu]", tensor->shape[1], tensor->shape[0]);
			snprintf(message, sizeof(message), "[%zu, %zu]", tensor->shape[1], tensor->shape[0]);
			char *name = name_in_header(&copy, tensor->name);
			char *at = strstr(name, shape);
			attn_error err;
			ck_assert(at != NULL);
			memcpy(at, turned, strlen(turned));
			ck_assert_msg(copy_try(&copy, &err) == ATTN_TENSOR, "%s: %s: \"%s\"", small_models[m],
			              tensor->name, err.message);
			ck_assert_msg(strstr(err.message, message), "%s: %s: \"%s\"", small_models[m],
			              tensor->name, err.message);
			memcpy(at, shape, strlen(shape));
		}
		attn_safetensors_free(file);
		copy_close(&copy);
	}
}
END_TEST

SUITE_MAIN("model rules", a_window_is_of_the_families_that_have_one,
           a_key_that_changes_what_is_computed_is_refused_with_its_value,
           a_key_that_is_missing_or_cannot_be_is_named, heads_that_do_not_divide_or_turn_are_refused,
           absurd_sizes_are_refused, a_computed_table_larger_than_memory_is_refused_with_both_numbers,
           a_tensor_by_another_name_is_missed_or_does_not_belong, a_turned_matrix_is_named_with_both_shapes)
