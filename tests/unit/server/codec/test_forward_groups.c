#include "codec/forward_groups.h"

#include "suite.h"

static const size_t none[ATTN_STACKS] = {7, 0};

START_TEST(sequences_of_equal_lengths_stand_together_in_their_order)
{
	const size_t first[] = {5, 2, 5, 0, 2, 5};
	const size_t *const lengths[ATTN_STACKS] = {first, NULL};
	const size_t order[] = {3, 1, 4, 0, 2, 5};
	const size_t counts[] = {1, 2, 3}, of[] = {0, 2, 5};
	struct forward_groups groups;
	ck_assert(forward_groups_make(&groups, lengths, 6, none));
	ck_assert_uint_eq(groups.count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(groups.list[i].count, counts[i]);
		ck_assert_uint_eq(groups.list[i].lengths[ATTN_FIRST_STACK], of[i]);
		ck_assert_uint_eq(groups.list[i].lengths[ATTN_SECOND_STACK], 0);
	}
	for (size_t i = 0; i < 6; i++) {
		const struct forward_group *group = &groups.list[groups.group[i]];
		ck_assert_uint_eq(groups.order[i], order[i]);
		ck_assert_uint_eq(groups.order[groups.place[i]], i);
		ck_assert_uint_eq(group->lengths[ATTN_FIRST_STACK], first[i]);
		ck_assert(groups.place[i] >= group->first && groups.place[i] < group->first + group->count);
	}
	forward_groups_clear(&groups);
}
END_TEST

START_TEST(a_group_is_of_equal_lengths_in_both_stacks)
{
	const size_t first[] = {3, 3, 3}, second[] = {2, 1, 2};
	const size_t *const lengths[ATTN_STACKS] = {first, second};
	struct forward_groups groups;
	ck_assert(forward_groups_make(&groups, lengths, 3, none));
	ck_assert_uint_eq(groups.count, 2);
	ck_assert_uint_eq(groups.list[0].count, 1);
	ck_assert_uint_eq(groups.order[0], 1);
	ck_assert_int_lt(forward_lengths_compare(groups.list[0].lengths, groups.list[1].lengths), 0);
	forward_groups_clear(&groups);
}
END_TEST

START_TEST(without_sequences_there_is_one_group_of_none)
{
	const size_t *const lengths[ATTN_STACKS] = {NULL, NULL};
	struct forward_groups groups;
	ck_assert(forward_groups_make(&groups, lengths, 0, none));
	ck_assert_uint_eq(groups.count, 1);
	ck_assert_uint_eq(groups.list[0].count, 0);
	ck_assert_uint_eq(groups.list[0].lengths[ATTN_FIRST_STACK], 7);
	forward_groups_clear(&groups);
}
END_TEST

SUITE_MAIN("forward_groups", sequences_of_equal_lengths_stand_together_in_their_order,
           a_group_is_of_equal_lengths_in_both_stacks, without_sequences_there_is_one_group_of_none)
