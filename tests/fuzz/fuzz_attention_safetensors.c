/*
 * Any bytes as a safetensors body of POST /v1/attention, answered in the same form.
 */
#include "attention_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	attention_checks(data, size, (struct body_forms){BODY_SAFETENSORS, BODY_SAFETENSORS});
	return 0;
}
