#include "http/routes.h"
#include "pipeline/operation.h"
#include "suite.h"

#include <string.h>

START_TEST(an_operation_is_found_by_path_and_method)
{
	struct route_match match;
	ck_assert_int_eq(routes_match("POST", "/v1/attention", &match), ROUTE_FOUND);
	ck_assert_ptr_eq(match.route->operation, &operation_attention);
	ck_assert_str_eq(match.model, "");
	ck_assert_int_eq(routes_match("POST", "/v1/models/tiny.2-x/attention", &match), ROUTE_FOUND);
	ck_assert_ptr_eq(match.route->operation, &operation_model_attention);
	ck_assert_str_eq(match.model, "tiny.2-x");
}
END_TEST

START_TEST(a_model_is_one_whole_segment)
{
	struct route_match match;
	ck_assert_int_eq(routes_match("GET", "/v1/models/tiny", &match), ROUTE_FOUND);
	ck_assert_str_eq(match.model, "tiny");
	ck_assert_int_eq(routes_match("GET", "/v1/models/", &match), ROUTE_NO_PATH);
	ck_assert_int_eq(routes_match("POST", "/v1/models//attention", &match), ROUTE_NO_PATH);
	ck_assert_int_eq(routes_match("POST", "/v1/models/a/b/attention", &match), ROUTE_NO_PATH);
	char path[64 + ROUTE_MODEL_MAX] = "/v1/models/";
	size_t prefix = strlen(path);
	memset(path + prefix, 'm', ROUTE_MODEL_MAX);
	ck_assert_int_eq(routes_match("GET", path, &match), ROUTE_FOUND);
	ck_assert_uint_eq(strlen(match.model), ROUTE_MODEL_MAX);
	path[prefix + ROUTE_MODEL_MAX] = 'm';
	ck_assert_int_eq(routes_match("GET", path, &match), ROUTE_NO_PATH);
}
END_TEST

START_TEST(a_path_must_match_to_its_end)
{
	static const char *const wrong[] = {"",   "/v1", "/v1/attention/", "/v1/attentionx", "/v1/attentio",
	                                    "//", "*",   "/V1/attention",  "/healthz/x"};
	struct route_match match;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(routes_match("GET", wrong[i], &match), ROUTE_NO_PATH);
		ck_assert_str_eq(match.allow, "");
		ck_assert_ptr_null(match.route);
	}
}
END_TEST

START_TEST(a_wrong_method_is_told_the_right_ones)
{
	struct route_match match;
	ck_assert_int_eq(routes_match("GET", "/v1/attention", &match), ROUTE_NO_METHOD);
	ck_assert_str_eq(match.allow, "POST, OPTIONS");
	ck_assert_int_eq(routes_match("DELETE", "/healthz", &match), ROUTE_NO_METHOD);
	ck_assert_str_eq(match.allow, "GET, HEAD, OPTIONS");
	ck_assert_int_eq(routes_match("get", "/healthz", &match), ROUTE_NO_METHOD);
}
END_TEST

START_TEST(what_answers_get_answers_head)
{
	static const char *const paths[] = {"/",           "/healthz",   "/metrics",
	                                    "/v1/latency", "/v1/models", "/v1/models/m"};
	struct route_match get, head;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		ck_assert_int_eq(routes_match("GET", paths[i], &get), ROUTE_FOUND);
		ck_assert_int_eq(routes_match("HEAD", paths[i], &head), ROUTE_FOUND);
		ck_assert_ptr_eq(get.route, head.route);
	}
	ck_assert_int_eq(routes_match("HEAD", "/v1/attention", &head), ROUTE_NO_METHOD);
}
END_TEST

START_TEST(every_path_answers_options)
{
	struct route_match match;
	ck_assert_int_eq(routes_match("OPTIONS", "/v1/attention", &match), ROUTE_OPTIONS);
	ck_assert_str_eq(match.allow, "POST, OPTIONS");
	ck_assert_int_eq(routes_match("OPTIONS", "/v1/models/m", &match), ROUTE_OPTIONS);
	ck_assert_int_eq(routes_match("OPTIONS", "/nowhere", &match), ROUTE_NO_PATH);
}
END_TEST

START_TEST(only_health_is_open_to_all_by_whatever_method)
{
	struct route_match match;
	routes_match("GET", "/healthz", &match);
	ck_assert(match.open);
	routes_match("DELETE", "/healthz", &match);
	ck_assert(match.open);
	static const char *const closed[] = {"/v1/attention", "/metrics", "/", "/v1/models/healthz",
	                                     "/healthz/"};
	for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
		routes_match("GET", closed[i], &match);
		ck_assert(!match.open);
	}
}
END_TEST

SUITE_MAIN("routes", only_health_is_open_to_all_by_whatever_method, an_operation_is_found_by_path_and_method,
           a_model_is_one_whole_segment, a_path_must_match_to_its_end, a_wrong_method_is_told_the_right_ones,
           what_answers_get_answers_head, every_path_answers_options)
