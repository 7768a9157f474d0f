#include "codec/tensor.h"

#include <stdlib.h>

void tensor_clear(struct tensor *tensor)
{
	free(tensor->data);
	*tensor = (struct tensor){0};
}

void mask_tensor_clear(struct mask_tensor *tensor)
{
	free(tensor->data);
	*tensor = (struct mask_tensor){0};
}
