#include "attn.h"

#include "model_files.h"
#include "suite.h"

#include <math.h>
#include <string.h>

#define CONFIG "{\"model_type\":\"torch-mha\",\"num_heads\":4}"

/* A folder with that config.json and those tensors. */
static char *folder_of(const char *config, const struct stored_tensor *tensors)
{
	char *folder = folder_make();
	folder_write_text(folder, "config.json", config);
	folder_write_tensors(folder, "model.safetensors", tensors, 7);
	return folder;
}

static attn_model *opened_for(const char *folder, const attn_kernels *kernels)
{
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	attn_status status = attn_model_open(folder, kernels, &model, &err);
	ck_assert_msg(status == ATTN_OK, "%s", err.message);
	return model;
}

static attn_model *opened(const char *folder)
{
	return opened_for(folder, plain_kernels());
}

/* The folder is refused with that status, in words that hold each of the wanted (ended by NULL); removes it.
 */
static void refused(char *folder, attn_status wanted, const char *const *words)
{
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_model_open(folder, plain_kernels(), &model, &err), wanted);
	ck_assert_int_eq(err.status, wanted);
	for (; *words; words++)
		ck_assert_msg(strstr(err.message, *words) != NULL, "\"%s\" lacks \"%s\"", err.message,
		              *words);
	ck_assert_ptr_null(model);
	folder_remove(folder);
}

#define REFUSED(folder, status, ...) refused((folder), (status), (const char *const[]){__VA_ARGS__, NULL})

static const struct stored_tensor packed[] = {{"in_proj_weight", 2, {24, 8}},
                                              {"in_proj_bias", 1, {24}},
                                              {"out_proj.weight", 2, {8, 8}},
                                              {"out_proj.bias", 1, {8}},
                                              {NULL, 0, {0}}};

static const struct stored_tensor split[] = {{"q_proj_weight", 2, {8, 8}},   {"k_proj_weight", 2, {8, 5}},
                                             {"v_proj_weight", 2, {8, 6}},   {"in_proj_bias", 1, {24}},
                                             {"out_proj.weight", 2, {8, 8}}, {NULL, 0, {0}}};

/* ------------------------------------------------------------------ what a good model is */

/* Number index of a tensor of the folder's model.safetensors, whatever its dtype; 0 when there is no such
 * tensor. */
static double number_of(const attn_safetensors *file, const char *name, size_t index)
{
	const attn_stored_tensor *tensor = attn_safetensors_find(file, name);
	float number;
	if (!tensor)
		return 0;
	const char *at = (const char *)tensor->data + index * attn_dtype_size(tensor->dtype);
	ck_assert_int_eq(attn_to_float32(tensor->dtype, at, 1, &number), ATTN_OK);
	return (double)number;
}

static attn_safetensors *stored(const char *folder, const char *name)
{
	char *path = folder_path(folder, name);
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_safetensors_open(path, &file, &err), ATTN_OK);
	free(path);
	return file;
}

/* The linear map is y = x W^T + b of rows [first, first + out) of the stored weight, and of that part of the
 * stored bias. */
static void linear_is(const attn_linear *linear, const attn_safetensors *file, const char *weight,
                      const char *bias, size_t first)
{
	for (size_t row = 0; row < linear->out; row++) {
		for (size_t column = 0; column < linear->in; column++) {
			size_t at = linear->layout == ATTN_IN_OUT ? column * linear->stride + row
			                                          : row * linear->stride + column;
			double want = number_of(file, weight, (first + row) * linear->in + column);
			ck_assert((double)linear->weight[at] == want);
		}
		double want = number_of(file, bias, first + row);
		ck_assert((linear->bias ? (double)linear->bias[row] : 0.0) == want);
	}
}

