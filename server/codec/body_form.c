#include "codec/body_form.h"

const char *body_form_media_type(enum body_form form)
{
	static const char *const types[BODY_FORMS] = {
	    [BODY_JSON] = "application/json",
	    [BODY_SAFETENSORS] = "application/x-safetensors",
	};
	return types[form];
}
