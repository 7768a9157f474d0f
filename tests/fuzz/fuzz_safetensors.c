/*
 * Any bytes as a safetensors file: refused with a message, or every tensor lies inside the bytes, has the
 * size its shape says, and is found under its name.
 */
#include "attn.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void check_tensor(const attn_safetensors *file, const attn_stored_tensor *tensor, const uint8_t *data,
                         size_t size)
{
	size_t count, bytes;
	const uint8_t *begin = tensor->data;
	expect(tensor->rank <= ATTN_MAX_RANK);
	expect(attn_size_product(tensor->shape, tensor->rank, &count));
	expect(attn_size_mul(count, attn_dtype_size(tensor->dtype), &bytes) && bytes == tensor->bytes);
	expect(begin >= data && begin + bytes <= data + size);
	expect(attn_safetensors_find(file, tensor->name) == tensor);
	if (tensor->dtype == ATTN_BOOL || count == 0 || count > 4096)
		return;
	float *numbers = malloc(count * sizeof(float));
	expect(numbers != NULL);
	expect(attn_to_float32(tensor->dtype, tensor->data, count, numbers) == ATTN_OK);
	free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	attn_safetensors *file = NULL;
	attn_error error = {.status = ATTN_OK};
	attn_status status = attn_safetensors_parse(data, size, &file, &error);
	if (status != ATTN_OK) {
		expect(error.status == status && error.message[0] != '\0');
		expect(file == NULL);
		return 0;
	}
	for (size_t i = 0; i < attn_safetensors_count(file); i++)
		check_tensor(file, attn_safetensors_at(file, i), data, size);
	attn_safetensors_metadata(file, "format");
	attn_safetensors_free(file);
	return 0;
}
