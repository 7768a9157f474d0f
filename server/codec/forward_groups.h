/*
 * forward_groups.h - the sequences of a forward request by their lengths: those of a group are computed in
 * the same calls.
 *
 * Plain data. One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_GROUPS_H
#define ATTND_CODEC_FORWARD_GROUPS_H

#include "attn.h"

struct forward_group {
	size_t lengths[ATTN_STACKS];
	size_t first, count; /* of order; count 0 only in a request of no sequences */
};

struct forward_groups {
	struct forward_group *list; /* [count], by lengths, at least one */
	size_t count;
	size_t *order; /* [sequences]: group by group, each in the order of the request */
	size_t *group; /* [sequences]: of each sequence */
	size_t *place; /* [sequences]: in order */
};

/* Whether a group's lengths come before, after (1) or are (0) those: the order of groups. */
int forward_lengths_compare(const size_t a[ATTN_STACKS], const size_t b[ATTN_STACKS]);

/* Groups `count` sequences whose lengths are lengths[stack][sequence]; lengths[stack] NULL: all 0. Without
 * sequences there is one group of the lengths `none`. false: no memory. */
bool forward_groups_make(struct forward_groups *groups, const size_t *const lengths[ATTN_STACKS],
                         size_t count, const size_t none[ATTN_STACKS]);
void forward_groups_clear(struct forward_groups *groups);

#endif
