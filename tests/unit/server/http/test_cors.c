#include "http/cors.h"
#include "suite.h"

static struct cors decide(const char *allowed, const char *method, const char *origin, const char *asked)
{
	struct request_headers headers = {0};
	if (origin)
		headers_note(&headers, "Origin", origin);
	if (asked)
		headers_note(&headers, "Access-Control-Request-Method", asked);
	return cors_decide(allowed, method, &headers);
}

START_TEST(by_default_no_page_of_another_origin_may_read)
{
	struct cors cors = decide(NULL, "OPTIONS", "https://a.example", "POST");
	ck_assert(cors.origin == NULL && !cors.varies && !cors.preflight);
}
END_TEST

START_TEST(a_listed_origin_is_told_its_own_name)
{
	const char *list = "https://a.example, https://b.example";
	ck_assert_str_eq(decide(list, "POST", "https://b.example", NULL).origin, "https://b.example");
	ck_assert_ptr_null(decide(list, "POST", "https://c.example", NULL).origin);
	ck_assert_ptr_null(decide(list, "POST", "http://b.example", NULL).origin);
	ck_assert_ptr_null(decide(list, "POST", "https://b.example:444", NULL).origin);
	ck_assert_ptr_null(decide(list, "POST", "null", NULL).origin);
	ck_assert_ptr_null(decide(list, "POST", "*", NULL).origin);
	ck_assert_ptr_null(decide(list, "POST", "", NULL).origin);
}
END_TEST

START_TEST(with_a_list_every_reply_depends_on_the_origin)
{
	ck_assert(decide("https://a.example", "GET", NULL, NULL).varies);
	ck_assert(decide("https://a.example", "GET", "https://x.example", NULL).varies);
}
END_TEST

START_TEST(a_star_is_said_only_where_it_is_configured)
{
	struct cors cors = decide("https://a.example, *", "GET", "https://x.example", NULL);
	ck_assert_str_eq(cors.origin, "*");
	ck_assert(!cors.varies);
	ck_assert_ptr_null(decide("*", "GET", NULL, NULL).origin);
}
END_TEST

START_TEST(a_preflight_is_options_of_a_listed_origin_with_a_method)
{
	const char *list = "https://a.example";
	ck_assert(decide(list, "OPTIONS", "https://a.example", "POST").preflight);
	ck_assert(!decide(list, "POST", "https://a.example", "POST").preflight);
	ck_assert(!decide(list, "OPTIONS", "https://a.example", NULL).preflight);
	ck_assert(!decide(list, "OPTIONS", "https://x.example", "POST").preflight);
}
END_TEST

START_TEST(two_origins_are_none)
{
	struct request_headers headers = {0};
	headers_note(&headers, "Origin", "https://a.example");
	headers_note(&headers, "Origin", "https://a.example");
	ck_assert_ptr_null(cors_decide("https://a.example", "GET", &headers).origin);
}
END_TEST

SUITE_MAIN("cors", by_default_no_page_of_another_origin_may_read, a_listed_origin_is_told_its_own_name,
           with_a_list_every_reply_depends_on_the_origin, a_star_is_said_only_where_it_is_configured,
           a_preflight_is_options_of_a_listed_origin_with_a_method, two_origins_are_none)
