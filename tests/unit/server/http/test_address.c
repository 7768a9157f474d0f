#include "http/address.h"
#include "suite.h"

#include <string.h>
#include <unistd.h>

START_TEST(host_and_port_are_split_at_the_last_colon)
{
	char host[32], port[32];
	ck_assert(address_split("127.0.0.1:8080", host, port, sizeof(host)));
	ck_assert_str_eq(host, "127.0.0.1");
	ck_assert_str_eq(port, "8080");
	ck_assert(address_split("[::1]:0", host, port, sizeof(host)));
	ck_assert_str_eq(host, "::1");
	ck_assert_str_eq(port, "0");
}
END_TEST

START_TEST(what_is_not_an_address_is_refused)
{
	static const char *const bad[] = {"",      "localhost", ":80",
	                                  "host:", "::1:80",    "[::1]",
	                                  "[]:80", "[::1:80",   "a-name-longer-than-the-room-there-is:80"};
	char host[32], port[32];
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!address_split(bad[i], host, port, sizeof(host)), "%s", bad[i]);
}
END_TEST

START_TEST(port_0_becomes_the_port_that_was_picked)
{
	char error[256] = "", text[ADDRESS_TEXT_MAX];
	int fd = address_listen("127.0.0.1:0", 4, error, sizeof(error));
	ck_assert_msg(fd >= 0, "%s", error);
	address_of_socket(fd, text);
	ck_assert_int_eq(strncmp(text, "127.0.0.1:", 10), 0);
	ck_assert_int_gt(atoi(text + 10), 0);
	int second = address_listen(text, 4, error, sizeof(error));
	ck_assert_int_lt(second, 0);
	ck_assert_ptr_nonnull(strstr(error, text));
	close(fd);
}
END_TEST

SUITE_MAIN("address", host_and_port_are_split_at_the_last_colon, what_is_not_an_address_is_refused,
           port_0_becomes_the_port_that_was_picked)
