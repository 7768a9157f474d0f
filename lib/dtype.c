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

static void store16(unsigned char *p, uint16_t bits)
{
	bits = htole16(bits);
	memcpy(p, &bits, sizeof(bits));
}

static void store32(unsigned char *p, uint32_t bits)
{
	bits = htole32(bits);
	memcpy(p, &bits, sizeof(bits));
}

static void store64(unsigned char *p, uint64_t bits)
{
	bits = htole64(bits);
	memcpy(p, &bits, sizeof(bits));
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* bits / 2^count to nearest, ties to even. */
static uint32_t shift_to_even(uint32_t bits, unsigned count)
{
	uint32_t half = 1U << (count - 1), kept = bits >> count;
	return kept + (((bits & (2 * half - 1)) + (kept & 1)) > half);
}

static uint16_t float_to_half(float value)
{
	const uint32_t sign = bits_of(value) >> 16 & 0x8000U, rest = bits_of(value) & 0x7FFFFFFFU;
	if (rest > 0x7F800000U) /* NaN: quiet, the upper bits of its payload kept */
		return (uint16_t)(sign | 0x7E00U | (rest >> 13 & 0x3FFU));
	if (rest >= 0x477FF000U) /* 65520 is halfway to what would be the next number */
		return (uint16_t)(sign | 0x7C00U);
	if (rest >= 113U << 23) /* a carry out of the fraction goes into the exponent as it should */
		return (uint16_t)(sign | shift_to_even(rest - ((127U - 15U) << 23), 13));
	if (rest < 102U << 23) /* under half of the least subnormal */
		return (uint16_t)sign;
	uint32_t fraction = (rest & 0x7FFFFFU) | 0x800000U;
	return (uint16_t)(sign | shift_to_even(fraction, 126U - (rest >> 23)));
}

static uint16_t float_to_bfloat(float value)
{
	const uint32_t bits = bits_of(value);
	if ((bits & 0x7FFFFFFFU) > 0x7F800000U)
		return (uint16_t)(bits >> 16 | 0x40U);
	return (uint16_t)shift_to_even(bits, 16);
}

attn_status attn_from_float32(attn_dtype dtype, const float *source, size_t count, void *out)
{
	unsigned char *p = out;
	double wide;
	uint64_t bits;
	switch (dtype) {
	case ATTN_FLOAT32:
		for (size_t i = 0; i < count; i++)
			store32(p + 4 * i, bits_of(source[i]));
		return ATTN_OK;
	case ATTN_FLOAT16:
		for (size_t i = 0; i < count; i++)
			store16(p + 2 * i, float_to_half(source[i]));
		return ATTN_OK;
	case ATTN_BFLOAT16:
		for (size_t i = 0; i < count; i++)
			store16(p + 2 * i, float_to_bfloat(source[i]));
		return ATTN_OK;
	case ATTN_FLOAT64:
		for (size_t i = 0; i < count; i++) {
			wide = (double)source[i];
			memcpy(&bits, &wide, sizeof(bits));
			store64(p + 8 * i, bits);
		}
		return ATTN_OK;
	case ATTN_INT64:
	case ATTN_INT32:
	case ATTN_UINT8:
	case ATTN_BOOL:
		break;
	}
	return ATTN_UNSUPPORTED;
}