START_TEST(a_packed_layer_has_the_weights_of_its_file)
{
	char *folder = folder_of(CONFIG, packed);
	attn_model *model = opened(folder);
	attn_safetensors *file = stored(folder, "model.safetensors");
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	ck_assert_ptr_nonnull(layer);
	ck_assert(layer->heads == 4 && layer->kv_heads == 4 && layer->head_width == 2 &&
	          layer->value_width == 2);
	linear_is(&layer->query, file, "in_proj_weight", "in_proj_bias", 0);
	linear_is(&layer->key, file, "in_proj_weight", "in_proj_bias", 8);
	linear_is(&layer->value, file, "in_proj_weight", "in_proj_bias", 16);
	linear_is(&layer->output, file, "out_proj.weight", "out_proj.bias", 0);
	attn_safetensors_free(file);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(query_key_and_value_adjoin_where_widths_agree)
{
	char *folder = folder_of(CONFIG, packed);
	attn_model *model = opened(folder);
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	const attn_linear *const maps[] = {&layer->query, &layer->key, &layer->value};
	for (size_t i = 0; i < 3; i++) {
		ck_assert(maps[i]->layout == ATTN_IN_OUT && maps[i]->stride == 24);
		ck_assert(maps[i]->in == 8 && maps[i]->out == 8);
		ck_assert_ptr_eq(maps[i]->weight, layer->query.weight + 8 * i);
		ck_assert_ptr_eq(maps[i]->bias, layer->query.bias + 8 * i);
	}
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(a_layer_of_different_widths_has_the_weights_of_its_file)
{
	char *folder = folder_of(CONFIG, split);
	attn_model *model = opened(folder);
	attn_safetensors *file = stored(folder, "model.safetensors");
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	ck_assert(layer->query.in == 8 && layer->key.in == 5 && layer->value.in == 6);
	const attn_linear *const maps[] = {&layer->query, &layer->key, &layer->value};
	const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
	for (size_t i = 0; i < 3; i++) {
		attn_linear weight_only = *maps[i];
		weight_only.bias = NULL;
		linear_is(&weight_only, file, names[i], "", 0);
		for (size_t k = 0; k < 8; k++)
			ck_assert((double)maps[i]->bias[k] == number_of(file, "in_proj_bias", 8 * i + k));
	}
	linear_is(&layer->output, file, "out_proj.weight", "", 0);
	ck_assert_ptr_null(layer->output.bias);
	attn_safetensors_free(file);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(equal_widths_adjoin_though_stored_apart)
{
	const struct stored_tensor tensors[] = {{"q_proj_weight", 2, {8, 8}},
	                                        {"k_proj_weight", 2, {8, 8}},
	                                        {"v_proj_weight", 2, {8, 8}},
	                                        {"out_proj.weight", 2, {8, 8}},
	                                        {NULL, 0, {0}}};
	char *folder = folder_of(CONFIG, tensors);
	attn_model *model = opened(folder);
	attn_safetensors *file = stored(folder, "model.safetensors");
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	ck_assert_ptr_eq(layer->value.weight, layer->query.weight + 16);
	ck_assert_uint_eq(layer->key.stride, 24);
	linear_is(&layer->key, file, "k_proj_weight", "", 0);
	linear_is(&layer->value, file, "v_proj_weight", "", 0);
	attn_safetensors_free(file);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(biases_are_optional)
{
	const struct stored_tensor tensors[] = {
	    {"in_proj_weight", 2, {24, 8}}, {"out_proj.weight", 2, {8, 8}}, {NULL, 0, {0}}};
	char *folder = folder_of(CONFIG, tensors);
	attn_model *model = opened(folder);
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	ck_assert(!layer->query.bias && !layer->key.bias && !layer->value.bias && !layer->output.bias);
	ck_assert_uint_eq(attn_model_info_of(model).parameters, 4 * 8 * 8);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(the_info_says_what_the_model_is)
{
	char *folder = folder_of(CONFIG, split);
	attn_model *model = opened(folder);
	attn_model_info info = attn_model_info_of(model);
	ck_assert_str_eq(info.architecture, "torch-mha");
	ck_assert(info.layers == 1 && info.heads == 4 && info.kv_heads == 4);
	ck_assert(info.width == 8 && info.key_width == 5 && info.value_width == 6 && info.output_width == 8);
	ck_assert_uint_eq(info.parameters, 8 * 8 + 8 * 5 + 8 * 6 + 24 + 8 * 8);
	ck_assert_uint_eq(info.bytes, info.parameters * sizeof(float));
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(a_layer_that_the_model_has_not_is_NULL)
{
	char *folder = folder_of(CONFIG, packed);
	attn_model *model = opened(folder);
	ck_assert_ptr_null(attn_model_layer(model, 1, ATTN_SELF));
	ck_assert_ptr_null(attn_model_layer(model, 0, ATTN_CROSS));
	ck_assert_ptr_null(attn_model_layer(model, 0, (attn_layer_kind)7));
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

/* Overwrites the file with zeros: a model that still mapped it would see them. */
START_TEST(a_model_keeps_nothing_of_its_file)
{
	char *folder = folder_of(CONFIG, packed);
	attn_model *model = opened(folder);
	float before = attn_model_layer(model, 0, ATTN_SELF)->query.weight[0];
	char *path = folder_path(folder, "model.safetensors");
	FILE *file = fopen(path, "r+b");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fseek(file, -1200, SEEK_END), 0);
	for (size_t i = 0; i < 1200; i++)
		ck_assert_int_eq(fputc(0, file), 0);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert(before != 0.0F && attn_model_layer(model, 0, ATTN_SELF)->query.weight[0] == before);
	free(path);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(weights_of_other_float_types_become_float32)
{
	char *folder = folder_make();
	size_t size;
	folder_write_text(folder, "config.json", "{\"model_type\":\"torch-mha\",\"num_heads\":1}");
	char *bytes = safetensors_bytes(
	    "{\"in_proj_bias\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[14,20]},"
	    "\"in_proj_weight\":{\"dtype\":\"F16\",\"shape\":[3,1],\"data_offsets\":[8,14]},"
	    "\"out_proj.weight\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]}}",
	    20, &size);
	const uint16_t numbers[] = {0x3C00, 0xC000, 0x3800, 0x3F80, 0xC000, 0x3F00};
	const double wide = -0.75;
	memcpy(bytes + size - 20, &wide, 8);
	memcpy(bytes + size - 12, numbers, 12);
	folder_write(folder, "model.safetensors", bytes, size);
	attn_model *model = opened(folder);
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	const float want[] = {1.0F, -2.0F, 0.5F};
	ck_assert_mem_eq(layer->query.weight, want, sizeof(want));
	ck_assert_mem_eq(layer->query.bias, want, sizeof(want));
	ck_assert(layer->output.weight[0] == -0.75F);
	attn_model_free(model);
	free(bytes);
	folder_remove(folder);
}
END_TEST

/* ------------------------------------------------------------------ what it computes */

#define WIDTH 8
#define HEADS 4
#define MOST_ROWS 6

/* Inputs of one call: rows of [rows, width] numbers. */
struct rows {
	float at[MOST_ROWS * WIDTH];
	size_t rows, width;
};

static struct rows rows_made(size_t rows, size_t width, unsigned seed)
{
	struct rows made = {.rows = rows, .width = width};
	for (size_t i = 0; i < rows * width; i++)
		made.at[i] = (float)rand_r(&seed) / (float)RAND_MAX * 2 - 1;
	return made;
}

/* out[row, WIDTH] = x W^T + b in float64, W being rows [first, first + WIDTH) of the stored weight. */
static void project(const attn_safetensors *file, const char *weight, size_t weight_first, const char *bias,
                    size_t bias_first, const struct rows *x, double out[MOST_ROWS][WIDTH])
{
	for (size_t row = 0; row < x->rows; row++) {
		for (size_t k = 0; k < WIDTH; k++) {
			out[row][k] = number_of(file, bias, bias_first + k);
			for (size_t i = 0; i < x->width; i++)
				out[row][k] += (double)x->at[row * x->width + i] *
				               number_of(file, weight, (weight_first + k) * x->width + i);
		}
	}
}

/* context[query, columns of the head] of one head by the definition, in float64. */
static void attend(double q[WIDTH], double k[MOST_ROWS][WIDTH], double v[MOST_ROWS][WIDTH], size_t keys,
                   size_t head, double context[WIDTH])
{
	const size_t width = WIDTH / HEADS, from = head * width;
	double weights[MOST_ROWS], sum = 0;
	for (size_t key = 0; key < keys; key++) {
		double score = 0;
		for (size_t i = from; i < from + width; i++)
			score += q[i] * k[key][i];
		sum += weights[key] = exp(score / sqrt((double)width));
	}
	for (size_t i = from; i < from + width; i++) {
		context[i] = 0;
		for (size_t key = 0; key < keys; key++)
			context[i] += weights[key] / sum * v[key][i];
	}
}

/* want[query, WIDTH] of multi-head attention from the tensors of the file, in float64. */
static void layer_by_definition(const attn_safetensors *file, const struct rows *const inputs[3],
                                double want[MOST_ROWS][WIDTH])
{
	static const char *const apart[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
	bool together = attn_safetensors_find(file, "in_proj_weight") != NULL;
	double parts[3][MOST_ROWS][WIDTH], context[WIDTH];
	for (size_t i = 0; i < 3; i++)
		project(file, together ? "in_proj_weight" : apart[i], together ? i * WIDTH : 0,
		        "in_proj_bias", i * WIDTH, inputs[i], parts[i]);
	for (size_t query = 0; query < inputs[0]->rows; query++) {
		for (size_t head = 0; head < HEADS; head++)
			attend(parts[0][query], parts[1], parts[2], inputs[1]->rows, head, context);
		for (size_t k = 0; k < WIDTH; k++) {
			want[query][k] = number_of(file, "out_proj.bias", k);
			for (size_t i = 0; i < WIDTH; i++)
				want[query][k] +=
				    context[i] * number_of(file, "out_proj.weight", k * WIDTH + i);
		}
	}
}

/* Layer 0 of the model gives the wanted numbers on these kernels. */
static void layer_gives(const attn_kernels *kernels, const attn_model *model,
                        const struct rows *const inputs[3], double want[MOST_ROWS][WIDTH])
{
	attn_arena *arena = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(arena);
	attn_options options = attn_options_default(WIDTH / HEADS);
	float output[MOST_ROWS * WIDTH];
	attn_layer_sequence sequence = {.query = inputs[0]->at,
	                                .key = inputs[1]->at,
	                                .value = inputs[2]->at,
	                                .output = output,
	                                .attend = {.key_length = inputs[1]->rows}};
	ck_assert_int_eq(attn_layer_run(kernels, &executor, attn_model_layer(model, 0, ATTN_SELF),
	                                inputs[0]->rows, inputs[1]->rows, 0, &options, &sequence, 1),
	                 ATTN_OK);
	for (size_t i = 0; i < inputs[0]->rows * WIDTH; i++)
		ck_assert_double_eq_tol((double)output[i], want[i / WIDTH][i % WIDTH], 1e-5);
	attn_arena_free(arena);
}

static void model_computes(const struct stored_tensor *tensors, const struct rows *const inputs[3])
{
	char *folder = folder_of(CONFIG, tensors);
	attn_safetensors *file = stored(folder, "model.safetensors");
	double want[MOST_ROWS][WIDTH];
	layer_by_definition(file, inputs, want);
	for (size_t i = 0; attn_kernels_list(i); i++) {
		attn_kernels *kernels = NULL;
		ck_assert_int_eq(attn_kernels_new(attn_kernels_list(i), &kernels), ATTN_OK);
		attn_model *model = opened_for(folder, kernels);
		layer_gives(kernels, model, inputs, want);
		attn_model_free(model);
		attn_kernels_free(kernels);
	}
	attn_safetensors_free(file);
	folder_remove(folder);
}

START_TEST(self_attention_of_a_model_is_what_its_file_defines)
{
	const struct rows x = rows_made(5, WIDTH, 1);
	model_computes(packed, (const struct rows *const[]){&x, &x, &x});
}
END_TEST

START_TEST(cross_attention_of_a_model_is_what_its_file_defines)
{
	const struct rows query = rows_made(3, WIDTH, 1), key = rows_made(6, 5, 2),
	                  value = rows_made(6, 6, 3);
	model_computes(split, (const struct rows *const[]){&query, &key, &value});
}
END_TEST

/* ------------------------------------------------------------------ shards */

static const struct stored_tensor shard_in[] = {
    {"in_proj_weight", 2, {24, 8}}, {"in_proj_bias", 1, {24}}, {NULL, 0, {0}}};
static const struct stored_tensor shard_out[] = {
    {"out_proj.weight", 2, {8, 8}}, {"out_proj.bias", 1, {8}}, {NULL, 0, {0}}};

static char *sharded(const char *weight_map)
{
	char *folder = folder_make(), *index = NULL;
	folder_write_text(folder, "config.json", CONFIG);
	folder_write_tensors(folder, "a.safetensors", shard_in, 3);
	folder_write_tensors(folder, "b.safetensors", shard_out, 4);
	ck_assert_int_gt(asprintf(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":%s}", weight_map),
	                 0);
	folder_write_text(folder, "model.safetensors.index.json", index);
	free(index);
	return folder;
}

#define IN_A "\"in_proj_weight\":\"a.safetensors\",\"in_proj_bias\":\"a.safetensors\""

START_TEST(a_sharded_model_has_the_tensors_of_all_shards)
{
	char *folder =
	    sharded("{" IN_A ",\"out_proj.weight\":\"b.safetensors\",\"out_proj.bias\":\"b.safetensors\"}");
	attn_model *model = opened(folder);
	attn_safetensors *a = stored(folder, "a.safetensors"), *b = stored(folder, "b.safetensors");
	linear_is(&attn_model_layer(model, 0, ATTN_SELF)->value, a, "in_proj_weight", "in_proj_bias", 16);
	linear_is(&attn_model_layer(model, 0, ATTN_SELF)->output, b, "out_proj.weight", "out_proj.bias", 0);
	attn_safetensors_free(a);
	attn_safetensors_free(b);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(an_index_and_its_shards_agree_on_every_tensor)
{
	REFUSED(sharded("{" IN_A ",\"out_proj.weight\":\"b.safetensors\"}"), ATTN_FORMAT, "\"out_proj.bias\"",
	        "b.safetensors");
	REFUSED(sharded("{" IN_A ",\"out_proj.weight\":\"a.safetensors\"}"), ATTN_FORMAT,
	        "\"out_proj.weight\"", "not in a.safetensors");
	REFUSED(sharded("{\"x\":\"c.safetensors\"}"), ATTN_FILE, "c.safetensors", "No such file");
	REFUSED(sharded("[]"), ATTN_FORMAT, "weight_map");
}
END_TEST

START_TEST(a_shard_lies_in_the_directory_of_its_model)
{
	REFUSED(sharded("{\"x\":\"../a.safetensors\"}"), ATTN_FORMAT, "\"x\"", "plain name");
	REFUSED(sharded("{\"x\":\"/etc/passwd\"}"), ATTN_FORMAT, "\"x\"", "plain name");
	REFUSED(sharded("{\"x\":\"..\"}"), ATTN_FORMAT, "\"x\"", "plain name");
	REFUSED(sharded("{\"x\":\"\"}"), ATTN_FORMAT, "\"x\"", "plain name");
	REFUSED(sharded("{\"x\":1}"), ATTN_FORMAT, "\"x\"", "plain name");
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

START_TEST(a_directory_without_its_files_is_refused)
{
	REFUSED(folder_make(), ATTN_FILE, "config.json", "No such file");
	char *folder = folder_make();
	folder_write_text(folder, "config.json", CONFIG);
	REFUSED(folder, ATTN_FILE, "model.safetensors", "neither");
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_model_open("/nonexistent", plain_kernels(), &model, &err), ATTN_FILE);
	ck_assert(strstr(err.message, "/nonexistent/config.json") != NULL);
}
END_TEST

START_TEST(a_config_that_is_not_usable_is_refused_by_key)
{
	REFUSED(folder_of("[]", packed), ATTN_FORMAT, "config.json", "object");
	REFUSED(folder_of("{", packed), ATTN_FORMAT, "config.json", "line 1");
	REFUSED(folder_of("", packed), ATTN_FORMAT, "config.json", "too early");
	REFUSED(folder_of("{\n \"a\":x}", packed), ATTN_FORMAT, "config.json", "line 2, column 6");
	REFUSED(folder_of("{\"a\":1,\"a\":2}", packed), ATTN_FORMAT, "config.json", "duplicate");
	REFUSED(folder_of("{}", packed), ATTN_CONFIG, "model_type", "missing");
	REFUSED(folder_of("{\"model_type\":7}", packed), ATTN_CONFIG, "model_type");
	REFUSED(folder_of("{\"model_type\":\"rnn\"}", packed), ATTN_UNSUPPORTED, "model_type", "\"rnn\"");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\"}", packed), ATTN_CONFIG, "num_heads", "missing");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":\"4\"}", packed), ATTN_CONFIG,
	        "num_heads", "integer");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":0}", packed), ATTN_CONFIG, "num_heads",
	        "at least 1");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":-4}", packed), ATTN_CONFIG,
	        "num_heads", "-4");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":3}", packed), ATTN_CONFIG,
	        "num_heads 3", "width 8");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":16}", packed), ATTN_CONFIG,
	        "num_heads 16");
	REFUSED(folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":4,\"add_zero_attn\":1}", packed),
	        ATTN_CONFIG, "add_zero_attn");
}
END_TEST

