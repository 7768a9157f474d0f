#include "codec/problem.h"

#include "codec/json_text.h"
#include "codec/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *code;
	int status;
	const char *title;
} problems[] = {
#define X(name, code, status, title) {code, status, title},
    PROBLEM_MAP(X)
#undef X
};

const char *problem_code_text(enum problem_code code)
{
	return problems[code].code;
}

const char *problem_title(enum problem_code code)
{
	return problems[code].title;
}

int problem_status(enum problem_code code)
{
	return problems[code].status;
}

/* Where a code stands in the order in which problems are told; what is told first is lowest. */
static int problem_place(enum problem_code code)
{
	switch (code) {
	case PROBLEM_SYNTAX:
	case PROBLEM_BAD_SAFETENSORS:
	case PROBLEM_TOO_DEEP:
	case PROBLEM_MEMORY:
		return 0;
	case PROBLEM_NOT_AN_OBJECT:
	case PROBLEM_NOT_FINITE:
		return 1;
	case PROBLEM_DUPLICATE_KEY:
	case PROBLEM_NUL_ESCAPE:
		return 2;
	case PROBLEM_SHAPE_OVERFLOW:
		return 3;
	case PROBLEM_RAGGED:
	case PROBLEM_SHAPE_MISMATCH:
		return 4;
	case PROBLEM_NONE:
		return 7;
	default:
		return problem_status(code) == 413 ? 5 : 6;
	}
}

static void problem_fill(struct problem *problem, enum problem_code code, const char *pointer,
                         const char *format, va_list args)
{
	problem->code = code;
	snprintf(problem->pointer, sizeof(problem->pointer), "%s", pointer);
	problem->pointer[utf8_cut(problem->pointer, strlen(problem->pointer))] = '\0';
	vsnprintf(problem->detail, sizeof(problem->detail), format, args);
	problem->detail[utf8_cut(problem->detail, strlen(problem->detail))] = '\0';
}

bool problem_set(struct problem *problem, enum problem_code code, const char *pointer, const char *format,
                 ...)
{
	va_list args;
	va_start(args, format);
	if (problem->code == PROBLEM_NONE)
		problem_fill(problem, code, pointer, format, args);
	va_end(args);
	return false;
}

bool problem_tells(const struct problem *problem, enum problem_code code)
{
	return problem_place(code) < problem_place(problem->code);
}

bool problem_note(struct problem *problem, enum problem_code code, const char *pointer, const char *format,
                  ...)
{
	va_list args;
	va_start(args, format);
	if (problem_tells(problem, code))
		problem_fill(problem, code, pointer, format, args);
	va_end(args);
	return false;
}

bool problem_set_status(struct problem *problem, attn_status status)
{
	if (status == ATTN_MEMORY)
		return problem_set(problem, PROBLEM_MEMORY, "", "the system refused memory for this request");
	if (status == ATTN_CANCELLED)
		return problem_set(problem, PROBLEM_DEADLINE, "",
		                   "the deadline passed before the result was ready");
	return problem_set(problem, PROBLEM_INTERNAL, "", "the computation failed: %s",
	                   attn_status_text(status));
}

/* Room that json_put_escaped may take for the pointer and the detail, and what stands around them. */
static_assert(6 * (sizeof(((struct problem *)0)->pointer) + sizeof(((struct problem *)0)->detail)) + 512 <=
                  PROBLEM_JSON_MAX,
              "PROBLEM_JSON_MAX holds every problem");

size_t problem_to_json(const struct problem *problem, char *out, size_t size)
{
	assert(size >= PROBLEM_JSON_MAX);
	const char *code = problem_code_text(problem->code);
	size_t length =
	    (size_t)snprintf(out, size,
	                     "{\"type\":\"urn:attnd:problem:%s\",\"title\":\"%s\",\"status\":%d,"
	                     "\"code\":\"%s\",\"detail\":\"",
	                     code, problem_title(problem->code), problem_status(problem->code), code);
	length += json_put_escaped(out + length, problem->detail);
	length += (size_t)snprintf(out + length, size - length, "\",\"pointer\":\"");
	length += json_put_escaped(out + length, problem->pointer);
	length += (size_t)snprintf(out + length, size - length, "\"}\n");
	return length;
}
