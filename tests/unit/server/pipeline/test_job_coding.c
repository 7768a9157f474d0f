#include "pipeline/job_coding.h"

#include "suite.h"

#include <string.h>
#include <zlib.h>

#define BUDGET ((size_t)1 << 20)

static struct budget budget;

/* A job whose body is `size` times the byte x, as a zlib stream. */
static struct job *packed_job(size_t size)
{
	budget_init(&budget, BUDGET);
	struct job *job = job_new(NULL, &budget);
	char *text = malloc(size + 1);
	uLongf length = compressBound(size);
	job->body = malloc(length);
	memset(text, 'x', size + 1);
	ck_assert_int_eq(compress((unsigned char *)job->body, &length, (unsigned char *)text, size), Z_OK);
	free(text);
	job->body_length = length;
	job->body_coding = CODING_DEFLATE;
	ck_assert_int_eq(job_charge(job, length), BUDGET_OK);
	return job;
}

static void expect_whole(struct job *job, size_t size)
{
	ck_assert_int_eq(job->problem.code, PROBLEM_NONE);
	ck_assert_uint_eq(job->body_length, size);
	for (size_t i = 0; i < size; i++)
		ck_assert_int_eq(job->body[i], 'x');
	ck_assert_uint_eq(job->charged, size);
}

static void finish(struct job *job)
{
	job_free(job);
	ck_assert_uint_eq(budget_used(&budget), 0);
}

START_TEST(a_body_takes_the_place_of_its_stream_and_is_charged_for_itself)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 300000};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct job *job = packed_job(sizes[i]);
		job_decode(job, BUDGET);
		expect_whole(job, sizes[i]);
		finish(job);
	}
}
END_TEST

START_TEST(a_body_of_exactly_the_limit_is_let_in_and_one_more_byte_is_not)
{
	static const size_t limits[] = {1, 1000, 65536, 100000};
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		struct job *job = packed_job(limits[i]);
		job_decode(job, limits[i]);
		expect_whole(job, limits[i]);
		finish(job);
		job = packed_job(limits[i] + 1);
		job_decode(job, limits[i]);
		ck_assert_int_eq(job->problem.code, PROBLEM_BODY_TOO_LARGE);
		char number[24];
		snprintf(number, sizeof number, " %zu ", limits[i]);
		ck_assert_ptr_nonnull(strstr(job->problem.detail, number));
		finish(job);
	}
}
END_TEST

START_TEST(a_bomb_stops_at_the_limit_with_no_more_than_that_charged)
{
	struct job *job = packed_job(50 << 20);
	size_t compressed = job->charged;
	job_decode(job, 200000);
	ck_assert_int_eq(job->problem.code, PROBLEM_BODY_TOO_LARGE);
	ck_assert_uint_le(job->charged, compressed + 200000);
	finish(job);
}
END_TEST

START_TEST(what_the_budget_can_never_hold_is_told_apart_from_what_it_cannot_hold_now)
{
	struct job *job = packed_job(2 * BUDGET);
	job_decode(job, 100 * BUDGET);
	ck_assert_int_eq(job->problem.code, PROBLEM_NEVER_FITS);
	finish(job);

	job = packed_job(BUDGET / 2);
	ck_assert_int_eq(budget_grow(&budget, 0, BUDGET / 2), BUDGET_OK); /* another request's */
	job_decode(job, BUDGET);
	ck_assert_int_eq(job->problem.code, PROBLEM_BUDGET_FULL);
	budget_give_back(&budget, BUDGET / 2);
	finish(job);
}
END_TEST

static enum problem_code decoded(const char *bytes, size_t size, enum coding coding)
{
	budget_init(&budget, BUDGET);
	struct job *job = job_new(NULL, &budget);
	job->body = malloc(size + 1);
	memcpy(job->body, bytes, size);
	job->body_length = size;
	job->body_coding = coding;
	job_decode(job, BUDGET);
	enum problem_code code = job->problem.code;
	finish(job);
	return code;
}

