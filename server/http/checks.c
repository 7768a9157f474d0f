#include "http/checks.h"

#include "http/lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void note_first(const char **kept, const char *value)
{
	if (!*kept)
		*kept = value;
}

static void note_line(struct header_lines *lines, const char *value)
{
	if (lines->count < HEADER_LINES_MAX)
		lines->text[lines->count] = value;
	lines->count++;
}

void headers_note(struct request_headers *headers, const char *name, const char *value)
{
	if (!value)
		value = "";
	const struct {
		const char *name;
		const char **kept;
		size_t *count;
	} known[] = {
	    {"Content-Length", &headers->content_length, &headers->content_lengths},
	    {"Transfer-Encoding", &headers->transfer_encoding, &headers->transfer_encodings},
	    {"Content-Type", &headers->content_type, NULL},
	    {"Content-Encoding", &headers->content_encoding, &headers->content_encodings},
	    {"Host", &headers->host, &headers->hosts},
	    {"Authorization", &headers->authorization, &headers->authorizations},
	    {"Origin", &headers->origin, &headers->origins},
	    {"Access-Control-Request-Method", &headers->asked_method, NULL},
	    {"Expect", &headers->expect, NULL},
	    {"X-Timeout-Ms", &headers->timeout, NULL},
	    {"X-Request-Id", &headers->request_id, NULL},
	    {"traceparent", &headers->traceparent, NULL},
	};
	if (strcasecmp(name, "Accept") == 0)
		note_line(&headers->accept, value);
	if (strcasecmp(name, "Accept-Encoding") == 0)
		note_line(&headers->accept_encoding, value);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcasecmp(name, known[i].name) != 0)
			continue;
		note_first(known[i].kept, value);
		if (known[i].count)
			++*known[i].count;
		return;
	}
}

bool headers_chunked(const struct request_headers *headers)
{
	return headers->transfer_encodings > 0;
}

uint64_t headers_length(const struct request_headers *headers)
{
	if (!headers->content_length)
		return 0;
	errno = 0;
	unsigned long long length = strtoull(headers->content_length, NULL, 10);
	return errno == ERANGE ? UINT64_MAX : length;
}

bool headers_have_body(const struct request_headers *headers)
{
	return headers_chunked(headers) || headers_length(headers) > 0;
}

bool headers_expect_continue(const struct request_headers *headers, const char *version)
{
	return headers->expect && strcasecmp(headers->expect, "100-continue") == 0 &&
	       strcmp(version, "HTTP/1.0") != 0 && headers_have_body(headers);
}

static bool bad_header(struct problem *problem, const char *detail)
{
	return problem_set(problem, PROBLEM_BAD_HEADER, "", "%s", detail);
}

bool check_framing(const struct request_headers *headers, const char *version, struct problem *problem)
{
	if (headers->content_lengths > 1)
		return bad_header(problem, "Content-Length comes more than once");
	if (headers->transfer_encodings > 0 && headers->content_lengths > 0)
		return bad_header(problem, "Content-Length and Transfer-Encoding exclude each other");
	if (headers->transfer_encodings > 1 ||
	    (headers->transfer_encoding && strcasecmp(headers->transfer_encoding, "chunked") != 0))
		return bad_header(problem, "the only Transfer-Encoding known is chunked, once");
	if (headers->transfer_encodings > 0 && strcmp(version, "HTTP/1.0") == 0)
		return bad_header(problem, "HTTP/1.0 has no Transfer-Encoding");
	if (headers->hosts != 1 && strcmp(version, "HTTP/1.0") != 0)
		return bad_header(problem, headers->hosts == 0 ? "HTTP/1.1 needs a Host header"
		                                               : "Host comes more than once");
	if (headers->hosts > 1)
		return bad_header(problem, "Host comes more than once");
	return true;
}

/* ---- Accept (RFC 9110 section 12.5.1) */

static const char *skip_space(const char *text)
{
	return text + strspn(text, " \t");
}

/* How closely the media range [range, range + length) names the type: 0 not at all, 1 any, 2 type, 3 exactly.
 */
static int range_precision(const char *range, size_t length, const char *type)
{
	size_t main_length = strcspn(type, "/") + 1;
	if (length == 3 && strncmp(range, "*/*", 3) == 0)
		return 1;
	if (length == main_length + 1 && range[length - 1] == '*')
		return strncasecmp(range, type, main_length) == 0 ? 2 : 0;
	return length == strlen(type) && strncasecmp(range, type, length) == 0 ? 3 : 0;
}

