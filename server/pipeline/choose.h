/*
 * choose.h - what a free worker does next: a pure function of a small view of the queue and the time.
 *
 * The order: a format task (it frees memory); a batch that is full or whose oldest member has waited longer
 * than batch_max_age; else whichever has waited longer where it is now, the first parse task or the oldest
 * batch (so a burst is parsed before it is computed, and batches form); else a tile of a running call; else
 * nothing. A batch that is not full is held back until its oldest member has waited batch_wait.
 */
#ifndef ATTND_PIPELINE_CHOOSE_H
#define ATTND_PIPELINE_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/* What there is; times are those at which the first of each began to wait, in nanoseconds. */
struct choose_view {
	bool format;
	bool parse;
	bool batch; /* the group whose oldest member waits longest */
	bool full;  /* likewise among full groups */
	bool tile;
	uint64_t parse_since, batch_since, full_since;
};

struct choose_rules {
	uint64_t batch_wait, batch_max_age; /* nanoseconds */
};

enum choice { CHOOSE_NOTHING, CHOOSE_FORMAT, CHOOSE_BATCH, CHOOSE_FULL_BATCH, CHOOSE_PARSE, CHOOSE_TILE };

#define CHOOSE_NEVER UINT64_MAX

/* *again matters with CHOOSE_NOTHING: when to ask again though nothing new came: CHOOSE_NEVER, or the end of
 * the time that a batch is held. A `since` after `now` counts as now. */
enum choice choose_task(const struct choose_view *view, const struct choose_rules *rules, uint64_t now,
                        uint64_t *again);

#endif
