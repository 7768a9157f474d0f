/*
 * upload.h - a request body as it arrives: memory taken once when its length is known, charged to the budget.
 *
 * Bytes are charged before the memory is taken; upload_clear gives back what was not handed on. One thread.
 */
#ifndef ATTND_HTTP_UPLOAD_H
#define ATTND_HTTP_UPLOAD_H

#include "codec/problem.h"
#include "pipeline/budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct upload {
	char *body; /* malloc'd, or NULL */
	size_t length, capacity;
	size_t limit;   /* bytes a body may have */
	size_t charged; /* to the budget */
};

/* A body of `length` announced bytes, or (not sized) one that grows. BODY_TOO_LARGE, NEVER_FITS, BUDGET_FULL
 * or MEMORY; nothing is held then. */
bool upload_begin(struct upload *upload, struct budget *budget, size_t limit, bool sized, uint64_t length,
                  struct problem *problem);
/* The same problems; what came before is still held then. */
bool upload_append(struct upload *upload, struct budget *budget, const char *data, size_t size,
                   struct problem *problem);
void upload_clear(struct upload *upload, struct budget *budget);

#endif
