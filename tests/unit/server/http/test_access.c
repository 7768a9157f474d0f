#include "http/access.h"

#include "http/tokens.h"
#include "suite.h"

#include <string.h>
#include <unistd.h>

static struct options options;
static struct http_context context;

/* Whether a request may ask; host and authorization NULL: not sent. */
static enum problem_code ask(const char *method, const char *path, const char *host,
                             const char *authorization)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	struct route_match match;
	if (host)
		headers_note(&headers, "Host", host);
	if (authorization)
		headers_note(&headers, "Authorization", authorization);
	enum route_result result = routes_match(method, path, &match);
	bool good = access_check(&context, &headers, &match, result, &problem);
	ck_assert_int_eq(good, problem.code == PROBLEM_NONE);
	return problem.code;
}

static void open_context(const char *hosts, const char *tokens)
{
	options = (struct options){.allowed_hosts = (char *)hosts};
	context = (struct http_context){.options = &options};
	if (!tokens)
		return;
	char path[] = "/tmp/attnd-access-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, tokens, strlen(tokens)), (ssize_t)strlen(tokens));
	close(fd);
	attn_error err;
	context.tokens = tokens_load(path, &err);
	ck_assert_ptr_nonnull(context.tokens);
	unlink(path);
}

START_TEST(without_settings_anybody_may_ask)
{
	open_context(NULL, NULL);
	ck_assert_int_eq(ask("POST", "/v1/attention", "anything", NULL), PROBLEM_NONE);
	ck_assert_int_eq(ask("POST", "/v1/attention", NULL, "Basic x"), PROBLEM_NONE);
}
END_TEST

START_TEST(everything_but_health_and_options_needs_a_token)
{
	open_context(NULL, "alpha\nbeta\n");
	static const char *const paths[] = {"/v1/attention", "/v1/models", "/metrics", "/",
	                                    "/v1/latency",   "/nowhere"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		ck_assert_int_eq(ask("GET", paths[i], "h", NULL), PROBLEM_UNAUTHORIZED);
		ck_assert_int_eq(ask("POST", paths[i], "h", "Bearer gamma"), PROBLEM_UNAUTHORIZED);
		ck_assert_int_eq(ask("POST", paths[i], "h", "Bearer beta"), PROBLEM_NONE);
	}
	ck_assert_int_eq(ask("GET", "/healthz", "h", NULL), PROBLEM_NONE);
	ck_assert_int_eq(ask("HEAD", "/healthz", "h", NULL), PROBLEM_NONE);
	ck_assert_int_eq(ask("OPTIONS", "/v1/attention", "h", NULL), PROBLEM_NONE);
	ck_assert_int_eq(ask("OPTIONS", "/nowhere", "h", NULL), PROBLEM_UNAUTHORIZED);
	tokens_free(context.tokens);
}
END_TEST

START_TEST(the_scheme_is_bearer_in_any_case_with_one_token)
{
	open_context(NULL, "alpha\n");
	static const char *const good[] = {"Bearer alpha", "bearer alpha", "BEARER   alpha"};
	static const char *const bad[] = {"",
	                                  "alpha",
	                                  "Bearer",
	                                  "Bearer ",
	                                  "Beareralpha",
	                                  "Basic alpha",
	                                  "Bearer alpha beta",
	                                  "Bearer\talpha",
	                                  "Token alpha"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(ask("GET", "/", "h", good[i]) == PROBLEM_NONE, "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(ask("GET", "/", "h", bad[i]) == PROBLEM_UNAUTHORIZED, "%s", bad[i]);
	tokens_free(context.tokens);
}
END_TEST

START_TEST(two_authorizations_are_none)
{
	open_context(NULL, "alpha\n");
	struct request_headers headers = {0};
	struct problem problem = {0};
	struct route_match match = {0};
	headers_note(&headers, "Authorization", "Bearer alpha");
	headers_note(&headers, "Authorization", "Bearer alpha");
	ck_assert(!access_check(&context, &headers, &match, ROUTE_FOUND, &problem));
	tokens_free(context.tokens);
}
END_TEST

START_TEST(a_host_that_is_not_listed_is_refused_by_its_name_before_the_token)
{
	open_context("attn.example, localhost:8080", "alpha\n");
	ck_assert_int_eq(ask("POST", "/v1/attention", "evil.example", "Bearer alpha"), PROBLEM_BAD_HEADER);
	ck_assert_int_eq(ask("POST", "/v1/attention", "evil.example", NULL), PROBLEM_BAD_HEADER);
	ck_assert_int_eq(ask("OPTIONS", "/v1/attention", "evil.example", NULL), PROBLEM_BAD_HEADER);
	ck_assert_int_eq(ask("POST", "/v1/attention", "attn.example:99", "Bearer alpha"), PROBLEM_NONE);
	ck_assert_int_eq(ask("GET", "/healthz", "10.0.0.7:8080", NULL), PROBLEM_NONE);
	ck_assert_int_eq(ask("GET", "/", NULL, "Bearer alpha"), PROBLEM_NONE); /* HTTP/1.0: no browser */
	context.local = true;
	ck_assert_int_eq(ask("POST", "/v1/attention", "evil.example", "Bearer alpha"), PROBLEM_NONE);
	tokens_free(context.tokens);
}
END_TEST

SUITE_MAIN("access", without_settings_anybody_may_ask, everything_but_health_and_options_needs_a_token,
           the_scheme_is_bearer_in_any_case_with_one_token, two_authorizations_are_none,
           a_host_that_is_not_listed_is_refused_by_its_name_before_the_token)
