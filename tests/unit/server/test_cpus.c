#include "cpus.h"
#include "suite.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

/* Writes text to root/path, making the folders on the way. */
static void put(const char *path, const char *text)
{
	char full[256];
	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	FILE *file = fopen(full, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

/* A fresh tree with this membership. */
static void tree(const char *membership)
{
	snprintf(root, sizeof root, "/tmp/attnd-cpus-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	put("membership", membership);
}

/* The quota of the tree, which is removed. */
static size_t quota(void)
{
	char membership[128], command[128];
	snprintf(membership, sizeof membership, "%s/membership", root);
	size_t result = cpus_quota(membership, root);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
	return result;
}

START_TEST(a_quota_is_rounded_up_to_whole_cpus)
{
	static const struct {
		const char *text;
		size_t cpus;
	} cases[] = {{"150000 100000\n", 2},     {"200000 100000\n", 2},
	             {"200001 100000\n", 3},     {"1000 100000\n", 1},
	             {"max 100000\n", SIZE_MAX}, {"100000 0\n", SIZE_MAX},
	             {"nonsense\n", SIZE_MAX},   {"", SIZE_MAX}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tree("0::/service\n");
		put("service/cpu.max", cases[i].text);
		ck_assert_uint_eq(quota(), cases[i].cpus);
	}
}
END_TEST

START_TEST(the_least_quota_on_the_way_to_the_root_counts)
{
	tree("0::/system.slice/attnd.service/inner\n");
	put("system.slice/cpu.max", "300000 100000\n");
	put("system.slice/attnd.service/cpu.max", "max 100000\n");
	put("system.slice/attnd.service/inner/cpu.max", "800000 100000\n");
	put("system.slice/other/cpu.max", "100000 100000\n");
	ck_assert_uint_eq(quota(), 3);
}
END_TEST

START_TEST(a_group_that_is_not_visible_is_passed_over)
{
	tree("0::/kubepods/pod1/container1\n");
	put("cpu.max", "250000 100000\n"); /* the container's own group, mounted as the root */
	ck_assert_uint_eq(quota(), 3);
}
END_TEST

START_TEST(the_root_group_itself_counts)
{
	tree("0::/\n");
	put("cpu.max", "400000 100000\n");
	ck_assert_uint_eq(quota(), 4);
}
END_TEST

START_TEST(version_1_quotas_are_read_from_the_cpu_controller)
{
	tree("5:memory:/a\n4:cpu,cpuacct:/a/b\n3:cpuset:/c\n0::/none\n");
	put("cpu,cpuacct/a/cpu.cfs_quota_us", "350000\n");
	put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	put("cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
	put("cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
	put("cpuset/c/cpu.cfs_quota_us", "100000\n");
	put("cpuset/c/cpu.cfs_period_us", "100000\n");
	ck_assert_uint_eq(quota(), 4);
}
END_TEST

START_TEST(without_groups_there_is_no_quota)
{
	tree("nonsense\n0:\n");
	ck_assert_uint_eq(quota(), SIZE_MAX);
	ck_assert_uint_eq(cpus_quota("/nowhere/membership", "/nowhere"), SIZE_MAX);
}
END_TEST

START_TEST(affinity_bounds_the_cpus)
{
	cpu_set_t all, one;
	ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
	size_t before = cpus_allowed();
	ck_assert_uint_ge(before, 1);
	ck_assert_uint_le(before, (size_t)CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
	ck_assert_uint_eq(cpus_allowed(), 1);
	ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

SUITE_MAIN("cpus", a_quota_is_rounded_up_to_whole_cpus, the_least_quota_on_the_way_to_the_root_counts,
           a_group_that_is_not_visible_is_passed_over, the_root_group_itself_counts,
           version_1_quotas_are_read_from_the_cpu_controller, without_groups_there_is_no_quota,
           affinity_bounds_the_cpus)
