#include "http/checks.h"
#include "suite.h"

#include <string.h>

#define ACCEPT(...) ((const char *const[]){__VA_ARGS__, NULL})

static enum problem_code accept_json(const char *const *lines)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	for (; *lines; lines++)
		headers_note(&headers, "accept", *lines);
	bool ok = check_accept(&headers, "application/json", &problem);
	ck_assert_int_eq(ok, problem.code == PROBLEM_NONE);
	return problem.code;
}

START_TEST(accept_without_a_word_against_json_lets_it_through)
{
	struct request_headers none = {0};
	struct problem problem = {0};
	ck_assert(check_accept(&none, "application/json", &problem));
	static const char *const fine[] = {"*/*",
	                                   "",
	                                   "application/*",
	                                   "application/json",
	                                   "APPLICATION/JSON",
	                                   "application/json;q=0.1",
	                                   "text/html, application/json ; q=0.001",
	                                   "text/html,*/*;q=0.2",
	                                   "application/json; charset=utf-8; q=1",
	                                   " , ,application/json",
	                                   "*/*;q=0, application/json"};
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		ck_assert_msg(accept_json(ACCEPT(fine[i])) == PROBLEM_NONE, "%s", fine[i]);
}
END_TEST

START_TEST(accept_that_rules_json_out_is_406)
{
	static const char *const bad[] = {"text/html",
	                                  "application/jsonx",
	                                  "application/jso",
	                                  "text/*",
	                                  "*/*;q=0",
	                                  "application/json;q=0",
	                                  "application/json;q=0, */*",
	                                  "application/*;q=0.000, */*;q=1",
	                                  "*/*, application/json ; q=0.0"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(accept_json(ACCEPT(bad[i])) == PROBLEM_NOT_ACCEPTABLE, "%s", bad[i]);
}
END_TEST

START_TEST(accept_lines_count_together)
{
	ck_assert_int_eq(accept_json(ACCEPT("text/html", "application/json")), PROBLEM_NONE);
	ck_assert_int_eq(accept_json(ACCEPT("*/*", "application/json;q=0")), PROBLEM_NOT_ACCEPTABLE);
	ck_assert_int_eq(accept_json(ACCEPT("*/*", "*/*", "*/*", "*/*", "*/*", "*/*", "*/*", "*/*", "*/*")),
	                 PROBLEM_BAD_HEADER);
}
END_TEST

/* BODY_FORMS: 406. */
static enum body_form reply_form(const char *accept)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	enum body_form form = BODY_FORMS;
	if (accept)
		headers_note(&headers, "Accept", accept);
	bool ok = check_reply_form(&headers, &form, &problem);
	ck_assert_int_eq(problem.code, ok ? PROBLEM_NONE : PROBLEM_NOT_ACCEPTABLE);
	return ok ? form : BODY_FORMS;
}

START_TEST(accept_picks_the_form_it_likes_best)
{
	static const struct {
		const char *accept;
		enum body_form form;
	} cases[] = {
	    {NULL, BODY_JSON},
	    {"", BODY_JSON},
	    {"*/*", BODY_JSON},
	    {"application/*;q=0.3", BODY_JSON},
	    {"application/x-safetensors", BODY_SAFETENSORS},
	    {"APPLICATION/X-SAFETENSORS;q=0.1", BODY_SAFETENSORS},
	    {"*/*, application/x-safetensors", BODY_SAFETENSORS},
	    {"application/json, application/x-safetensors", BODY_JSON},
	    {"application/x-safetensors;q=0.9, application/json", BODY_JSON},
	    {"application/x-safetensors, application/json;q=0.9", BODY_SAFETENSORS},
	    {"application/json;q=0.2, */*;q=0.5", BODY_SAFETENSORS},
	    {"application/x-safetensors;q=0, */*", BODY_JSON},
	    {"application/x-safetensors;q=nan, application/json;q=0.1", BODY_JSON},
	    {"application/x-safetensors;q=9, application/json", BODY_JSON},
	    {"text/html", BODY_FORMS},
	    {"application/*;q=0", BODY_FORMS},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(reply_form(cases[i].accept) == cases[i].form, "%s", cases[i].accept);
}
END_TEST

static enum body_form form; /* of the last content accepted */

static enum problem_code content(const char *type)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	if (type)
		headers_note(&headers, "CONTENT-type", type);
	check_content(&headers, &form, &problem);
	if (problem.code == PROBLEM_MEDIA_TYPE)
		ck_assert_ptr_nonnull(strstr(problem.detail, "--json"));
	return problem.code;
}

START_TEST(a_body_that_says_no_form_is_415_with_a_hint)
{
	ck_assert_int_eq(content("application/json"), PROBLEM_NONE);
	ck_assert_int_eq(form, BODY_JSON);
	ck_assert_int_eq(content("Application/JSON ; charset=utf-8"), PROBLEM_NONE);
	ck_assert_int_eq(content("application/json;charset=utf-8"), PROBLEM_NONE);
	ck_assert_int_eq(content(NULL), PROBLEM_MEDIA_TYPE);
	ck_assert_int_eq(content(""), PROBLEM_MEDIA_TYPE);
	ck_assert_int_eq(content("application/x-www-form-urlencoded"), PROBLEM_MEDIA_TYPE);
	ck_assert_int_eq(content("application/x-safetensor"), PROBLEM_MEDIA_TYPE);
	ck_assert_int_eq(content("application/jsonp"), PROBLEM_MEDIA_TYPE);
	ck_assert_int_eq(content("application/json text"), PROBLEM_MEDIA_TYPE);
}
END_TEST

