#include "pipeline/batcher.h"

#include "suite.h"

#include <string.h>

#define MOST 1000

static const struct batch_caps wide = {
    .jobs = MOST, .sequences = MOST, .tokens = SIZE_MAX, .scores = SIZE_MAX};

static struct job jobs[MOST];
static struct job *taken[MOST];

/* Job number i, come at time i, of one sequence of 4 tokens and 16 scores. */
static struct job *job_at(size_t i, uint64_t key)
{
	struct job *job = &jobs[i];
	memset(job, 0, sizeof(*job));
	job->key.words[BATCH_KEY_WORDS - 1] = key;
	job->stage_begun = i;
	job->sequences = 1;
	job->tokens = 4;
	job->scores = 16;
	job->work = 2;
	return job;
}

static void add(struct batcher *batcher, struct job *job)
{
	ck_assert(batcher_add(batcher, job));
}

static void empty(struct batcher *batcher)
{
	while (batcher_take_job(batcher) != NULL)
		;
	ck_assert_uint_eq(batcher_view_of(batcher).jobs, 0);
	batcher_free(batcher);
}

START_TEST(sixty_four_jobs_alternating_between_two_keys_make_two_batches)
{
	struct batch_caps caps = wide;
	caps.sequences = caps.jobs = 32;
	struct batcher *batcher = batcher_new(&caps);
	for (size_t i = 0; i < 64; i++)
		add(batcher, job_at(i, i % 2));
	for (size_t batch = 0; batch < 2; batch++) {
		ck_assert_uint_eq(batcher_take(batcher, false, taken), 32);
		for (size_t i = 0; i < 32; i++)
			ck_assert_ptr_eq(taken[i], &jobs[2 * i + batch]);
	}
	empty(batcher);
}
END_TEST

START_TEST(a_batch_stays_within_every_cap)
{
	const struct batch_caps caps[] = {
	    {.jobs = 3, .sequences = 100, .tokens = 100, .scores = 100},
	    {.jobs = 100, .sequences = 3, .tokens = 100, .scores = 100},
	    {.jobs = 100, .sequences = 100, .tokens = 15, .scores = 1000},
	    {.jobs = 100, .sequences = 100, .tokens = 1000, .scores = 63},
	};
	for (size_t c = 0; c < sizeof(caps) / sizeof(caps[0]); c++) {
		struct batcher *batcher = batcher_new(&caps[c]);
		for (size_t i = 0; i < 4; i++)
			add(batcher, job_at(i, 7));
		ck_assert(batcher_view_of(batcher).full);
		ck_assert_uint_eq(batcher_take(batcher, true, taken), 3);
		ck_assert(!batcher_view_of(batcher).full);
		ck_assert_uint_eq(batcher_take(batcher, false, taken), 1);
		ck_assert_ptr_eq(taken[0], &jobs[3]);
		empty(batcher);
	}
}
END_TEST

START_TEST(a_job_over_a_cap_goes_alone)
{
	struct batch_caps caps = {.jobs = 10, .sequences = 4, .tokens = 1000, .scores = 1000};
	struct batcher *batcher = batcher_new(&caps);
	add(batcher, job_at(0, 1));
	add(batcher, job_at(1, 1));
	jobs[1].sequences = 5;
	add(batcher, job_at(2, 1));
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(batcher_take(batcher, false, taken), 1);
		ck_assert_ptr_eq(taken[0], &jobs[i]);
	}
	empty(batcher);
}
END_TEST

START_TEST(groups_come_out_by_their_oldest_member)
{
	struct batch_caps caps = wide;
	caps.sequences = 2;
	struct batcher *batcher = batcher_new(&caps);
	const uint64_t keys[] = {1, 1, 2, 3, 1, 1, 1, 3};
	for (size_t i = 0; i < 8; i++)
		add(batcher, job_at(i, keys[i]));
	/* 1: 0 1, then 2: 2, then 3: 3 7, then 1: 4 5, then 1: 6 */
	const size_t first[] = {0, 2, 3, 4, 6}, counts[] = {2, 1, 2, 2, 1};
	for (size_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(batcher_view_of(batcher).oldest_since, first[i]);
		ck_assert_uint_eq(batcher_take(batcher, false, taken), counts[i]);
		ck_assert_ptr_eq(taken[0], &jobs[first[i]]);
	}
	empty(batcher);
}
END_TEST

START_TEST(a_full_group_is_found_behind_older_ones)
{
	struct batch_caps caps = wide;
	caps.sequences = 2;
	struct batcher *batcher = batcher_new(&caps);
	const uint64_t keys[] = {1, 2, 3, 3, 2};
	for (size_t i = 0; i < 4; i++)
		add(batcher, job_at(i, keys[i]));
	ck_assert_uint_eq(batcher_view_of(batcher).full_since, 2);
	add(batcher, job_at(4, keys[4]));
	ck_assert_uint_eq(batcher_view_of(batcher).full_since, 1);
	ck_assert_uint_eq(batcher_take(batcher, true, taken), 2);
	ck_assert_ptr_eq(taken[0], &jobs[1]);
	batcher_remove(batcher, &jobs[3]);
	ck_assert(!batcher_view_of(batcher).full);
	empty(batcher);
}
END_TEST

