#include "http/upload.h"

#include "codec/large.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)64 * 1024) /* of a body that grows */

/* Charges and takes memory for `capacity` bytes. */
static bool resize(struct upload *upload, struct budget *budget, size_t capacity, struct problem *problem)
{
	switch (budget_grow(budget, upload->charged, capacity)) {
	case BUDGET_NEVER:
		return problem_set(problem, PROBLEM_NEVER_FITS, "",
		                   "a body of %zu bytes does not fit the memory budget of %zu bytes",
		                   capacity, budget->limit);
	case BUDGET_LATER:
		return problem_set(problem, PROBLEM_BUDGET_FULL, "",
		                   "a body of %zu bytes does not fit beside the requests in flight now",
		                   capacity);
	case BUDGET_OK:
		break;
	}
	char *body = realloc(upload->body, capacity > 0 ? capacity : 1);
	if (!body) {
		budget_give_back(budget, capacity - upload->charged);
		return problem_set(problem, PROBLEM_MEMORY, "", "the system refused %zu bytes for the body",
		                   capacity);
	}
	upload->body = large_block(body, capacity);
	upload->capacity = upload->charged = capacity;
	return true;
}

bool upload_begin(struct upload *upload, struct budget *budget, size_t limit, bool sized, uint64_t length,
                  struct problem *problem)
{
	*upload = (struct upload){.limit = limit};
	if (sized && length > limit)
		return problem_set(problem, PROBLEM_BODY_TOO_LARGE, "",
		                   "the body has %llu bytes; the limit is %zu", (unsigned long long)length,
		                   limit);
	return resize(upload, budget, sized ? (size_t)length : 0, problem);
}

/* Doubles, within what may be; at least what is needed now. */
static size_t grown_capacity(const struct upload *upload, const struct budget *budget, size_t needed)
{
	size_t most = upload->limit < budget->limit ? upload->limit : budget->limit;
	size_t wanted = upload->capacity <= most / 2 ? upload->capacity * 2 : most;
	if (wanted < FIRST_CAPACITY)
		wanted = FIRST_CAPACITY < most ? FIRST_CAPACITY : most;
	return wanted > needed ? wanted : needed;
}

bool upload_append(struct upload *upload, struct budget *budget, const char *data, size_t size,
                   struct problem *problem)
{
	if (size > upload->limit - upload->length)
		return problem_set(problem, PROBLEM_BODY_TOO_LARGE, "",
		                   "the body is over %zu bytes, the limit", upload->limit);
	size_t needed = upload->length + size;
	if (needed > upload->capacity &&
	    !resize(upload, budget, grown_capacity(upload, budget, needed), problem))
		return false;
	memcpy(upload->body + upload->length, data, size);
	upload->length = needed;
	return true;
}

void upload_clear(struct upload *upload, struct budget *budget)
{
	free(upload->body);
	budget_give_back(budget, upload->charged);
	*upload = (struct upload){.limit = upload->limit};
}
