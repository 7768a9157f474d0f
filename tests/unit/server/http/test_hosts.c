#include "http/hosts.h"
#include "suite.h"

#include <string.h>

START_TEST(a_host_is_a_name_with_or_without_a_port)
{
	static const char *const good[] = {"localhost", "a-b.example", "127.0.0.1", "[::1]",
	                                   "x:1",       "a.b:65535",   "[::1]:80"};
	static const char *const bad[] = {"",      ":80",    "a:", "a:b",     "a:123456", "a b",
	                                  "::1",   "[::1",   "[]", "[::1]80", "http://a", "a/b",
	                                  "[x]:1", "a:80:1", "*",  "a:-1"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(host_is_one(good[i], strlen(good[i])), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(!host_is_one(bad[i], strlen(bad[i])), "%s", bad[i]);
}
END_TEST

START_TEST(an_origin_is_a_scheme_and_a_host_and_nothing_more)
{
	static const char *const good[] = {"*", "https://a.example", "http://localhost:3000",
	                                   "http://[::1]:1", "moz-extension://abc"};
	static const char *const bad[] = {"",        "a.example",   "https://", "https://a/",
	                                  "https:a", "https://a/b", "**",       "null",
	                                  "://a",    "https://*.a", "HTTPS://a"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(host_is_origin(good[i], strlen(good[i])), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(!host_is_origin(bad[i], strlen(bad[i])), "%s", bad[i]);
}
END_TEST

START_TEST(a_name_without_a_port_stands_for_every_port)
{
	const char *list = "localhost, attn.example:8080, [::1]";
	static const char *const good[] = {"localhost",         "LOCALHOST", "localhost:80",
	                                   "attn.example:8080", "[::1]",     "[::1]:9"};
	static const char *const bad[] = {"",      "attn.example", "attn.example:80", "attn.example:80800",
	                                  "evil",  "localhost.x",  "xlocalhost",      "localhost@evil",
	                                  "[::2]", "localhos",     "localhost/evil",  "[::1]x"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(host_is_listed(list, good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(!host_is_listed(list, bad[i]), "%s", bad[i]);
}
END_TEST

SUITE_MAIN("hosts", a_host_is_a_name_with_or_without_a_port,
           an_origin_is_a_scheme_and_a_host_and_nothing_more, a_name_without_a_port_stands_for_every_port)
