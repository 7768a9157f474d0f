#include "codec/forward_groups.h"

#include <stdlib.h>
#include <string.h>

int forward_lengths_compare(const size_t a[ATTN_STACKS], const size_t b[ATTN_STACKS])
{
	for (size_t stack = 0; stack < ATTN_STACKS; stack++) {
		if (a[stack] != b[stack])
			return a[stack] < b[stack] ? -1 : 1;
	}
	return 0;
}

struct sorted {
	size_t lengths[ATTN_STACKS];
	size_t sequence;
};

static int by_lengths(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;
	int order = forward_lengths_compare(a->lengths, b->lengths);
	if (order != 0)
		return order;
	return a->sequence < b->sequence ? -1 : 1;
}

static void fill(struct forward_groups *groups, const struct sorted *sorted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct forward_group *last = groups->count > 0 ? &groups->list[groups->count - 1] : NULL;
		if (last == NULL || forward_lengths_compare(last->lengths, sorted[i].lengths) != 0) {
			last = &groups->list[groups->count++];
			*last = (struct forward_group){.first = i};
			memcpy(last->lengths, sorted[i].lengths, sizeof(last->lengths));
		}
		last->count++;
		groups->order[i] = sorted[i].sequence;
		groups->group[sorted[i].sequence] = groups->count - 1;
		groups->place[sorted[i].sequence] = i;
	}
}

bool forward_groups_make(struct forward_groups *groups, const size_t *const lengths[ATTN_STACKS],
                         size_t count, const size_t none[ATTN_STACKS])
{
	size_t room = count * sizeof(size_t) + 1;
	struct sorted *sorted = malloc(count * sizeof(*sorted) + 1);
	bool made = false;
	*groups = (struct forward_groups){.list = malloc((count + 1) * sizeof(*groups->list)),
	                                  .order = malloc(room),
	                                  .group = malloc(room),
	                                  .place = malloc(room)};
	if (sorted == NULL || groups->list == NULL || groups->order == NULL || groups->group == NULL ||
	    groups->place == NULL)
		goto done;
	for (size_t i = 0; i < count; i++) {
		sorted[i].sequence = i;
		for (size_t stack = 0; stack < ATTN_STACKS; stack++)
			sorted[i].lengths[stack] = lengths[stack] != NULL ? lengths[stack][i] : 0;
	}
	qsort(sorted, count, sizeof(*sorted), by_lengths);
	fill(groups, sorted, count);
	if (count == 0) {
		groups->count = 1;
		groups->list[0] = (struct forward_group){.count = 0};
		memcpy(groups->list[0].lengths, none, sizeof(groups->list[0].lengths));
	}
	made = true;
done:
	free(sorted);
	return made;
}

void forward_groups_clear(struct forward_groups *groups)
{
	free(groups->list);
	free(groups->order);
	free(groups->group);
	free(groups->place);
	*groups = (struct forward_groups){0};
}
