#include "loader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"
#include "model_room.h"
#include "packed.h"
#include "position.h"
#include "rounding.h"

bool attn_load_ok(const attn_loader *load)
{
	return load->status == ATTN_OK;
}

void attn_load_fail(attn_loader *load, attn_status status, const char *format, ...)
{
	if (!attn_load_ok(load))
		return;
	char text[sizeof(load->err->message)];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	load->status = attn_error_set(load->err, status, "%s", text);
}

static void fail_memory(attn_loader *load, const char *name)
{
	attn_load_fail(load, ATTN_MEMORY, "tensor \"%s%s\": out of memory", load->prefix, name);
}

/* ---- names */

struct name {
	char text[2 * ATTN_LOAD_NAME];
};

void attn_load_prefix(attn_loader *load, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(load->prefix, sizeof(load->prefix), format, arguments);
	va_end(arguments);
}

static struct name name_in_file(const attn_loader *load, const char *name)
{
	struct name out;
	snprintf(out.text, sizeof(out.text), "%s%s", load->prefix, name);
	return out;
}

static struct name name_with(const char *name, const char *suffix)
{
	struct name out;
	snprintf(out.text, sizeof(out.text), "%s%s", name, suffix);
	return out;
}

/* ---- what is there */

bool attn_load_has_tensor(const attn_loader *load, const char *name)
{
	return attn_weights_find(load->weights, name_in_file(load, name).text) != NULL;
}

size_t attn_load_dimension(attn_loader *load, const char *name, size_t rank, size_t index,
                           const char *letters)
{
	const struct name full = name_in_file(load, name);
	const attn_stored_tensor *stored = attn_weights_find(load->weights, full.text);
	if (!stored) {
		attn_load_fail(load, ATTN_TENSOR, "tensor \"%s\" of shape %s is missing", full.text, letters);
		return 1;
	}
	if (stored->rank == rank && stored->shape[index] > 0)
		return stored->shape[index];
	char found[ATTN_SHAPE_TEXT];
	attn_weights_shape_text(found, stored->rank, stored->shape);
	attn_load_fail(load, ATTN_TENSOR, "tensor \"%s\" must have shape %s, found %s", full.text, letters,
	               found);
	return 1;
}

void attn_load_ignore(attn_loader *load, const char *pattern)
{
	attn_weights_ignore(load->weights, pattern);
}

/* The tensor prefix + name, of that shape; NULL when the load has failed. */
static const attn_stored_tensor *take(attn_loader *load, const char *name, size_t rank, const size_t *shape)
{
	const attn_stored_tensor *stored = NULL;
	if (!attn_load_ok(load))
		return NULL;
	load->status =
	    attn_weights_take(load->weights, name_in_file(load, name).text, rank, shape, &stored, load->err);
	return attn_load_ok(load) ? stored : NULL;
}

/* ---- numbers as they are */

/* Memory for rows * width numbers; NULL when the load has failed. */
static float *floats_new(attn_loader *load, const char *name, size_t rows, size_t width)
{
	const size_t dims[] = {rows, width, sizeof(float)};
	size_t bytes = 0;
	if (!attn_load_ok(load))
		return NULL;
	float *numbers = attn_size_product(dims, 3, &bytes) ? attn_model_memory(load->model, bytes) : NULL;
	if (!numbers)
		fail_memory(load, name);
	else
		attn_model_count(load->model, rows * width);
	return numbers;
}

static const float *copy(attn_loader *load, const char *name, const attn_stored_tensor *stored, size_t rows,
                         size_t width)
{
	float *numbers = stored ? floats_new(load, name, rows, width) : NULL;
	if (numbers)
		attn_to_float32(stored->dtype, stored->data, rows * width, numbers);
	return numbers;
}

const float *attn_load_vector(attn_loader *load, const char *name, size_t count)
{
	return copy(load, name, take(load, name, 1, &count), 1, count);
}

attn_table attn_load_table(attn_loader *load, const char *name, size_t count, size_t width)
{
	const size_t shape[] = {count, width};
	return (attn_table){.count = count,
	                    .width = width,
	                    .rows = copy(load, name, take(load, name, 2, shape), count, width)};
}