START_TEST(learned_and_zero_keys_are_appended_in_this_order)
{
	const struct stored_tensor tensors[] = {{"in_proj_weight", 2, {24, 8}},
	                                        {"out_proj.weight", 2, {8, 8}},
	                                        {"bias_k", 3, {1, 1, 8}},
	                                        {"bias_v", 3, {1, 1, 8}},
	                                        {NULL, 0, {0}}};
	char *folder =
	    folder_of("{\"model_type\":\"torch-mha\",\"num_heads\":4,\"add_zero_attn\":true}", tensors);
	attn_model *model = opened(folder);
	attn_safetensors *file = stored(folder, "model.safetensors");
	const attn_layer *layer = attn_model_layer(model, 0, ATTN_SELF);
	ck_assert_uint_eq(layer->appended, 2);
	for (size_t i = 0; i < 8; i++) {
		ck_assert((double)layer->appended_key[i] == number_of(file, "bias_k", i));
		ck_assert((double)layer->appended_value[i] == number_of(file, "bias_v", i));
		ck_assert(layer->appended_key[8 + i] == 0 && layer->appended_value[8 + i] == 0);
	}
	attn_safetensors_free(file);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

START_TEST(a_learned_key_without_its_value_is_refused)
{
	const struct stored_tensor tensors[] = {{"in_proj_weight", 2, {24, 8}},
	                                        {"out_proj.weight", 2, {8, 8}},
	                                        {"bias_k", 3, {1, 1, 8}},
	                                        {NULL, 0, {0}}};
	REFUSED(folder_of(CONFIG, tensors), ATTN_TENSOR, "\"bias_v\" of shape [1, 1, 8]");
}
END_TEST

START_TEST(a_missing_tensor_is_named_with_the_wanted_shape)
{
	const struct stored_tensor none[] = {{"out_proj.weight", 2, {8, 8}}, {NULL, 0, {0}}};
	const struct stored_tensor no_out[] = {{"in_proj_weight", 2, {24, 8}}, {NULL, 0, {0}}};
	const struct stored_tensor no_value[] = {{"q_proj_weight", 2, {8, 8}},
	                                         {"k_proj_weight", 2, {8, 5}},
	                                         {"out_proj.weight", 2, {8, 8}},
	                                         {NULL, 0, {0}}};
	REFUSED(folder_of(CONFIG, none), ATTN_TENSOR, "\"in_proj_weight\"", "[3E, E]", "missing");
	REFUSED(folder_of(CONFIG, no_out), ATTN_TENSOR, "\"out_proj.weight\"", "[8, 8]", "missing");
	REFUSED(folder_of(CONFIG, no_value), ATTN_TENSOR, "\"v_proj_weight\"", "[E, vdim]", "missing");
}
END_TEST

/* The packed layer with tensor number index of another shape. */
static char *folder_reshaped(size_t index, size_t rank, size_t rows, size_t columns)
{
	struct stored_tensor tensors[sizeof(packed) / sizeof(packed[0])];
	memcpy(tensors, packed, sizeof(packed));
	tensors[index] = (struct stored_tensor){packed[index].name, rank, {rows, columns, 1, 1}};
	return folder_of(CONFIG, tensors);
}

START_TEST(a_wrong_shape_is_named_with_the_wanted_and_the_found)
{
	REFUSED(folder_reshaped(0, 2, 23, 8), ATTN_TENSOR, "\"in_proj_weight\"", "[24, 8]", "[23, 8]");
	REFUSED(folder_reshaped(0, 1, 24, 0), ATTN_TENSOR, "\"in_proj_weight\"", "[3E, E]", "[24]");
	REFUSED(folder_reshaped(0, 2, 24, 0), ATTN_TENSOR, "\"in_proj_weight\"", "[3E, E]", "[24, 0]");
	REFUSED(folder_reshaped(1, 1, 8, 0), ATTN_TENSOR, "\"in_proj_bias\"", "[24]", "[8]");
	REFUSED(folder_reshaped(1, 2, 24, 1), ATTN_TENSOR, "\"in_proj_bias\"", "[24]", "[24, 1]");
	REFUSED(folder_reshaped(2, 2, 8, 9), ATTN_TENSOR, "\"out_proj.weight\"", "[8, 8]", "[8, 9]");
	REFUSED(folder_reshaped(3, 0, 0, 0), ATTN_TENSOR, "\"out_proj.bias\"", "[8]", "[]");
	const struct stored_tensor tensors[] = {{"q_proj_weight", 2, {8, 8}},
	                                        {"k_proj_weight", 2, {7, 5}},
	                                        {"v_proj_weight", 2, {8, 6}},
	                                        {"out_proj.weight", 2, {8, 8}},
	                                        {NULL, 0, {0}}};
	REFUSED(folder_of(CONFIG, tensors), ATTN_TENSOR, "\"k_proj_weight\"", "[8, 5]", "[7, 5]");
}
END_TEST

START_TEST(a_tensor_that_does_not_belong_is_named)
{
	const struct stored_tensor tensors[] = {{"in_proj_weight", 2, {24, 8}},
	                                        {"out_proj.weight", 2, {8, 8}},
	                                        {"norm1.weight", 1, {8}},
	                                        {NULL, 0, {0}}};
	const struct stored_tensor both[] = {{"in_proj_weight", 2, {24, 8}}, {"q_proj_weight", 2, {8, 8}},
	                                     {"k_proj_weight", 2, {8, 8}},   {"v_proj_weight", 2, {8, 8}},
	                                     {"out_proj.weight", 2, {8, 8}}, {NULL, 0, {0}}};
	REFUSED(folder_of(CONFIG, tensors), ATTN_TENSOR, "\"norm1.weight\"", "does not belong");
	REFUSED(folder_of(CONFIG, both), ATTN_TENSOR, "\"in_proj_weight\"", "does not belong");
}
END_TEST

START_TEST(weights_must_be_floating_point)
{
	char *folder = folder_make();
	size_t size;
	folder_write_text(folder, "config.json", "{\"model_type\":\"torch-mha\",\"num_heads\":1}");
	char *bytes = safetensors_bytes(
	    "{\"in_proj_weight\":{\"dtype\":\"I32\",\"shape\":[3,1],\"data_offsets\":[0,12]},"
	    "\"out_proj.weight\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[12,16]}}",
	    16, &size);
	folder_write(folder, "model.safetensors", bytes, size);
	free(bytes);
	REFUSED(folder, ATTN_TENSOR, "\"in_proj_weight\"", "I32");
}
END_TEST

START_TEST(the_default_model_opens)
{
	attn_model *model = opened("config/models/tiny-mha");
	attn_model_info info = attn_model_info_of(model);
	ck_assert(info.width == 16 && info.heads == 4 && info.parameters == 4 * 16 * 16 + 4 * 16);
	attn_model_free(model);
}
END_TEST

SUITE_MAIN("model", a_packed_layer_has_the_weights_of_its_file, query_key_and_value_adjoin_where_widths_agree,
           a_layer_of_different_widths_has_the_weights_of_its_file, equal_widths_adjoin_though_stored_apart,
           biases_are_optional, the_info_says_what_the_model_is, a_layer_that_the_model_has_not_is_NULL,
           a_model_keeps_nothing_of_its_file, weights_of_other_float_types_become_float32,
           self_attention_of_a_model_is_what_its_file_defines,
           cross_attention_of_a_model_is_what_its_file_defines, a_sharded_model_has_the_tensors_of_all_shards,
           an_index_and_its_shards_agree_on_every_tensor, a_shard_lies_in_the_directory_of_its_model,
           a_directory_without_its_files_is_refused, a_config_that_is_not_usable_is_refused_by_key,
           learned_and_zero_keys_are_appended_in_this_order, a_learned_key_without_its_value_is_refused,
           a_missing_tensor_is_named_with_the_wanted_shape,
           a_wrong_shape_is_named_with_the_wanted_and_the_found, a_tensor_that_does_not_belong_is_named,
           weights_must_be_floating_point, the_default_model_opens)
