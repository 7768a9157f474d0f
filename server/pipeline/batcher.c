#include "pipeline/batcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BATCHER_BUCKETS 256

struct batch_group {
	struct batch_key key;
	size_t bucket;
	struct batch_group *chain;           /* in its bucket */
	struct batch_group *next, *previous; /* in order of the oldest member */
	struct job_list jobs;                /* never empty between calls */
	size_t sequences, tokens, scores;    /* sums over jobs, saturating at SIZE_MAX */
	bool full;                           /* they reach a cap */
};

struct batcher {
	struct batch_caps caps;
	size_t jobs;
	double work;
	size_t full; /* groups that are */
	struct batch_group *first, *last;
	struct batch_group *buckets[BATCHER_BUCKETS];
};

struct batcher *batcher_new(const struct batch_caps *caps)
{
	struct batcher *batcher = calloc(1, sizeof(*batcher));
	if (batcher != NULL)
		batcher->caps = *caps;
	return batcher;
}

void batcher_free(struct batcher *batcher)
{
	assert(batcher == NULL || batcher->jobs == 0);
	free(batcher);
}

static size_t batch_key_bucket(const struct batch_key *key)
{
	uint64_t hash = 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < BATCH_KEY_WORDS; i++) {
		hash = (hash ^ key->words[i]) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	return (size_t)(hash % BATCHER_BUCKETS);
}

static struct batch_group *batcher_find(const struct batcher *batcher, const struct batch_key *key,
                                        size_t bucket)
{
	struct batch_group *group = batcher->buckets[bucket];
	while (group != NULL && memcmp(&group->key, key, sizeof(*key)) != 0)
		group = group->chain;
	return group;
}

/* ---- groups in order of their oldest member */

static void batcher_unlink(struct batcher *batcher, struct batch_group *group)
{
	if (group->previous != NULL)
		group->previous->next = group->next;
	else
		batcher->first = group->next;
	if (group->next != NULL)
		group->next->previous = group->previous;
	else
		batcher->last = group->previous;
}

/* Looks for the place from the end: a group that comes in, or comes back after a take, is mostly among the
 * last. */
static void batcher_link(struct batcher *batcher, struct batch_group *group)
{
	uint64_t since = group->jobs.first->stage_begun;
	struct batch_group *before = batcher->last;
	while (before != NULL && before->jobs.first->stage_begun > since)
		before = before->previous;

	group->previous = before;
	group->next = before != NULL ? before->next : batcher->first;
	if (group->next != NULL)
		group->next->previous = group;
	else
		batcher->last = group;
	if (before != NULL)
		before->next = group;
	else
		batcher->first = group;
}

static void batch_group_free(struct batcher *batcher, struct batch_group *group)
{
	struct batch_group **link = &batcher->buckets[group->bucket];
	while (*link != group)
		link = &(*link)->chain;
	*link = group->chain;
	free(group);
}

/* ---- sums */

static size_t batch_sum(size_t a, size_t b)
{
	size_t sum;
	return attn_size_add(a, b, &sum) ? sum : SIZE_MAX;
}

/* Sums saturate, so they are made anew when a job leaves instead of being subtracted from. */
static void batch_group_count(struct batch_group *group)
{
	group->sequences = group->tokens = group->scores = 0;
	for (const struct job *job = group->jobs.first; job != NULL; job = job->next) {
		group->sequences = batch_sum(group->sequences, job->sequences);
		group->tokens = batch_sum(group->tokens, job->tokens);
		group->scores = batch_sum(group->scores, job->scores);
	}
}

static void batcher_note_full(struct batcher *batcher, struct batch_group *group)
{
	const struct batch_caps *caps = &batcher->caps;
	batcher->full -= group->full;
	group->full = group->jobs.count >= caps->jobs || group->sequences >= caps->sequences ||
	              group->tokens >= caps->tokens || group->scores >= caps->scores;
	batcher->full += group->full;
}

/* ---- jobs in and out */