attn_norm attn_load_norm(attn_loader *load, const char *name, enum attn_norm_kind kind, double eps,
                         size_t width, enum attn_load_bias bias)
{
	attn_norm norm = {.kind = kind, .eps = eps};
	struct name weight = name_with(name, ".weight"), shift = name_with(name, ".bias");
	struct name gamma = name_with(name, ".gamma"), beta = name_with(name, ".beta");
	if (attn_load_has_tensor(load, gamma.text))
		weight = gamma;
	if (attn_load_has_tensor(load, beta.text))
		shift = beta;
	norm.weight = attn_load_vector(load, weight.text, width);
	if (bias == ATTN_LOAD_BIAS ||
	    (bias == ATTN_LOAD_BIAS_IF_THERE && attn_load_has_tensor(load, shift.text)))
		norm.bias = attn_load_vector(load, shift.text, width);
	return norm;
}

float *attn_load_computed(attn_loader *load, const char *what, size_t rows, size_t width)
{
	const size_t bytes =
	    attn_load_product(load, attn_load_product(load, rows, width, what), sizeof(float), what);
	if (!attn_load_ok(load))
		return NULL;
	const size_t room = attn_model_room("");
	float *numbers = bytes <= room ? attn_model_memory(load->model, bytes) : NULL;
	if (!numbers)
		attn_load_fail(load, ATTN_MEMORY, "%s takes %zu bytes of memory, there are %zu", what, bytes,
		               room);
	return numbers;
}

/* Sinusoids of more positions than this are a mistake. */
#define MOST_POSITIONS ((size_t)1 << 20)

const float *attn_load_sinusoids(attn_loader *load, size_t positions, size_t width)
{
	const size_t sines = attn_divide_up(width, 2);
	if (positions > MOST_POSITIONS)
		attn_load_fail(load, ATTN_CONFIG, "config.json: %zu positions are over the limit of %zu",
		               positions, MOST_POSITIONS);
	float *table = attn_load_computed(load, "the table of positions", positions, width);
	attn_model_count(load->model, table ? positions * width : 0);
	for (size_t p = 0; table && p < positions; p++) {
		for (size_t i = 0; i < sines; i++) {
			double angle = (double)p / pow(ATTN_SINUSOID_BASE, 2.0 * (double)i / (double)width);
			table[p * width + i] = (float)sin(angle);
			if (sines + i < width)
				table[p * width + sines + i] = (float)cos(angle);
		}
	}
	return table;
}

/* ---- matrices */

/* Columns of several tensors side by side: plain [in, out], or packed where the kernels read that. */
struct matrix {
	size_t in, out;
	float *plain;
	attn_packed *packed;
};

/* Numbers converted at a time. */
#define PIECE_NUMBERS ((size_t)64 << 10)
/* Rows or columns packed at a time come in multiples of it. */
#define PIECE_COLUMNS ((size_t)64)

static struct matrix matrix_new(attn_loader *load, const char *name, size_t in, size_t out)
{
	struct matrix matrix = {.in = in, .out = out};
	size_t bytes = attn_packed_bytes(load->kernels, in, out);
	if (!attn_load_ok(load))
		return matrix;
	if (bytes == 0) {
		matrix.plain = floats_new(load, name, in, out);
		return matrix;
	}
	void *memory = bytes == SIZE_MAX ? NULL : attn_model_memory(load->model, bytes);
	if (!memory) {
		fail_memory(load, name);
		return matrix;
	}
	matrix.packed = attn_packed_init(memory, load->kernels, in, out);
	attn_model_count(load->model, in * out);
	return matrix;
}

/* Elements of a stored [.., width] tensor: columns [column, column + columns) of rows [row, row + rows). */
static void block_read(const attn_stored_tensor *stored, size_t row, size_t rows, size_t column,
                       size_t columns, float *out, size_t stride)
{
	const size_t width = stored->shape[1], element = attn_dtype_size(stored->dtype);
	for (size_t r = 0; r < rows; r++)
		attn_to_float32(stored->dtype,
		                (const char *)stored->data + ((row + r) * width + column) * element, columns,
		                out + r * stride);
}

