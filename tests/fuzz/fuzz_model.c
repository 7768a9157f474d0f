/*
 * Any bytes as a model directory: config.json up to the first NUL, model.safetensors after it. Refused with a
 * message, or a model whose numbers fit each other and whose stacks run.
 */
#include "attn.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH = 2, WIDEST = 4096 };

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

static void remove_folder(const char *folder)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/config.json", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/model.safetensors", folder);
	unlink(path);
	rmdir(folder);
}

/* Two positions through every stack, of tokens 0 or of zeros. */
static void run(const attn_model *model, const attn_kernels *kernels, const attn_model_info *info)
{
	static const int64_t tokens[LENGTH];
	static const float zeros[LENGTH * WIDEST];
	static float pooled[WIDEST];
	attn_forward_call call = {.lengths = {LENGTH, LENGTH},
	                          .second = info->stacks[ATTN_SECOND_STACK].layers > 0};
	attn_forward_sequence sequence = {.pooled = pooled};
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	for (size_t s = 0; s < ATTN_STACKS; s++) {
		if (info->stacks[s].width > WIDEST || info->stacks[s].positions == 1)
			goto done;
		sequence.stacks[s].tokens = info->vocabulary > 0 ? tokens : NULL;
		sequence.stacks[s].embeddings = zeros;
	}
	attn_status status = attn_model_forward(model, kernels, &executor, &call, &sequence, 1);
	expect(status == (info->stacks[ATTN_FIRST_STACK].layers > 0 ? ATTN_OK : ATTN_INVALID));
	expect(attn_arena_peak(scratch) <= attn_forward_scratch_bytes(model, &call, 1));
done:
	attn_arena_free(scratch);
}

static void check_model(const attn_model *model, const attn_kernels *kernels)
{
	const attn_model_info info = attn_model_info_of(model);
	const size_t counts[] = {info.layers, info.cross_layers};
	expect(info.layers + info.cross_layers > 0 && info.bytes > 0);
	for (int kind = ATTN_SELF; kind <= ATTN_CROSS; kind++) {
		for (size_t i = 0; i < counts[kind]; i++) {
			attn_shape shape;
			expect(attn_layer_shape(attn_model_layer(model, i, (attn_layer_kind)kind), 1, 1, 0,
			                        &shape));
		}
	}
	run(model, kernels, &info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/attnd-fuzz-XXXXXX";
	const uint8_t *end = memchr(data, 0, size);
	attn_kernels *kernels = NULL;
	attn_model *model = NULL;
	attn_error error = {.status = ATTN_OK};
	if (end == NULL)
		return 0;
	const size_t text = (size_t)(end - data);
	expect(attn_kernels_new(attn_kernels_list(0), &kernels) == ATTN_OK && mkdtemp(folder) != NULL);
	write_file(folder, "config.json", data, text);
	write_file(folder, "model.safetensors", end + 1, size - text - 1);
	attn_status status = attn_model_open(folder, kernels, &model, &error);
	remove_folder(folder);
	if (status == ATTN_OK)
		check_model(model, kernels);
	else
		expect(error.status == status && error.message[0] != '\0' && model == NULL);
	attn_model_free(model);
	attn_kernels_free(kernels);
	return 0;
}
