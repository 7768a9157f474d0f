/*
 * attention_body.h - bodies of attention requests as tests write them: single quotes for double ones.
 */
#ifndef ATTND_TESTS_ATTENTION_BODY_H
#define ATTND_TESTS_ATTENTION_BODY_H

#include "codec/attention_request.h"

/* As attention_request_parse. */
struct attention_request *attention_body_parse_for(const char *text, struct body_forms forms,
                                                   const attn_model *model,
                                                   const struct attention_limits *limits,
                                                   struct problem *problem);
/* The same, answered in JSON. */
struct attention_request *attention_body_parse(const char *text, const attn_model *model,
                                               const struct attention_limits *limits,
                                               struct problem *problem);

#endif
