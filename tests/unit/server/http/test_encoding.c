#include "http/encoding.h"

#include "http/admin.h"
#include "suite.h"

#include <string.h>
#include <zlib.h>

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static enum problem_code body(const char *const *lines, enum coding *coding)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	for (; *lines; lines++)
		headers_note(&headers, "content-encoding", *lines);
	encoding_of_body(&headers, coding, &problem);
	return problem.code;
}

START_TEST(a_body_may_be_gzip_or_deflate_once)
{
	enum coding coding;
	ck_assert_int_eq(body(LINES(NULL), &coding), PROBLEM_NONE);
	ck_assert_int_eq(coding, CODING_IDENTITY);
	ck_assert_int_eq(body(LINES("Identity"), &coding), PROBLEM_NONE);
	ck_assert_int_eq(coding, CODING_IDENTITY);
	ck_assert_int_eq(body(LINES("GZip"), &coding), PROBLEM_NONE);
	ck_assert_int_eq(coding, CODING_GZIP);
	ck_assert_int_eq(body(LINES("x-gzip"), &coding), PROBLEM_NONE);
	ck_assert_int_eq(coding, CODING_GZIP);
	ck_assert_int_eq(body(LINES("deflate"), &coding), PROBLEM_NONE);
	ck_assert_int_eq(coding, CODING_DEFLATE);
	ck_assert_int_eq(body(LINES("zstd"), &coding), PROBLEM_CONTENT_ENCODING);
	ck_assert_int_eq(body(LINES(""), &coding), PROBLEM_CONTENT_ENCODING);
	ck_assert_int_eq(body(LINES("gzip, gzip"), &coding), PROBLEM_CONTENT_ENCODING);
	ck_assert_int_eq(body(LINES("gzip", "gzip"), &coding), PROBLEM_CONTENT_ENCODING);
	ck_assert_int_eq(body(LINES("identity", "gzip"), &coding), PROBLEM_CONTENT_ENCODING);
}
END_TEST

static enum problem_code wish(const char *const *lines, struct reply_coding *wanted)
{
	struct request_headers headers = {0};
	struct problem problem = {0};
	for (; *lines; lines++)
		headers_note(&headers, "ACCEPT-encoding", *lines);
	encoding_of_reply(&headers, wanted, &problem);
	return problem.code;
}

START_TEST(a_reply_is_compressed_only_when_asked_for)
{
	static const struct {
		const char *line;
		enum coding coding;
		size_t least;
	} cases[] = {
	    {"", CODING_IDENTITY, 0},
	    {"identity", CODING_IDENTITY, 0},
	    {"br, zstd", CODING_IDENTITY, 0},
	    {"gzip;q=0", CODING_IDENTITY, 0},
	    {"*;q=0, identity", CODING_IDENTITY, 0},
	    {"gzip;q=0.5, identity", CODING_IDENTITY, 0},
	    {"gzip", CODING_GZIP, ENCODING_LEAST},
	    {"x-gzip", CODING_GZIP, ENCODING_LEAST},
	    {"deflate", CODING_DEFLATE, ENCODING_LEAST},
	    {"deflate, gzip", CODING_GZIP, ENCODING_LEAST},
	    {"gzip, deflate, br, zstd", CODING_GZIP, ENCODING_LEAST},
	    {"gzip;q=0.3, deflate;q=0.7", CODING_DEFLATE, ENCODING_LEAST},
	    {"gzip;q=0, *", CODING_DEFLATE, ENCODING_LEAST},
	    {"*", CODING_GZIP, ENCODING_LEAST},
	    {"gzip, identity", CODING_GZIP, ENCODING_LEAST},
	    {"gzip;q=0.5, identity;q=0.1", CODING_GZIP, ENCODING_LEAST},
	    {"gzip, identity;q=0", CODING_GZIP, 0},
	    {"deflate;q=0.001, *;q=0", CODING_DEFLATE, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reply_coding wanted;
		ck_assert_int_eq(wish(LINES(cases[i].line), &wanted), PROBLEM_NONE);
		ck_assert_msg(wanted.coding == cases[i].coding && wanted.least == cases[i].least, "%s",
		              cases[i].line);
	}
	struct reply_coding wanted;
	ck_assert_int_eq(wish(LINES(NULL), &wanted), PROBLEM_NONE);
	ck_assert_int_eq(wanted.coding, CODING_IDENTITY);
	ck_assert_int_eq(wish(LINES("br", "gzip"), &wanted), PROBLEM_NONE);
	ck_assert_int_eq(wanted.coding, CODING_GZIP);
}
END_TEST

START_TEST(a_client_that_can_take_no_reply_is_told)
{
	static const char *const bad[] = {"identity;q=0", "*;q=0", "br, *;q=0",
	                                  "gzip;q=0, deflate;q=0, identity;q=0"};
	struct reply_coding wanted;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(wish(LINES(bad[i]), &wanted) == PROBLEM_NOT_ACCEPTABLE, "%s", bad[i]);
	ck_assert_int_eq(wish(LINES("a", "a", "a", "a", "a", "a", "a", "a", "a"), &wanted),
	                 PROBLEM_BAD_HEADER);
}
END_TEST

static struct page page_of(size_t length)
{
	struct page page = {.body = malloc(length + 1), .length = length};
	memset(page.body, 'p', length);
	return page;
}

START_TEST(a_page_is_compressed_on_the_loop_only_when_that_is_quick)
{
	struct reply_coding gzip = {CODING_GZIP, ENCODING_LEAST}, none = {CODING_IDENTITY, 0};
	static const size_t as_they_are[] = {0, ENCODING_LEAST - 1, 256 * 1024 + 1};
	for (size_t i = 0; i < sizeof as_they_are / sizeof as_they_are[0]; i++) {
		struct page page = page_of(as_they_are[i]);
		ck_assert_int_eq(encoding_of_page(&gzip, &page), CODING_IDENTITY);
		ck_assert_uint_eq(page.length, as_they_are[i]);
		free(page.body);
	}
	struct page page = page_of(256 * 1024);
	ck_assert_int_eq(encoding_of_page(&none, &page), CODING_IDENTITY);
	ck_assert_int_eq(encoding_of_page(&gzip, &page), CODING_GZIP);
	static unsigned char back[256 * 1024 + 1];
	z_stream z = {.next_in = (unsigned char *)page.body,
	              .avail_in = (uInt)page.length,
	              .next_out = back,
	              .avail_out = sizeof back};
	ck_assert_int_eq(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(z.total_out, 256 * 1024);
	inflateEnd(&z);
	free(page.body);
}
END_TEST

SUITE_MAIN("encoding", a_body_may_be_gzip_or_deflate_once, a_reply_is_compressed_only_when_asked_for,
           a_client_that_can_take_no_reply_is_told, a_page_is_compressed_on_the_loop_only_when_that_is_quick)
