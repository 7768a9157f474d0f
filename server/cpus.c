#include "cpus.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The first line of folder/name; false when there is none. */
static bool read_line(const char *folder, const char *name, char *line, int size)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		return false;
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool read = fgets(line, size, file) != NULL;
	fclose(file);
	return read;
}

/* quota / period in whole CPUs, rounded up. */
static size_t whole_cpus(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return SIZE_MAX;
	return (size_t)(quota / period + (quota % period != 0));
}

/* Of one group, whichever version's files it has. */
static size_t group_quota(const char *folder)
{
	char line[64];
	long long quota, period;
	if (read_line(folder, "cpu.max", line, sizeof line)) /* "max 100000" or "150000 100000" */
		return sscanf(line, "%lld %lld", &quota, &period) == 2 ? whole_cpus(quota, period) : SIZE_MAX;
	if (!read_line(folder, "cpu.cfs_quota_us", line, sizeof line) || sscanf(line, "%lld", &quota) != 1)
		return SIZE_MAX;
	if (!read_line(folder, "cpu.cfs_period_us", line, sizeof line) || sscanf(line, "%lld", &period) != 1)
		return SIZE_MAX;
	return whole_cpus(quota, period);
}

/* Of the group at base/path and of each above it, base itself included. */
static size_t branch_quota(const char *base, const char *path)
{
	char folder[PATH_MAX];
	int length = snprintf(folder, sizeof folder, "%s%s", base, path);
	size_t quota = SIZE_MAX, root = strlen(base);
	if (length < 0 || (size_t)length >= sizeof folder)
		return SIZE_MAX;
	for (;;) {
		quota = smaller(quota, group_quota(folder));
		char *slash = strrchr(folder, '/');
		if (slash == NULL || slash < folder + root)
			return quota;
		*slash = '\0';
	}
}

/* Whether the comma-separated list of controllers names cpu. */
static bool names_cpu(const char *controllers)
{
	size_t length;
	for (const char *p = controllers; *p != '\0'; p += length + (p[length] == ',')) {
		length = strcspn(p, ",");
		if (length == 3 && memcmp(p, "cpu", 3) == 0)
			return true;
	}
	return false;
}

/* Of one line of membership, "hierarchy:controllers:path"; version 2 has no controllers there. */
static size_t line_quota(char *line, const char *root)
{
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':');
	char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
	if (path == NULL)
		return SIZE_MAX;
	controllers++;
	*path++ = '\0';
	if (*controllers == '\0')
		return branch_quota(root, path);
	char base[PATH_MAX];
	if (!names_cpu(controllers) ||
	    snprintf(base, sizeof base, "%s/%s", root, controllers) >= (int)sizeof base)
		return SIZE_MAX;
	return branch_quota(base, path);
}

size_t cpus_quota(const char *membership, const char *root)
{
	FILE *file = fopen(membership, "re");
	if (file == NULL)
		return SIZE_MAX;
	size_t quota = SIZE_MAX, size = 0;
	char *line = NULL;
	while (getline(&line, &size, file) > 0)
		quota = smaller(quota, line_quota(line, root));
	free(line);
	fclose(file);
	return quota;
}

/* CPUs of the affinity mask, which on large machines is larger than cpu_set_t. */
static size_t affinity(void)
{
	for (size_t cpus = CPU_SETSIZE; cpus <= 1u << 20; cpus *= 2) {
		cpu_set_t *set = CPU_ALLOC(cpus);
		if (set == NULL)
			break;
		int result = sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set);
		bool small = result != 0 && errno == EINVAL;
		size_t count = result == 0 ? (size_t)CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set) : 0;
		CPU_FREE(set);
		if (count > 0)
			return count;
		if (!small)
			break;
	}
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (size_t)online : 1;
}

size_t cpus_allowed(void)
{
	size_t allowed = smaller(affinity(), cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
	return allowed > 0 ? allowed : 1;
}
