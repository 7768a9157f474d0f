#include "attn.h"
#include "model_files.h"
#include "suite.h"
#include "t5_buckets.h"

#include <stdint.h>
#include <string.h>

/* The committed checkpoints, one thing about them changed. */
#define FOLDER "tests/models"

/* ------------------------------------------------------------------ changed checkpoints */

/* Bytes of a file of a case, for the caller to free. */
static char *bytes_of(const char *name, const char *file, size_t *size)
{
	char path[256];
	snprintf(path, sizeof(path), FOLDER "/%s/%s", name, file);
	FILE *stream = fopen(path, "rb");
	ck_assert_msg(stream, "%s", path);
	ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
	*size = (size_t)ftell(stream);
	rewind(stream);
	char *bytes = malloc(*size);
	ck_assert_ptr_nonnull(bytes);
	ck_assert_uint_eq(fread(bytes, 1, *size, stream), *size);
	fclose(stream);
	return bytes;
}

/* One text of a file in the place of another, wherever it stands; in weights both are as long. */
struct change {
	const char *file, *from, *to;
};

static void file_write(const char *folder, const char *name, const char *file, const struct change *change)
{
	size_t size;
	char *bytes = bytes_of(name, file, &size), *at = bytes, *out = NULL;
	size_t length = 0, found = 0;
	FILE *stream = open_memstream(&out, &length);
	const size_t from = strlen(change->from);
	while (strcmp(change->file, file) == 0) {
		char *next = memmem(at, size - (size_t)(at - bytes), change->from, from);
		if (!next)
			break;
		fwrite(at, 1, (size_t)(next - at), stream);
		fputs(change->to, stream);
		at = next + from;
		found++;
	}
	fwrite(at, 1, size - (size_t)(at - bytes), stream);
	fclose(stream);
	ck_assert_msg(found > 0 || strcmp(change->file, file) != 0, "%s has no %s", name, change->from);
	folder_write(folder, file, out, length);
	free(out);
	free(bytes);
}

/* A case with the change, for folder_remove. */
static char *changed(const char *name, const struct change *change)
{
	char *folder = folder_make();
	file_write(folder, name, "config.json", change);
	file_write(folder, name, "model.safetensors", change);
	return folder;
}

static attn_model *opened(const char *name, const struct change *change)
{
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	char *folder = changed(name, change);
	attn_status status = attn_model_open(folder, plain_kernels(), &model, &err);
	ck_assert_msg(status == ATTN_OK, "%s: %s", name, err.message);
	folder_remove(folder);
	return model;
}

static void refused(const char *name, const struct change *change, attn_status wanted, const char *words)
{
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	char *folder = changed(name, change);
	attn_status status = attn_model_open(folder, plain_kernels(), &model, &err);
	ck_assert_msg(status == wanted && strstr(err.message, words), "%s with %s: %s, \"%s\" lacks \"%s\"",
	              name, change->to, attn_status_text(status), err.message, words);
	ck_assert_ptr_null(model);
	folder_remove(folder);
}

/* ------------------------------------------------------------------ what is refused */

START_TEST(a_key_whose_value_would_change_what_is_computed_is_refused_by_name)
{
	static const struct {
		const char *name, *from, *to, *words;
	} cases[] = {
	    {"t5-relu", "\"feed_forward_proj\": \"relu\"", "\"feed_forward_proj\": \"gated-tanh\"",
	     "feed_forward_proj \"gated-tanh\""},
	    {"t5-relu", "\"is_encoder_decoder\": true", "\"is_encoder_decoder\": false",
	     "is_encoder_decoder"},
	    {"bart-scaled", "\"activation_function\": \"relu\"", "\"activation_function\": \"softplus\"",
	     "activation_function \"softplus\""},
	    {"bart-scaled", "\"d_model\"", "\"normalize_before\": true, \"d_model\"", "normalize_before"},
	    {"bart-scaled", "\"d_model\"", "\"add_final_layer_norm\": true, \"d_model\"",
	     "add_final_layer_norm"},
	    {"bart-scaled", "\"d_model\"", "\"normalize_embedding\": false, \"d_model\"",
	     "normalize_embedding"},
	    {"marian-swish", "\"d_model\"", "\"normalize_embedding\": true, \"d_model\"",
	     "normalize_embedding"},
	    {"marian-swish", "\"d_model\"", "\"static_position_embeddings\": false, \"d_model\"",
	     "static_position_embeddings"},
	    {"clip-text", "\"quick_gelu\"", "\"mish\"", "hidden_act \"mish\""},
	    {"torch-encoder-pre-norm", "\"gelu\"", "\"elu\"", "activation \"elu\""},
	    {"unet-heads", "\"cross_attention_norm\": null", "\"cross_attention_norm\": \"layer_norm\"",
	     "cross_attention_norm"},
	    {"unet-heads", "\"dual_cross_attention\": false", "\"dual_cross_attention\": true",
	     "dual_cross_attention"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].name, &(struct change){"config.json", cases[i].from, cases[i].to},
		        ATTN_UNSUPPORTED, cases[i].words);
}
END_TEST

