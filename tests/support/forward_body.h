/*
 * forward_body.h - bodies of forward requests as tests write them, single quotes for double ones, for the
 * small models of tests/models.
 */
#ifndef ATTND_TESTS_FORWARD_BODY_H
#define ATTND_TESTS_FORWARD_BODY_H

#include "codec/forward_request.h"

/* A model of tests/models for the plain kernels, for attn_model_free. */
attn_model *forward_model(const char *name);

/* As forward_request_parse; the first for a model without a tokenizer. */
struct forward_request *forward_body_parse(const char *text, struct body_forms forms, const attn_model *model,
                                           const struct attention_limits *limits, struct problem *problem);
struct forward_request *forward_body_read(const char *text, struct body_forms forms, const attn_model *model,
                                          const struct text_reader *reader,
                                          const struct attention_limits *limits, struct problem *problem);

#endif
