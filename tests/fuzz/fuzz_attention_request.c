/*
 * Any bytes as a JSON body of POST /v1/attention, answered in JSON.
 */
#include "attention_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	attention_checks(data, size, (struct body_forms){BODY_JSON, BODY_JSON});
	return 0;
}