START_TEST(a_size_that_cannot_be_is_refused_by_its_key)
{
	static const struct {
		const char *name, *from, *to, *words;
	} cases[] = {
	    {"t5-relu", "num_buckets\": 8", "num_buckets\": 3", "relative_attention_num_buckets is 3"},
	    {"t5-relu", "max_distance\": 20", "max_distance\": 4", "relative_attention_max_distance is 4"},
	    {"t5-relu", "max_distance\": 20", "max_distance\": 99999999999",
	     "relative_attention_max_distance"},
	    {"t5-relu", "\"num_layers\": 2", "\"num_layers\": 1000000", "num_layers is 1000000"},
	    {"marian-swish", "\"decoder_attention_heads\": 3", "\"decoder_attention_heads\": 5",
	     "decoder_attention_heads 5"},
	    {"marian-swish", "\"max_position_embeddings\": 20", "\"max_position_embeddings\": 20000000",
	     "20000000 positions"},
	    {"clip-text", "\"num_attention_heads\": 4", "\"num_attention_heads\": 7",
	     "num_attention_heads 7"},
	    {"torch-transformer-post-norm", "\"num_heads\": 4", "\"num_heads\": 3", "num_heads 3"},
	    {"unet-heads", "\"attention_head_dim\": 2", "\"attention_head_dim\": 3", "attention_head_dim 3"},
	    {"unet-heads", "\"attention_head_dim\": 2", "\"attention_head_dim\": null", "attention_head_dim"},
	    {"unet-heads-by-block", "2,\n    4", "2", "attention_head_dim has 1 numbers"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].name, &(struct change){"config.json", cases[i].from, cases[i].to},
		        ATTN_CONFIG, cases[i].words);
}
END_TEST

START_TEST(a_missing_or_misshapen_tensor_is_named)
{
	static const struct {
		const char *name;
		struct change change;
		const char *words;
	} cases[] = {
	    {"t5-relu",
	     {"model.safetensors", "decoder.final_layer_norm", "decoder.final_layer_nope"},
	     "\"decoder.final_layer_norm.weight\" of shape [20] is missing"},
	    {"t5-gated-untied",
	     {"config.json", "\"d_ff\": 28", "\"d_ff\": 29"},
	     "\"encoder.block.0.layer.1.DenseReluDense.wi_0.weight\" must have shape [29, 20], found [28, "
	     "20]"},
	    {"t5-relu",
	     {"config.json", "num_buckets\": 8", "num_buckets\": 16"},
	     "relative_attention_bias.weight\" must have shape [16, 3], found [8, 3]"},
	    {"bart-scaled",
	     {"model.safetensors", "shared.weight", "shered.weight"},
	     "\"shared.weight\" of shape"},
	    {"bart-learned-positions",
	     {"config.json", "\"max_position_embeddings\": 20", "\"max_position_embeddings\": 21"},
	     "embed_positions.weight\" must have shape [23, 18], found [22, 18]"},
	    {"clip-text-bare",
	     {"model.safetensors", "layers.1.mlp.fc2.bias", "layers.1.mlp.fc2.bios"},
	     "\"encoder.layers.1.mlp.fc2.bias\" of shape [24] is missing"},
	    {"torch-transformer-post-norm",
	     {"model.safetensors", "decoder.layers.0.norm3.weight", "decoder.layers.0.norm4.weight"},
	     "\"decoder.layers.0.norm3.weight\""},
	    {"torch-encoder-post-norm",
	     {"model.safetensors", "layers.0.linear1.weight", "layers.0.linear7.weight"},
	     "\"layers.0.linear1.weight\" of shape [F, E]"},
	    {"unet-heads",
	     {"model.safetensors", ".attn2.", ".attn5."},
	     ".attn2.to_q.weight\" of shape [C, C]"},
	    {"unet-heads", {"model.safetensors", "attn2.to_v", "attn2.to_w"}, "attn2.to_v.weight\" of shape"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].name, &cases[i].change, ATTN_TENSOR, cases[i].words);
}
END_TEST

/* ------------------------------------------------------------------ what models say of themselves */

static bool stack_is_causal(const char *name, const char *from, const char *to, size_t stack)
{
	attn_model *model = opened(name, &(struct change){"config.json", from, to});
	const bool causal = attn_model_info_of(model).stacks[stack].causal;
	attn_model_free(model);
	return causal;
}

