#include "observe/process.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds since the epoch at which the system started; NAN when it does not say. */
static double boot_seconds(void)
{
	FILE *file = fopen("/proc/stat", "re");
	if (file == NULL)
		return NAN;
	char line[256];
	unsigned long long boot = 0;
	double seconds = NAN;
	while (isnan(seconds) && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "btime %llu", &boot) == 1)
			seconds = (double)boot;
	}
	fclose(file);
	return seconds;
}

/* proc(5): fields 14, 15 (processor ticks), 22 (start, ticks after boot), 23 (virtual bytes), 24 (resident
 * pages); counted from the last ')' because field 2 is any text. */
static void read_stat(struct process_stats *stats)
{
	FILE *file = fopen("/proc/self/stat", "re");
	if (file == NULL)
		return;
	char text[1024];
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	const char *rest = strrchr(text, ')');
	unsigned long long user, kernel, start, space;
	long long pages;
	if (rest == NULL ||
	    sscanf(rest + 1,
	           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d "
	           "%*d %llu %llu %lld",
	           &user, &kernel, &start, &space, &pages) != 5)
		return;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	stats->cpu_seconds = (double)(user + kernel) * tick;
	stats->start_seconds = boot_seconds() + (double)start * tick;
	stats->virtual_bytes = (double)space;
	stats->resident_bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* The descriptor that lists is not counted. */
static double count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	if (folder == NULL)
		return NAN;
	double count = -1;
	const struct dirent *entry;
	while ((entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

struct process_stats process_stats_now(void)
{
	struct process_stats stats = {NAN, NAN, NAN, NAN, NAN, NAN};
	read_stat(&stats);
	stats.open_descriptors = count_descriptors();
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		stats.max_descriptors = limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur;
	return stats;
}
