#include "attention_body.h"

#include "suite.h"

#include <string.h>

struct attention_request *attention_body_parse_for(const char *text, struct body_forms forms,
                                                   const attn_model *model,
                                                   const struct attention_limits *limits,
                                                   struct problem *problem)
{
	char *body = strdup(text);
	ck_assert_ptr_nonnull(body);
	for (char *c = body; *c != '\0'; c++)
		*c = (char)(*c == '\'' ? '"' : *c);
	struct attention_request *request =
	    attention_request_parse(body, strlen(body), forms, model, limits, NULL, problem);
	free(body);
	return request;
}

struct attention_request *attention_body_parse(const char *text, const attn_model *model,
                                               const struct attention_limits *limits, struct problem *problem)
{
	return attention_body_parse_for(text, (struct body_forms){0}, model, limits, problem);
}