START_TEST(causal_says_whether_stacks_of_torch_look_ahead)
{
	static const char heads[] = "\"num_heads\"";
	ck_assert(!stack_is_causal("torch-encoder-no-bias", heads, heads, 0));
	ck_assert(stack_is_causal("torch-encoder-no-bias", heads, "\"causal\": true, \"num_heads\"", 0));
	ck_assert(!stack_is_causal("torch-transformer-post-norm", heads, heads, 0));
	ck_assert(stack_is_causal("torch-transformer-post-norm", heads, heads, 1));
	ck_assert(
	    !stack_is_causal("torch-transformer-post-norm", heads, "\"causal\": false, \"num_heads\"", 1));
}
END_TEST

START_TEST(an_encoder_decoder_tells_of_both_stacks)
{
	attn_model *model = opened("marian-swish", &(struct change){"config.json", "swish", "silu"});
	const attn_model_info info = attn_model_info_of(model);
	ck_assert_uint_eq(info.stacks[ATTN_FIRST_STACK].layers, 2);
	ck_assert_uint_eq(info.stacks[ATTN_FIRST_STACK].heads, 6);
	ck_assert_uint_eq(info.stacks[ATTN_SECOND_STACK].layers, 3);
	ck_assert_uint_eq(info.stacks[ATTN_SECOND_STACK].heads, 3);
	ck_assert_uint_eq(info.stacks[ATTN_SECOND_STACK].positions, 20);
	ck_assert(info.logits && info.vocabulary == 50);
	ck_assert_uint_eq(info.layers, 5);
	ck_assert_uint_eq(info.cross_layers, 3);
	attn_model_free(model);
}
END_TEST

START_TEST(layers_of_a_unet_are_numbered_as_data_meets_them)
{
	/* Each layer reads a context of its own width: its number and one. */
	static const char *const order[] = {"down_blocks.2.attentions.0.transformer_blocks.2",
	                                    "down_blocks.2.attentions.0.transformer_blocks.10",
	                                    "down_blocks.2.attentions.1.transformer_blocks.0",
	                                    "down_blocks.10.attentions.0.transformer_blocks.0",
	                                    "mid_block.attentions.0.transformer_blocks.0",
	                                    "up_blocks.1.attentions.0.transformer_blocks.0"};
	enum { LAYERS = sizeof(order) / sizeof(order[0]), PARTS = 4 };
	static const char *const parts[PARTS] = {"to_q", "to_k", "to_v", "to_out.0"};
	static char names[LAYERS * PARTS][128];
	struct stored_tensor tensors[LAYERS * PARTS + 1] = {0};
	for (size_t i = 0; i < LAYERS * PARTS; i++) {
		const size_t part = i % PARTS;
		snprintf(names[i], sizeof(names[i]), "%s.attn2.%s.weight", order[i / PARTS], parts[part]);
		tensors[i] =
		    (struct stored_tensor){names[i], 2, {2, part == 1 || part == 2 ? i / PARTS + 1 : 2}};
	}
	char *folder = folder_make();
	folder_write_text(folder, "config.json",
	                  "{\"model_type\":\"unet-cross-attention\",\"attention_head_dim\":1}");
	folder_write_tensors(folder, "model.safetensors", tensors, 5);
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_msg(attn_model_open(folder, plain_kernels(), &model, &err) == ATTN_OK, "%s", err.message);
	const attn_model_info info = attn_model_info_of(model);
	ck_assert(info.layers == 0 && info.cross_layers == LAYERS);
	for (size_t i = 0; i < LAYERS; i++)
		ck_assert_uint_eq(attn_model_layer(model, i, ATTN_CROSS)->key.in, i + 1);
	attn_model_free(model);
	folder_remove(folder);
}
END_TEST

/* ------------------------------------------------------------------ distances of T5 */

START_TEST(distances_fall_into_the_published_buckets)
{
	static const struct {
		int64_t distance;
		size_t both, one;
	} cases[] = {
	    {0, 0, 0},    {-1, 1, 1},     {1, 17, 0},      {-7, 7, 7},        {8, 24, 0},
	    {-8, 8, 8},   {-15, 9, 15},   {20, 26, 0},     {-20, 10, 17},     {-127, 15, 31},
	    {128, 31, 0}, {-100, 15, 30}, {100000, 31, 0}, {-100000, 15, 31},
	};
	const attn_t5_buckets both = {32, 128, true}, one = {32, 128, false};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_eq(attn_t5_bucket(&both, cases[i].distance), cases[i].both);
		ck_assert_uint_eq(attn_t5_bucket(&one, cases[i].distance), cases[i].one);
	}
}
END_TEST

SUITE_MAIN("architectures", a_key_whose_value_would_change_what_is_computed_is_refused_by_name,
           a_size_that_cannot_be_is_refused_by_its_key, a_missing_or_misshapen_tensor_is_named,
           causal_says_whether_stacks_of_torch_look_ahead, an_encoder_decoder_tells_of_both_stacks,
           layers_of_a_unet_are_numbered_as_data_meets_them, distances_fall_into_the_published_buckets)
