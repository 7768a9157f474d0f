/*
 * attention_checks.h - what must hold of any bytes as the body of POST /v1/attention, for the drivers of both
 * forms. Aborts where it does not.
 */
#ifndef ATTND_TESTS_ATTENTION_CHECKS_H
#define ATTND_TESTS_ATTENTION_CHECKS_H

#include "codec/attention_request.h"

/* Refused with a problem that is a client's to mend and can be told as JSON; or a request whose parts fit
 * each other and whose reply, zeros here, keeps its form within its bound. */
void attention_checks(const uint8_t *data, size_t size, struct body_forms forms);

#endif