/* Puts columns [column, column + columns) of a tensor, which are rows of it where it is stored so. */
static void columns_pack(const struct matrix *matrix, size_t first, const attn_stored_tensor *stored,
                         size_t column, size_t columns, attn_layout layout, float *piece)
{
	if (layout == ATTN_OUT_IN) {
		block_read(stored, column, columns, 0, matrix->in, piece, matrix->in);
		attn_packed_put(matrix->packed, first + column, columns, piece, matrix->in, layout);
	} else {
		block_read(stored, 0, matrix->in, column, columns, piece, columns);
		attn_packed_put(matrix->packed, first + column, columns, piece, columns, layout);
	}
}

static void matrix_pack(attn_loader *load, const struct matrix *matrix, size_t first,
                        const attn_stored_tensor *stored, size_t out, attn_layout layout)
{
	size_t step = attn_round_up(attn_larger(PIECE_NUMBERS / matrix->in, 1), PIECE_COLUMNS);
	size_t numbers = 0, bytes = 0;
	step = attn_smaller(step, out);
	if (!attn_size_mul(step, matrix->in, &numbers) || !attn_size_mul(numbers, sizeof(float), &bytes))
		bytes = SIZE_MAX;
	float *piece = malloc(bytes);
	if (!piece) {
		fail_memory(load, stored->name);
		return;
	}
	for (size_t column = 0; column < out; column += step)
		columns_pack(matrix, first, stored, column, attn_smaller(step, out - column), layout, piece);
	free(piece);
}

/* Columns [first, first + out) of the matrix take the numbers of a tensor. */
static void matrix_put(attn_loader *load, const struct matrix *matrix, size_t first,
                       const attn_stored_tensor *stored, size_t out, attn_layout layout)
{
	if (!attn_load_ok(load))
		return;
	if (matrix->packed)
		matrix_pack(load, matrix, first, stored, out, layout);
	else if (layout == ATTN_OUT_IN)
		attn_weights_transpose(stored, 0, out, matrix->plain + first, matrix->out);
	else
		block_read(stored, 0, matrix->in, 0, out, matrix->plain + first, matrix->out);
}

static attn_linear matrix_linear(const struct matrix *matrix)
{
	return (attn_linear){
	    .weight = matrix->plain,
	    .in = matrix->in,
	    .out = matrix->out,
	    .stride = matrix->out,
	    .layout = ATTN_IN_OUT,
	    .packed = matrix->packed,
	};
}

attn_linear attn_linear_columns(const attn_linear *matrix, size_t first, size_t count)
{
	attn_linear part = *matrix;
	part.out = count;
	if (part.bias)
		part.bias += first;
	if (part.weight)
		part.weight += part.layout == ATTN_OUT_IN ? first * part.stride : first;
	part.packed_first += first;
	return part;
}

/* ---- parts of a matrix */

#define MOST_PARTS 4

/* Sum of the parts' outputs; 1 when the load fails of it. */
static size_t parts_out(attn_loader *load, const attn_load_part *parts, size_t count)
{
	size_t out = 0;
	for (size_t i = 0; i < count; i++) {
		if (!attn_size_add(out, parts[i].out, &out)) {
			attn_load_fail(load, ATTN_TENSOR, "tensor \"%s%s\" would be too large", load->prefix,
			               parts[i].weight);
			return 1;
		}
	}
	return out;
}

static bool part_has_bias(const attn_loader *load, const attn_load_part *part)
{
	return part->bias && (!part->bias_if_there || attn_load_has_tensor(load, part->bias));
}

