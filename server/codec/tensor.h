/*
 * tensor.h - the tensors of a request: numbers or booleans with their shape, owned.
 */
#ifndef ATTND_CODEC_TENSOR_H
#define ATTND_CODEC_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#define TENSOR_MAX_RANK 4

/* data is malloc'd, row-major; NULL when the tensor is absent. An empty tensor has data that is not NULL. */
struct tensor {
	float *data;
	size_t rank;
	size_t dims[TENSOR_MAX_RANK];
	size_t count; /* product of dims */
};

/* The same of booleans, one byte each. */
struct mask_tensor {
	uint8_t *data;
	size_t rank;
	size_t dims[TENSOR_MAX_RANK];
	size_t count;
};

void tensor_clear(struct tensor *tensor);
void mask_tensor_clear(struct mask_tensor *tensor);

#endif