START_TEST(a_stream_that_is_unsound_is_a_bad_encoding)
{
	ck_assert_int_eq(decoded("", 0, CODING_GZIP), PROBLEM_BAD_ENCODING);
	ck_assert_int_eq(decoded("{}", 2, CODING_GZIP), PROBLEM_BAD_ENCODING);
	ck_assert_int_eq(decoded("\x03\x00", 2, CODING_DEFLATE), PROBLEM_NONE);
	ck_assert_int_eq(decoded("\x03\x00x", 3, CODING_DEFLATE), PROBLEM_BAD_ENCODING);
	ck_assert_int_eq(decoded("\x03", 1, CODING_DEFLATE), PROBLEM_BAD_ENCODING);
	ck_assert_int_eq(decoded("{}", 2, CODING_IDENTITY), PROBLEM_NONE);
}
END_TEST

START_TEST(a_job_that_nobody_waits_for_is_not_inflated)
{
	struct job *job = packed_job(300000);
	atomic_store(&job->cancelled, true);
	size_t length = job->body_length;
	job_decode(job, BUDGET);
	ck_assert_uint_eq(job->body_length, length);
	ck_assert_int_eq(job->problem.code, PROBLEM_NONE);
	finish(job);
}
END_TEST

/* ---- the reply */

static struct job *computed_job(size_t length, enum coding coding, size_t least)
{
	budget_init(&budget, BUDGET);
	struct job *job = job_new(NULL, &budget);
	job->reply = malloc(length);
	memset(job->reply, 'y', length);
	job->reply_length = length;
	job->reply_coding = coding;
	job->reply_coding_least = least;
	ck_assert_int_eq(job_charge(job, length), BUDGET_OK);
	return job;
}

START_TEST(a_reply_is_compressed_when_it_was_asked_for_and_long_enough)
{
	struct job *job = computed_job(100000, CODING_DEFLATE, 1024);
	job_encode(job);
	ck_assert_int_eq(job->reply_coding, CODING_DEFLATE);
	ck_assert_uint_lt(job->reply_length, 1000);
	ck_assert_uint_eq(job->charged, job->reply_length);
	static unsigned char back[100000];
	uLongf size = sizeof back;
	ck_assert_int_eq(uncompress(back, &size, (unsigned char *)job->reply, job->reply_length), Z_OK);
	ck_assert_uint_eq(size, sizeof back);
	for (size_t i = 0; i < sizeof back; i++)
		ck_assert_int_eq(back[i], 'y');
	finish(job);

	job = computed_job(1023, CODING_GZIP, 1024);
	job_encode(job);
	ck_assert_int_eq(job->reply_coding, CODING_IDENTITY);
	ck_assert_uint_eq(job->reply_length, 1023);
	finish(job);

	job = computed_job(5000, CODING_IDENTITY, 0);
	job_encode(job);
	ck_assert_uint_eq(job->reply_length, 5000);
	finish(job);
}
END_TEST

START_TEST(without_room_in_the_budget_a_reply_goes_as_it_is)
{
	struct job *job = computed_job(BUDGET * 2 / 3, CODING_GZIP, 0);
	job_encode(job);
	ck_assert_int_eq(job->reply_coding, CODING_IDENTITY);
	ck_assert_uint_eq(job->reply_length, BUDGET * 2 / 3);
	ck_assert_uint_eq(job->charged, BUDGET * 2 / 3);
	finish(job);
}
END_TEST

SUITE_MAIN("job_coding", a_body_takes_the_place_of_its_stream_and_is_charged_for_itself,
           a_body_of_exactly_the_limit_is_let_in_and_one_more_byte_is_not,
           a_bomb_stops_at_the_limit_with_no_more_than_that_charged,
           what_the_budget_can_never_hold_is_told_apart_from_what_it_cannot_hold_now,
           a_stream_that_is_unsound_is_a_bad_encoding, a_job_that_nobody_waits_for_is_not_inflated,
           a_reply_is_compressed_when_it_was_asked_for_and_long_enough,
           without_room_in_the_budget_a_reply_goes_as_it_is)