/* [out] the biases side by side, zeros where a part has none; NULL where none has. */
static const float *parts_bias(attn_loader *load, const attn_load_part *parts, size_t count, size_t out)
{
	float *bias = NULL;
	for (size_t i = 0; i < count; i++)
		if (!bias && part_has_bias(load, &parts[i]))
			bias = floats_new(load, parts[i].bias, 1, out);
	float *at = bias;
	for (size_t i = 0; bias && i < count; at += parts[i].out, i++) {
		for (size_t k = 0; k < parts[i].out; k++)
			at[k] = 0;
		const attn_stored_tensor *stored =
		    part_has_bias(load, &parts[i]) ? take(load, parts[i].bias, 1, &parts[i].out) : NULL;
		if (stored)
			attn_to_float32(stored->dtype, stored->data, parts[i].out, at);
	}
	return bias;
}

attn_linear attn_load_parts(attn_loader *load, size_t in, const attn_load_part *parts, size_t count,
                            attn_layout layout)
{
	const attn_stored_tensor *stored[MOST_PARTS];
	for (size_t i = 0; i < count; i++) {
		const size_t shape[] = {layout == ATTN_OUT_IN ? parts[i].out : in,
		                        layout == ATTN_OUT_IN ? in : parts[i].out};
		stored[i] = take(load, parts[i].weight, 2, shape);
	}
	const size_t out = parts_out(load, parts, count);
	struct matrix matrix = matrix_new(load, parts[0].weight, in, out);
	size_t first = 0;
	for (size_t i = 0; i < count; first += parts[i].out, i++)
		matrix_put(load, &matrix, first, stored[i], parts[i].out, layout);
	attn_linear linear = matrix_linear(&matrix);
	linear.bias = parts_bias(load, parts, count, out);
	return linear;
}

attn_linear attn_load_linear(attn_loader *load, const char *name, size_t in, size_t out, attn_layout layout,
                             enum attn_load_bias bias)
{
	const struct name weight = name_with(name, ".weight"), shift = name_with(name, ".bias");
	const attn_load_part part = {.weight = weight.text,
	                             .bias = bias == ATTN_LOAD_NO_BIAS ? NULL : shift.text,
	                             .out = out,
	                             .bias_if_there = bias == ATTN_LOAD_BIAS_IF_THERE};
	return attn_load_parts(load, in, &part, 1, layout);
}

/* ---- tokens and head */

/* A table that is also the head, held once: as rows where the kernels read plain matrices, else packed. */
static attn_table tied_load(attn_loader *load, const char *name, size_t count, size_t width,
                            attn_linear *head)
{
	attn_table table = {.count = count, .width = width};
	if (attn_packed_bytes(load->kernels, width, count) == 0) {
		table = attn_load_table(load, name, count, width);
		*head = (attn_linear){
		    .weight = table.rows, .in = width, .out = count, .stride = width, .layout = ATTN_OUT_IN};
		return table;
	}
	const attn_load_part part = {.weight = name, .out = count};
	*head = attn_load_parts(load, width, &part, 1, ATTN_OUT_IN);
	table.packed = head->packed;
	return table;
}

attn_table attn_load_tokens(attn_loader *load, const char *name, size_t count, size_t width, bool tied)
{
	static const char head_name[] = "lm_head.weight";
	attn_head *head = attn_model_head_of(load->model);
	attn_loader bare = *load; /* without prefix */
	attn_load_prefix(&bare, "%s", "");
	const bool ties = attn_load_flag(&bare, "tie_word_embeddings", tied);
	head->scale = 1;
	attn_table table;
	if (!ties && attn_load_has_tensor(&bare, head_name)) {
		head->linear =
		    attn_load_linear(&bare, "lm_head", width, count, ATTN_OUT_IN, ATTN_LOAD_NO_BIAS);
		load->status = bare.status;
		return attn_load_table(load, name, count, width);
	}
	load->status = bare.status;
	table = tied_load(load, name, count, width, &head->linear);
	attn_load_ignore(load, head_name);
	return table;
}

attn_stack *attn_load_stacks(attn_loader *load, size_t first, size_t second)
{
	if (!attn_model_make_stacks(load->model, first, second))
		attn_load_fail(load, ATTN_MEMORY, "out of memory");
	return attn_model_stack_of(load->model, ATTN_FIRST_STACK);
}
