#include "codec/large.h"

#include "suite.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LARGE ((size_t)8 << 20)
#define SMALL ((size_t)1 << 20)

/* Flags of the mapping that an address lies in, as the system tells them; "" where it does not. */
static void mapping_flags(const void *at, char *flags, size_t room)
{
	char line[512];
	unsigned long begin, end, address = (unsigned long)(uintptr_t)at;
	bool inside = false;
	FILE *file = fopen("/proc/self/smaps", "r");
	flags[0] = '\0';
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = address >= begin && address < end;
		if (inside && strncmp(line, "VmFlags:", 8) == 0)
			snprintf(flags, room, "%s", line + 8);
	}
	if (file != NULL)
		fclose(file);
}

START_TEST(a_large_block_gets_large_block_and_keeps_what_it_holds)
{
	size_t bytes = LARGE;
	char flags[512], *block = malloc(bytes);
	ck_assert_ptr_nonnull(block);
	memset(block, 7, bytes);
	ck_assert_ptr_eq(large_block(block, bytes), block);
	for (size_t i = 0; i < bytes; i++)
		ck_assert_int_eq(block[i], 7);
	mapping_flags(block + bytes / 2, flags, sizeof(flags));
	if (flags[0] == '\0')
		suite_skip("the system does not tell flags of mappings");
	else
		ck_assert_msg(strstr(flags, " hg") != NULL, "flags%s", flags);
	free(block);
}
END_TEST

START_TEST(a_small_block_stays_as_it_is)
{
	char flags[512], *block = malloc(SMALL);
	ck_assert_ptr_nonnull(block);
	ck_assert_ptr_eq(large_block(block, SMALL), block);
	mapping_flags(block + SMALL / 2, flags, sizeof(flags));
	ck_assert_msg(strstr(flags, " hg") == NULL, "flags%s", flags);
	free(block);
}
END_TEST

START_TEST(memory_that_was_refused_stays_so)
{
	ck_assert_ptr_null(large_block(NULL, LARGE));
}
END_TEST

SUITE_MAIN("large", a_large_block_gets_large_block_and_keeps_what_it_holds, a_small_block_stays_as_it_is,
           memory_that_was_refused_stays_so)
