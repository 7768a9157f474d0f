#include "attn.h"
#include "kernel_sets.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* The node tests of ONNX for the operator Attention, opset 23 and 24, each a file with inputs, attributes and
 * expected outputs. They are other people's and lie beside the project. */
#define FOLDER "../shared/data/onnx-attention"
#define SUFFIX ".safetensors"
enum { MOST_BATCH = 8 };

/* One case, its tensors as float32. */
struct onnx {
	const char *name;
	attn_arena *arena;
	attn_safetensors *file;
	size_t batch;
	attn_shape shape;
	attn_options options;
	attn_sequence sequences[MOST_BATCH];
	float *context; /* as out.Y */
	float *present_key, *present_value;
	float *stage; /* as out.qk_matmul_output */
	bool half;    /* its tensors are float16 */
};

static const attn_stored_tensor *find(const struct onnx *onnx, const char *name)
{
	return attn_safetensors_find(onnx->file, name);
}

static size_t count_of(const attn_stored_tensor *tensor)
{
	size_t count = 0;
	ck_assert(attn_size_product(tensor->shape, tensor->rank, &count));
	return count;
}

static float *floats(const struct onnx *onnx, const attn_stored_tensor *tensor)
{
	float *out = attn_arena_floats(onnx->arena, count_of(tensor));
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(attn_to_float32(tensor->dtype, tensor->data, count_of(tensor), out), ATTN_OK);
	return out;
}

static double attribute(const struct onnx *onnx, const char *name, double missing)
{
	const char *text = attn_safetensors_metadata(onnx->file, name);
	return text == NULL ? missing : strtod(text, NULL);
}

/* Views of one tensor as [batch, heads, rows, width], be it that or [batch, rows, heads * width]. */
struct view {
	const float *data;
	size_t heads, rows, width;
	size_t batch_stride;
	attn_heads of; /* of the first sequence */
};

static struct view view_of(const struct onnx *onnx, const char *name, size_t heads)
{
	const attn_stored_tensor *tensor = find(onnx, name);
	ck_assert_ptr_nonnull(tensor);
	struct view view = {.data = floats(onnx, tensor), .heads = heads};
	view.batch_stride = count_of(tensor) / tensor->shape[0];
	if (tensor->rank == 4) {
		view.heads = tensor->shape[1];
		view.rows = tensor->shape[2];
		view.width = tensor->shape[3];
		view.of = (attn_heads){view.data, view.rows * view.width, view.width};
	} else {
		view.rows = tensor->shape[1];
		view.width = tensor->shape[2] / heads;
		view.of = (attn_heads){view.data, view.width, tensor->shape[2]};
	}
	return view;
}

static attn_heads sequence_of(const struct view *view, size_t sequence)
{
	attn_heads heads = view->of;
	heads.data = view->data + sequence * view->batch_stride;
	return heads;
}

static void read_inputs(struct onnx *onnx)
{
	struct view query = view_of(onnx, "in.Q", (size_t)attribute(onnx, "q_num_heads", 1));
	struct view key = view_of(onnx, "in.K", (size_t)attribute(onnx, "kv_num_heads", 1));
	struct view value = view_of(onnx, "in.V", (size_t)attribute(onnx, "kv_num_heads", 1));
	struct view past_key = {.rows = 0}, past_value = {.rows = 0};
	if (find(onnx, "in.past_key") != NULL) {
		past_key = view_of(onnx, "in.past_key", 1);
		past_value = view_of(onnx, "in.past_value", 1);
	}
	onnx->batch = find(onnx, "in.Q")->shape[0];
	ck_assert_uint_le(onnx->batch, MOST_BATCH);
	onnx->shape = (attn_shape){query.heads,   key.heads,   query.rows, past_key.rows + key.rows,
	                           past_key.rows, query.width, value.width};
	for (size_t s = 0; s < onnx->batch; s++)
		onnx->sequences[s] = (attn_sequence){.query = sequence_of(&query, s),
		                                     .key = sequence_of(&key, s),
		                                     .value = sequence_of(&value, s),
		                                     .past_key = sequence_of(&past_key, s),
		                                     .past_value = sequence_of(&past_value, s),
		                                     .key_length = onnx->shape.keys};
}

/* is_causal aligns by the length of past, or by nonpad_kv_seqlen - Lq, else top left. */
static void read_options(struct onnx *onnx)
{
	const attn_stored_tensor *lengths = find(onnx, "in.nonpad_kv_seqlen");
	onnx->options = attn_options_default(onnx->shape.head_width);
	onnx->options.scale = (float)attribute(onnx, "scale", (double)onnx->options.scale);
	onnx->options.softcap = (float)attribute(onnx, "softcap", 0);
	if (attribute(onnx, "is_causal", 0) != 0)
		onnx->options.causal = ATTN_CAUSAL_OFFSET;
	for (size_t s = 0; s < onnx->batch; s++) {
		onnx->sequences[s].causal_offset = (int64_t)onnx->shape.past;
		if (lengths == NULL)
			continue;
		int64_t length;
		ck_assert_int_eq(lengths->dtype, ATTN_INT64);
		memcpy(&length, (const char *)lengths->data + s * sizeof(length), sizeof(length));
		onnx->sequences[s].key_length = (size_t)length;
		onnx->sequences[s].causal_offset = length - (int64_t)onnx->shape.queries;
	}
}