START_TEST(a_body_may_be_safetensors)
{
	ck_assert_int_eq(content("Application/X-Safetensors; a=b"), PROBLEM_NONE);
	ck_assert_int_eq(form, BODY_SAFETENSORS);
}
END_TEST

/* Headers as "name", "value", ..., NULL. */
static bool framed(const char *version, const char *const *pairs)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	for (; *pairs; pairs += 2)
		headers_note(&headers, pairs[0], pairs[1]);
	bool ok = check_framing(&headers, version, &problem);
	ck_assert_int_eq(problem.code, ok ? PROBLEM_NONE : PROBLEM_BAD_HEADER);
	return ok;
}

START_TEST(where_a_body_ends_must_be_beyond_doubt)
{
	ck_assert(framed("HTTP/1.1", ACCEPT("Host", "x")));
	ck_assert(framed("HTTP/1.1", ACCEPT("Host", "x", "Content-Length", "5")));
	ck_assert(framed("HTTP/1.1", ACCEPT("Host", "x", "Transfer-Encoding", "Chunked")));
	ck_assert(!framed("HTTP/1.1", ACCEPT("Host", "x", "Content-Length", "5", "content-length", "5")));
	ck_assert(
	    !framed("HTTP/1.1", ACCEPT("Host", "x", "Content-Length", "5", "Transfer-Encoding", "chunked")));
	ck_assert(!framed("HTTP/1.1", ACCEPT("Host", "x", "Transfer-Encoding", "gzip")));
	ck_assert(!framed("HTTP/1.1", ACCEPT("Host", "x", "Transfer-Encoding", "gzip, chunked")));
	ck_assert(!framed(
	    "HTTP/1.1", ACCEPT("Host", "x", "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked")));
	ck_assert(!framed("HTTP/1.0", ACCEPT("Transfer-Encoding", "chunked")));
}
END_TEST

START_TEST(http_1_1_needs_exactly_one_host)
{
	ck_assert(!framed("HTTP/1.1", ACCEPT("X", "y")));
	ck_assert(!framed("HTTP/1.1", ACCEPT("Host", "a", "Host", "a")));
	ck_assert(framed("HTTP/1.0", ACCEPT("X", "y")));
	ck_assert(framed("HTTP/1.0", ACCEPT("Host", "a")));
	ck_assert(!framed("HTTP/1.0", ACCEPT("Host", "a", "Host", "b")));
}
END_TEST

static enum problem_code timeout_of(const char *text, uint64_t *ms)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	if (text)
		headers_note(&headers, "x-timeout-ms", text);
	check_timeout(&headers, 30000, ms, &problem);
	return problem.code;
}

START_TEST(a_deadline_may_only_be_shorter_than_the_configured_one)
{
	uint64_t ms = 0;
	ck_assert_int_eq(timeout_of(NULL, &ms), PROBLEM_NONE);
	ck_assert_uint_eq(ms, 30000);
	ck_assert_int_eq(timeout_of("1", &ms), PROBLEM_NONE);
	ck_assert_uint_eq(ms, 1);
	ck_assert_int_eq(timeout_of("30000", &ms), PROBLEM_NONE);
	ck_assert_int_eq(timeout_of("5 \t", &ms), PROBLEM_NONE); /* space behind is not of the value */
	ck_assert_uint_eq(ms, 5);
	static const char *const bad[] = {
	    "30001", "0", "", "-1", "+1", " 5", "5 5", "1.5", "1e3", "x", "99999999999999999999999999"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(timeout_of(bad[i], &ms) == PROBLEM_BAD_HEADER, "%s", bad[i]);
}
END_TEST

START_TEST(a_request_id_is_1_to_128_visible_characters)
{
	char id[REQUEST_ID_MAX + 2];
	memset(id, '~', sizeof(id));
	id[REQUEST_ID_MAX + 1] = '\0';
	ck_assert(!request_id_usable(id));
	id[REQUEST_ID_MAX] = '\0';
	ck_assert(request_id_usable(id));
	ck_assert(request_id_usable("!"));
	ck_assert(!request_id_usable(NULL));
	ck_assert(!request_id_usable(""));
	ck_assert(!request_id_usable("a b"));
	ck_assert(!request_id_usable("a\tb"));
	ck_assert(!request_id_usable("a\x7f"));
	ck_assert(!request_id_usable("caf\xc3\xa9"));
}
END_TEST

START_TEST(a_body_is_known_by_its_headers)
{
	struct request_headers headers = {0};
	ck_assert(!headers_have_body(&headers));
	headers_note(&headers, "Content-Length", "0");
	ck_assert(!headers_have_body(&headers));
	headers = (struct request_headers){0};
	headers_note(&headers, "Content-Length", "99999999999999999999999");
	ck_assert_uint_eq(headers_length(&headers), UINT64_MAX);
	headers_note(&headers, "Expect", "100-Continue");
	ck_assert(headers_expect_continue(&headers, "HTTP/1.1"));
	ck_assert(!headers_expect_continue(&headers, "HTTP/1.0"));
	headers = (struct request_headers){0};
	headers_note(&headers, "Transfer-Encoding", "chunked");
	ck_assert(headers_have_body(&headers));
}
END_TEST

SUITE_MAIN("checks", accept_without_a_word_against_json_lets_it_through, accept_that_rules_json_out_is_406,
           accept_lines_count_together, accept_picks_the_form_it_likes_best, a_body_may_be_safetensors,
           a_body_that_says_no_form_is_415_with_a_hint, where_a_body_ends_must_be_beyond_doubt,
           http_1_1_needs_exactly_one_host, a_deadline_may_only_be_shorter_than_the_configured_one,
           a_request_id_is_1_to_128_visible_characters, a_body_is_known_by_its_headers)
