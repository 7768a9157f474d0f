#include "pipeline/calls.h"

#include "observe/metrics.h"

/* Where a walk over the sequences of a lot stands. */
struct cursor {
	struct job *const *jobs;
	size_t count;
	size_t job, sequence;
};

/* The sequences of one call. */
struct slice {
	size_t room, count;
	size_t first_job, last_job; /* whose sequences it holds */
	char *items;
};

static bool slice_fill(struct slice *slice, struct cursor *at, const struct call_lot *lot,
                       attn_arena *scratch)
{
	slice->count = 0;
	while (slice->count < slice->room && at->job < at->count) {
		const struct job *job = at->jobs[at->job];
		if (at->sequence == lot->count(lot, job)) {
			at->job++;
			at->sequence = 0;
			continue;
		}
		if (slice->count == 0)
			slice->first_job = at->job;
		slice->last_job = at->job;
		void *item = slice->items + slice->count++ * lot->item_size;
		if (!lot->fill(lot, job, at->sequence++, item, scratch))
			return false;
	}
	return true;
}

static void note_call(struct job *const *jobs, const struct slice *slice)
{
	for (size_t i = slice->first_job; i <= slice->last_job; i++) {
		if (jobs[i]->batch_sequences < slice->count)
			jobs[i]->batch_sequences = slice->count;
	}
}

static attn_status slice_run(struct slice *slice, struct cursor *at, const struct call_lot *lot,
                             const struct call_means *means)
{
	attn_arena *scratch = means->executor->scratch;
	attn_arena_mark mark = attn_arena_here(scratch);
	attn_status status = ATTN_MEMORY;
	if (slice_fill(slice, at, lot, scratch)) {
		metrics_batch(slice->count, slice->count * lot->length);
		status = lot->run(lot, slice->items, slice->count, means);
	}
	attn_arena_rewind(scratch, mark);
	if (status == ATTN_OK)
		note_call(at->jobs, slice);
	return status;
}

/* Sequences a call, at least 1. */
static size_t most_of(const struct call_lot *lot, const struct call_means *means)
{
	size_t by_scores = lot->scores > 0 ? means->max_scores / lot->scores : means->max_sequences;
	size_t most = by_scores < means->max_sequences ? by_scores : means->max_sequences;
	return most > 0 ? most : 1;
}

attn_status calls_run(struct job *const *jobs, size_t count, const struct call_lot *lot,
                      const struct call_means *means)
{
	size_t total = 0, most = most_of(lot, means);
	for (size_t i = 0; i < count; i++)
		total += lot->count(lot, jobs[i]);
	struct slice slice = {.room = total < most ? total : most};
	slice.items = attn_arena_alloc(means->executor->scratch, slice.room * lot->item_size);
	if (slice.items == NULL)
		return ATTN_MEMORY;

	struct cursor at = {.jobs = jobs, .count = count};
	attn_status status = ATTN_OK;
	for (size_t done = 0; done < total && status == ATTN_OK; done += slice.count)
		status = slice_run(&slice, &at, lot, means);
	return status;
}

static attn_status compute_rewound(struct job *const *jobs, size_t count, calls_together *together,
                                   const struct call_means *means)
{
	attn_arena *scratch = means->executor->scratch;
	attn_arena_mark mark = attn_arena_here(scratch);
	attn_status status = together(jobs, count, means);
	attn_arena_rewind(scratch, mark);
	return status;
}

void calls_compute(struct job *const *jobs, size_t count, calls_together *together,
                   const struct call_means *means)
{
	attn_status status = compute_rewound(jobs, count, together, means);
	if (status == ATTN_OK)
		return;
	for (size_t i = 0; i < count; i++) {
		attn_status alone = status;
		if (count > 1 && status != ATTN_CANCELLED)
			alone = compute_rewound(&jobs[i], 1, together, means);
		if (alone != ATTN_OK)
			problem_set_status(&jobs[i]->problem, alone);
	}
}