/* Strides of a tensor that broadcasts to [batch, heads, queries, keys]. */
static void broadcast(const attn_stored_tensor *tensor, size_t strides[4])
{
	size_t stride = 1;
	for (size_t back = 0; back < 4; back++) {
		size_t dim = back < tensor->rank ? tensor->shape[tensor->rank - 1 - back] : 1;
		strides[3 - back] = dim == 1 ? 0 : stride;
		stride *= dim;
	}
}

static void read_mask(struct onnx *onnx)
{
	const attn_stored_tensor *mask = find(onnx, "in.attn_mask");
	if (mask == NULL)
		return;
	size_t strides[4];
	broadcast(mask, strides);
	const float *bias = mask->dtype == ATTN_BOOL ? NULL : floats(onnx, mask);
	for (size_t s = 0; s < onnx->batch; s++) {
		size_t at = s * strides[0];
		if (bias == NULL)
			onnx->sequences[s].mask =
			    (attn_mask){(const uint8_t *)mask->data + at, strides[1], strides[2], strides[3]};
		else
			onnx->sequences[s].bias = (attn_bias){bias + at, strides[1], strides[2], strides[3]};
	}
}

static float *room(const struct onnx *onnx, size_t each)
{
	float *out = attn_arena_floats(onnx->arena, onnx->batch * each);
	ck_assert_ptr_nonnull(out);
	for (size_t i = 0; i < onnx->batch * each; i++)
		out[i] = NAN;
	return out;
}

static void place_outputs(struct onnx *onnx)
{
	const attn_shape *shape = &onnx->shape;
	const size_t rows = shape->kv_heads * shape->keys,
	             scores = shape->heads * shape->queries * shape->keys;
	const size_t context = shape->heads * shape->queries * shape->value_width;
	const bool joined = find(onnx, "out.Y")->rank == 3;
	onnx->context = room(onnx, context);
	onnx->present_key = room(onnx, rows * shape->head_width);
	onnx->present_value = room(onnx, rows * shape->value_width);
	onnx->stage = room(onnx, scores);
	for (size_t s = 0; s < onnx->batch; s++) {
		attn_sequence *sequence = &onnx->sequences[s];
		float **const stages[] = {&sequence->scores, &sequence->capped, &sequence->masked,
		                          &sequence->weights};
		sequence->context = onnx->context + s * context;
		sequence->context_head_stride =
		    joined ? shape->value_width : shape->queries * shape->value_width;
		sequence->context_row_stride =
		    joined ? shape->heads * shape->value_width : shape->value_width;
		sequence->used_key = onnx->present_key + s * rows * shape->head_width;
		sequence->used_value = onnx->present_value + s * rows * shape->value_width;
		*stages[(size_t)attribute(onnx, "qk_matmul_output_mode", 0)] = onnx->stage + s * scores;
	}
}

/* ONNX compares at rtol 1e-3 and atol 1e-7; float32 cases agree to 1e-5. */
static void compare(const struct onnx *onnx, const char *name, const float *found)
{
	const attn_stored_tensor *tensor = find(onnx, name);
	if (tensor == NULL)
		return;
	const float *wanted = floats(onnx, tensor);
	const double relative = onnx->half ? 1e-3 : 1e-5;
	for (size_t i = 0; i < count_of(tensor); i++) {
		double difference = fabs((double)found[i] - (double)wanted[i]);
		bool same = found[i] == wanted[i] || (isnan(found[i]) && isnan(wanted[i]));
		if (!same && !(difference <= 1e-7 + relative * fabs((double)wanted[i])))
			ck_abort_msg("%s: %s number %zu is %.9g, should be %.9g", onnx->name, name, i,
			             (double)found[i], (double)wanted[i]);
	}
}

static void run_file(attn_kernels *kernels, const char *name)
{
	char path[512];
	attn_error err;
	struct onnx onnx = {.name = name, .arena = attn_arena_new(0)};
	snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
	ck_assert_int_eq(attn_safetensors_open(path, &onnx.file, &err), ATTN_OK);
	onnx.half = find(&onnx, "in.Q")->dtype == ATTN_FLOAT16;
	read_inputs(&onnx);
	read_options(&onnx);
	read_mask(&onnx);
	place_outputs(&onnx);
	attn_executor executor = attn_executor_serial(onnx.arena);
	ck_assert_int_eq(
	    attn_attend(kernels, &executor, &onnx.shape, &onnx.options, onnx.sequences, onnx.batch), ATTN_OK);
	compare(&onnx, "out.Y", onnx.context);
	compare(&onnx, "out.present_key", onnx.present_key);
	compare(&onnx, "out.present_value", onnx.present_value);
	compare(&onnx, "out.qk_matmul_output", onnx.stage);
	attn_safetensors_free(onnx.file);
	attn_arena_free(onnx.arena);
}

static void run_folder(attn_kernels *kernels)
{
	size_t files = 0;
	DIR *folder = opendir(FOLDER);
	ck_assert_ptr_nonnull(folder);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		size_t length = strlen(entry->d_name);
		if (length <= strlen(SUFFIX) || strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		run_file(kernels, entry->d_name);
		files++;
	}
	closedir(folder);
	ck_assert_uint_eq(files, 51);
}

static void all_cases_of_onnx_agree(attn_kernels *kernels)
{
	if (access(FOLDER, R_OK) != 0)
		suite_skip(FOLDER " is absent");
	else
		run_folder(kernels);
}
ON_EACH_SET(all_cases_of_onnx_agree)

SUITE_MAIN("onnx", EACH_SET(all_cases_of_onnx_agree))