/* Goes over one line; *precision and *quality are those of the closest range met so far. */
static void accept_line(const char *line, const char *type, int *precision, double *quality)
{
	for (struct list_item range; list_next(&line, &range);) {
		int found = range_precision(range.text, range.length, type);
		if (found > *precision) {
			*precision = found;
			*quality = range.quality;
		}
	}
}

/* What Accept says of a type: the quality of the range that names it most closely, 0 where none does. */
struct preference {
	int precision;
	double quality;
};

static struct preference preference_of(const struct request_headers *headers, const char *type)
{
	struct preference preference = {0};
	bool empty = true;
	for (size_t i = 0; i < headers->accept.count; i++) {
		empty = empty && *skip_space(headers->accept.text[i]) == '\0';
		accept_line(headers->accept.text[i], type, &preference.precision, &preference.quality);
	}
	return empty ? (struct preference){.quality = 1} : preference;
}

static bool check_accept_lines(const struct request_headers *headers, struct problem *problem)
{
	return headers->accept.count <= HEADER_LINES_MAX ||
	       problem_set(problem, PROBLEM_BAD_HEADER, "", "%zu Accept lines are more than %d",
	                   headers->accept.count, HEADER_LINES_MAX);
}

bool check_accept(const struct request_headers *headers, const char *type, struct problem *problem)
{
	if (!check_accept_lines(headers, problem))
		return false;
	return preference_of(headers, type).quality > 0 ||
	       problem_set(problem, PROBLEM_NOT_ACCEPTABLE, "", "the reply is %s, which Accept: %s rules out",
	                   type, headers->accept.text[0]);
}

bool check_reply_form(const struct request_headers *headers, enum body_form *form, struct problem *problem)
{
	struct preference best = {0};
	if (!check_accept_lines(headers, problem))
		return false;
	for (enum body_form each = BODY_JSON; each < BODY_FORMS; each++) {
		struct preference found = preference_of(headers, body_form_media_type(each));
		if (found.quality < best.quality ||
		    (found.quality == best.quality && found.precision <= best.precision))
			continue;
		best = found;
		*form = each;
	}
	return best.quality > 0 ||
	       problem_set(problem, PROBLEM_NOT_ACCEPTABLE, "",
	                   "the reply is %s or %s, both of which Accept: %s rules out",
	                   body_form_media_type(BODY_JSON), body_form_media_type(BODY_SAFETENSORS),
	                   headers->accept.text[0]);
}

/* ---- the body's type */

static bool is_type(const char *content_type, const char *type)
{
	size_t length = strcspn(content_type, "; \t");
	if (length != strlen(type) || strncasecmp(content_type, type, length) != 0)
		return false;
	const char *rest = skip_space(content_type + length);
	return *rest == '\0' || *rest == ';';
}

/* The form of that media type; BODY_FORMS where it is no form's. */
static enum body_form form_of(const char *content_type)
{
	enum body_form form = BODY_JSON;
	while (form < BODY_FORMS && !is_type(content_type, body_form_media_type(form)))
		form++;
	return form;
}

bool check_content(const struct request_headers *headers, enum body_form *form, struct problem *problem)
{
	const char *hint = "say Content-Type: application/json (with curl: --json, or -H), or "
	                   "application/x-safetensors";
	if (!headers->content_type)
		return problem_set(problem, PROBLEM_MEDIA_TYPE, "", "the body has no Content-Type; %s", hint);
	*form = form_of(headers->content_type);
	if (*form == BODY_FORMS)
		return problem_set(problem, PROBLEM_MEDIA_TYPE, "", "the body is %.100s; %s",
		                   headers->content_type, hint);
	return true;
}

bool check_timeout(const struct request_headers *headers, uint64_t limit_ms, uint64_t *timeout_ms,
                   struct problem *problem)
{
	*timeout_ms = limit_ms;
	if (!headers->timeout)
		return true;
	const char *text = headers->timeout;
	size_t digits = strspn(text, "0123456789");
	bool whole = digits > 0 && digits < 19 && *skip_space(text + digits) == '\0';
	uint64_t value = whole ? strtoull(text, NULL, 10) : 0;
	if (value < 1 || value > limit_ms)
		return problem_set(
		    problem, PROBLEM_BAD_HEADER, "",
		    "X-Timeout-Ms is %.40s; it must be an integer from 1 to %llu, the configured deadline",
		    text, (unsigned long long)limit_ms);
	*timeout_ms = value;
	return true;
}

bool request_id_usable(const char *id)
{
	if (!id)
		return false;
	size_t length = 0;
	for (; id[length]; length++) {
		if (id[length] <= ' ' || id[length] > '~' || length == REQUEST_ID_MAX)
			return false;
	}
	return length > 0;
}