START_TEST(a_removed_job_leaves_its_mates_in_order)
{
	struct batcher *batcher = batcher_new(&wide);
	for (size_t i = 0; i < 5; i++)
		add(batcher, job_at(i, i == 1));
	batcher_remove(batcher, &jobs[0]);
	ck_assert_uint_eq(batcher_view_of(batcher).oldest_since, 1);
	batcher_remove(batcher, &jobs[3]);
	batcher_remove(batcher, &jobs[1]);
	ck_assert_uint_eq(batcher_view_of(batcher).jobs, 2);
	ck_assert_double_eq(batcher_view_of(batcher).work, 4);
	ck_assert_uint_eq(batcher_take(batcher, false, taken), 2);
	ck_assert_ptr_eq(taken[0], &jobs[2]);
	ck_assert_ptr_eq(taken[1], &jobs[4]);
	empty(batcher);
}
END_TEST

START_TEST(jobs_without_sequences_do_not_fill_a_batch_past_its_room)
{
	struct batch_caps caps = wide;
	caps.jobs = 8;
	struct batcher *batcher = batcher_new(&caps);
	for (size_t i = 0; i < 20; i++) {
		struct job *job = job_at(i, 1);
		job->sequences = job->tokens = job->scores = 0;
		add(batcher, job);
	}
	ck_assert_uint_eq(batcher_take(batcher, false, taken), 8);
	ck_assert_uint_eq(batcher_take(batcher, false, taken), 8);
	ck_assert_uint_eq(batcher_take(batcher, false, taken), 4);
	empty(batcher);
}
END_TEST

START_TEST(sums_beyond_size_t_do_not_wrap)
{
	struct batcher *batcher = batcher_new(&wide);
	for (size_t i = 0; i < 3; i++) {
		struct job *job = job_at(i, 1);
		job->scores = SIZE_MAX;
		add(batcher, job);
	}
	ck_assert(batcher_view_of(batcher).full);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(batcher_take(batcher, true, taken), 1);
	empty(batcher);
}
END_TEST

/* ---- against a plain list */

struct plain {
	struct job *list[MOST];
	size_t count;
};

static void plain_remove(struct plain *plain, size_t at)
{
	plain->count--;
	memmove(&plain->list[at], &plain->list[at + 1], (plain->count - at) * sizeof(plain->list[0]));
}

/* Takes as the header says, out of a list in order of arrival. */
static size_t plain_take(struct plain *plain, const struct batch_caps *caps, struct job **out)
{
	uint64_t key = plain->list[0]->key.words[BATCH_KEY_WORDS - 1];
	size_t count = 0, sequences = 0;
	for (size_t i = 0; i < plain->count;) {
		struct job *job = plain->list[i];
		if (job->key.words[BATCH_KEY_WORDS - 1] != key) {
			i++;
			continue;
		}
		if (count > 0 && sequences + job->sequences > caps->sequences)
			break;
		sequences += job->sequences;
		out[count++] = job;
		plain_remove(plain, i);
	}
	return count;
}

START_TEST(any_order_of_calls_gives_what_a_plain_list_gives)
{
	struct batch_caps caps = wide;
	caps.sequences = 5;
	struct batcher *batcher = batcher_new(&caps);
	static struct plain plain;
	struct job *expected[MOST];
	unsigned seed = 1;
	for (size_t i = 0; i < MOST; i++) {
		struct job *job = job_at(i, (uint64_t)rand_r(&seed) % 400);
		job->sequences = (size_t)rand_r(&seed) % 7;
		add(batcher, job);
		plain.list[plain.count++] = job;
		if (rand_r(&seed) % 3 == 0) {
			size_t at = (size_t)rand_r(&seed) % plain.count;
			batcher_remove(batcher, plain.list[at]);
			plain_remove(&plain, at);
		}
		if (plain.count > 0 && rand_r(&seed) % 8 == 0) {
			size_t count = plain_take(&plain, &caps, expected);
			ck_assert_uint_eq(batcher_take(batcher, false, taken), count);
			ck_assert_mem_eq(taken, expected, count * sizeof(taken[0]));
		}
		ck_assert_uint_eq(batcher_view_of(batcher).jobs, plain.count);
	}
	while (plain.count > 0) {
		size_t count = plain_take(&plain, &caps, expected);
		ck_assert_uint_eq(batcher_take(batcher, false, taken), count);
		ck_assert_mem_eq(taken, expected, count * sizeof(taken[0]));
	}
	empty(batcher);
}
END_TEST

SUITE_MAIN("batcher", sixty_four_jobs_alternating_between_two_keys_make_two_batches,
           a_batch_stays_within_every_cap, a_job_over_a_cap_goes_alone,
           groups_come_out_by_their_oldest_member, a_full_group_is_found_behind_older_ones,
           a_removed_job_leaves_its_mates_in_order, jobs_without_sequences_do_not_fill_a_batch_past_its_room,
           sums_beyond_size_t_do_not_wrap, any_order_of_calls_gives_what_a_plain_list_gives)
