#include "attn.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* X(NAME, safetensors' name, bytes) in the order of attn_dtype. */
#define DTYPE_MAP(X)                                                                                         \
	X(FLOAT32, "F32", 4)                                                                                 \
	X(FLOAT16, "F16", 2)                                                                                 \
	X(BFLOAT16, "BF16", 2)                                                                               \
	X(FLOAT64, "F64", 8)                                                                                 \
	X(INT64, "I64", 8)                                                                                   \
	X(INT32, "I32", 4)                                                                                   \
	X(UINT8, "U8", 1)                                                                                    \
	X(BOOL, "BOOL", 1)

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
#define X(name, text, bytes) [ATTN_##name] = {text, bytes},
    DTYPE_MAP(X)
#undef X
};

size_t attn_dtype_size(attn_dtype dtype)
{
	assert((size_t)dtype < sizeof(dtypes) / sizeof(dtypes[0]));
	return dtypes[dtype].size;
}

const char *attn_dtype_name(attn_dtype dtype)
{
	assert((size_t)dtype < sizeof(dtypes) / sizeof(dtypes[0]));
	return dtypes[dtype].name;
}

static uint16_t load16(const unsigned char *p)
{
	uint16_t bits;
	memcpy(&bits, p, sizeof(bits));
	return le16toh(bits);
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t bits;
	memcpy(&bits, p, sizeof(bits));
	return le32toh(bits);
}

static uint64_t load64(const unsigned char *p)
{
	uint64_t bits;
	memcpy(&bits, p, sizeof(bits));
	return le64toh(bits);
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. Every value is a float32. */
static float half_to_float(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
	uint32_t rest = half & 0x7FFFU;
	if (rest >= 0x7C00U) /* infinity, NaN */
		return float_of(sign | 0x7F800000U | (rest & 0x3FFU) << 13);
	if (rest >= 0x400U)
		return float_of(sign | ((rest << 13) + ((127U - 15U) << 23)));
	float magnitude = (float)rest * 0x1p-24F; /* subnormal: exact */
	return sign ? -magnitude : magnitude;
}

attn_status attn_to_float32(attn_dtype dtype, const void *source, size_t count, float *out)
{
	const unsigned char *p = source;
	switch (dtype) {
	case ATTN_FLOAT32:
		for (size_t i = 0; i < count; i++)
			out[i] = float_of(load32(p + 4 * i));
		return ATTN_OK;
	case ATTN_FLOAT16:
		for (size_t i = 0; i < count; i++)
			out[i] = half_to_float(load16(p + 2 * i));
		return ATTN_OK;
	case ATTN_BFLOAT16:
		for (size_t i = 0; i < count; i++)
			out[i] = float_of((uint32_t)load16(p + 2 * i) << 16);
		return ATTN_OK;
	case ATTN_FLOAT64:
		for (size_t i = 0; i < count; i++)
			out[i] = (float)double_of(load64(p + 8 * i));
		return ATTN_OK;
	case ATTN_INT64:
		for (size_t i = 0; i < count; i++)
			out[i] = (float)(int64_t)load64(p + 8 * i);
		return ATTN_OK;
	case ATTN_INT32:
		for (size_t i = 0; i < count; i++)
			out[i] = (float)(int32_t)load32(p + 4 * i);
		return ATTN_OK;
	case ATTN_UINT8:
		for (size_t i = 0; i < count; i++)
			out[i] = (float)p[i];
		return ATTN_OK;
	case ATTN_BOOL:
		break;
	}
	return ATTN_UNSUPPORTED;
}
