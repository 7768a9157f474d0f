#include "model_room.h"

#include "model_files.h"
#include "suite.h"

#include <string.h>
#include <sys/stat.h>

/* A tree that stands for /, in which there are so many kilobytes of memory and the groups of a process. */
static char *tree(const char *meminfo, const char *membership)
{
	static const char *const folders[] = {"proc",
	                                      "proc/self",
	                                      "sys",
	                                      "sys/fs",
	                                      "sys/fs/cgroup",
	                                      "sys/fs/cgroup/a",
	                                      "sys/fs/cgroup/a/b",
	                                      "sys/fs/cgroup/memory",
	                                      "sys/fs/cgroup/memory/c"};
	char *root = folder_make();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *path = folder_path(root, folders[i]);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		free(path);
	}
	if (meminfo)
		folder_write_text(root, "proc/meminfo", meminfo);
	if (membership)
		folder_write_text(root, "proc/self/cgroup", membership);
	return root;
}

static void room_is(char *root, size_t wanted)
{
	ck_assert_uint_eq(attn_model_room(root), wanted);
	folder_remove(root);
}

#define MEMINFO "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   6000 kB\n"
#define AVAILABLE ((size_t)6000 * 1024)

START_TEST(the_room_of_a_machine_is_what_is_available)
{
	room_is(tree(MEMINFO, NULL), AVAILABLE);
	room_is(tree(MEMINFO, "0::/\n"), AVAILABLE);
	room_is(tree(NULL, NULL), SIZE_MAX);
	room_is(tree("MemTotal: 8000 kB\n", "nonsense\n"), SIZE_MAX);
}
END_TEST

START_TEST(a_group_leaves_its_limit_less_what_is_used)
{
	char *root = tree(MEMINFO, "0::/a/b\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.max", "1000000\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.current", "300000\n");
	room_is(root, 700000);
	root = tree(MEMINFO, "0::/a/b\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.max", "1000000\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.current", "1200000\n");
	room_is(root, 0);
}
END_TEST

START_TEST(copies_of_files_count_as_free_shared_memory_does_not)
{
	char *root = tree(MEMINFO, "0::/a/b\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.max", "1000000\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.current", "900000\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.stat", "anon 100000\nfile 600000\nshmem 200000\n");
	room_is(root, 500000);
}
END_TEST

START_TEST(the_least_of_the_groups_above_counts)
{
	char *root = tree(MEMINFO, "0::/a/b\n");
	folder_write_text(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
	folder_write_text(root, "sys/fs/cgroup/a/memory.max", "500000\n");
	folder_write_text(root, "sys/fs/cgroup/a/memory.current", "100000\n");
	room_is(root, 400000);
}
END_TEST

START_TEST(groups_of_version_one_count_too)
{
	char *root = tree(MEMINFO, "9:name=systemd:/\n4:memory:/c\n1:cpu:/c\n0::/\n");
	folder_write_text(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "2000000\n");
	folder_write_text(root, "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1500000\n");
	folder_write_text(root, "sys/fs/cgroup/memory/c/memory.stat", "cache 5\ntotal_cache 1000000\n");
	room_is(root, 1500000);
	root = tree(MEMINFO, "4:memory:/c\n");
	folder_write_text(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
	folder_write_text(root, "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1500000\n");
	room_is(root, AVAILABLE);
}
END_TEST

START_TEST(a_model_larger_than_the_room_is_refused_with_both_numbers)
{
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_model_room_check(1, &err), ATTN_OK);
	const size_t numbers = (size_t)1 << 60; /* 4 EiB */
	ck_assert_int_eq(attn_model_room_check(numbers, &err), ATTN_MEMORY);
	ck_assert_msg(strstr(err.message, "4611686018427387904 bytes") && strstr(err.message, "there are"),
	              "%s", err.message);
	ck_assert_int_eq(attn_model_room_check(SIZE_MAX, &err), ATTN_MEMORY);
}
END_TEST

SUITE_MAIN("model room", the_room_of_a_machine_is_what_is_available,
           a_group_leaves_its_limit_less_what_is_used, copies_of_files_count_as_free_shared_memory_does_not,
           the_least_of_the_groups_above_counts, groups_of_version_one_count_too,
           a_model_larger_than_the_room_is_refused_with_both_numbers)