static struct batch_group *batch_group_new(struct batcher *batcher, const struct batch_key *key,
                                           size_t bucket)
{
	struct batch_group *group = calloc(1, sizeof(*group));
	if (group == NULL)
		return NULL;
	group->key = *key;
	group->bucket = bucket;
	group->chain = batcher->buckets[bucket];
	batcher->buckets[bucket] = group;
	return group;
}

bool batcher_add(struct batcher *batcher, struct job *job)
{
	size_t bucket = batch_key_bucket(&job->key);
	struct batch_group *group = batcher_find(batcher, &job->key, bucket);
	bool made = group == NULL;
	if (made)
		group = batch_group_new(batcher, &job->key, bucket);
	if (group == NULL)
		return false;
	job_list_append(&group->jobs, job);
	if (made)
		batcher_link(batcher, group);
	group->sequences = batch_sum(group->sequences, job->sequences);
	group->tokens = batch_sum(group->tokens, job->tokens);
	group->scores = batch_sum(group->scores, job->scores);
	batcher_note_full(batcher, group);
	batcher->jobs++;
	batcher->work += job->work;
	return true;
}

static void batcher_take_out(struct batcher *batcher, struct batch_group *group, struct job *job)
{
	job_list_remove(&group->jobs, job);
	batcher->jobs--;
	batcher->work = batcher->jobs == 0 ? 0 : batcher->work - job->work;
}

/* After jobs left the group: its sums and its place, or its end. */
static void batcher_settle(struct batcher *batcher, struct batch_group *group)
{
	batch_group_count(group);
	batcher_note_full(batcher, group);
	batcher_unlink(batcher, group);
	if (group->jobs.count == 0)
		batch_group_free(batcher, group);
	else
		batcher_link(batcher, group);
}

void batcher_remove(struct batcher *batcher, struct job *job)
{
	struct batch_group *group = batcher_find(batcher, &job->key, batch_key_bucket(&job->key));
	assert(group != NULL);
	batcher_take_out(batcher, group, job);
	batcher_settle(batcher, group);
}

/* NULL when no group is full. */
static struct batch_group *batcher_oldest_full(const struct batcher *batcher)
{
	struct batch_group *group = batcher->full > 0 ? batcher->first : NULL;
	while (group != NULL && !group->full)
		group = group->next;
	return group;
}

struct batcher_view batcher_view_of(const struct batcher *batcher)
{
	struct batcher_view view = {.jobs = batcher->jobs, .work = batcher->work};
	if (batcher->first != NULL)
		view.oldest_since = batcher->first->jobs.first->stage_begun;
	const struct batch_group *full = batcher_oldest_full(batcher);
	view.full = full != NULL;
	if (full != NULL)
		view.full_since = full->jobs.first->stage_begun;
	return view;
}

/* Whether the job may join what a take holds already. */
static bool batch_fits(size_t held, size_t more, size_t cap)
{
	return held <= cap && more <= cap - held;
}

size_t batcher_take(struct batcher *batcher, bool full, struct job **out)
{
	const struct batch_caps *caps = &batcher->caps;
	struct batch_group *group = full ? batcher_oldest_full(batcher) : batcher->first;
	assert(group != NULL);

	size_t count = 0, sequences = 0, tokens = 0, scores = 0;
	struct job *job = group->jobs.first;
	do {
		sequences = batch_sum(sequences, job->sequences);
		tokens = batch_sum(tokens, job->tokens);
		scores = batch_sum(scores, job->scores);
		batcher_take_out(batcher, group, job);
		out[count++] = job;
		job = group->jobs.first;
	} while (
	    job != NULL && count < caps->jobs && batch_fits(sequences, job->sequences, caps->sequences) &&
	    batch_fits(tokens, job->tokens, caps->tokens) && batch_fits(scores, job->scores, caps->scores));
	batcher_settle(batcher, group);
	return count;
}

struct job *batcher_take_job(struct batcher *batcher)
{
	if (batcher->first == NULL)
		return NULL;
	struct job *job = batcher->first->jobs.first;
	batcher_remove(batcher, job);
	return job;
}
