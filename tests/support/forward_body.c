#include "forward_body.h"

#include "model_files.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

attn_model *forward_model(const char *name)
{
	char folder[128];
	attn_model *model = NULL;
	attn_error err = {.status = ATTN_OK};
	snprintf(folder, sizeof(folder), "tests/models/%s", name);
	ck_assert_msg(attn_model_open(folder, plain_kernels(), &model, &err) == ATTN_OK, "%s", err.message);
	return model;
}

struct forward_request *forward_body_parse(const char *text, struct body_forms forms, const attn_model *model,
                                           const struct attention_limits *limits, struct problem *problem)
{
	static const struct text_reader none = {.tokenizer = NULL};
	return forward_body_read(text, forms, model, &none, limits, problem);
}

struct forward_request *forward_body_read(const char *text, struct body_forms forms, const attn_model *model,
                                          const struct text_reader *reader,
                                          const struct attention_limits *limits, struct problem *problem)
{
	char *body = strdup(text);
	ck_assert_ptr_nonnull(body);
	for (char *c = body; *c != '\0'; c++)
		*c = (char)(*c == '\'' ? '"' : *c);
	struct forward_request *request =
	    forward_request_parse(body, strlen(body), forms, model, reader, limits, NULL, problem);
	free(body);
	return request;
}
