/*
 * cpus.h - how many CPUs this process may use: the workers to start when nobody says otherwise.
 *
 * Reads small files; for the main thread, at start.
 */
#ifndef ATTND_CPUS_H
#define ATTND_CPUS_H

#include <stddef.h>

/* max(1, min(affinity, quota)): the CPUs the scheduler may place us on, and the CPU time that the control
 * group of this process and those above it may take, rounded up to whole CPUs. */
size_t cpus_allowed(void);

/* The least quota in whole CPUs, rounded up, SIZE_MAX without one. membership is a file like
 * /proc/self/cgroup, root the folder where groups are mounted (/sys/fs/cgroup). Knows cpu.max of version 2
 * and cpu.cfs_quota_us of version 1; a group that is not visible under root, as in a container, is passed
 * over, the ones above it are read. */
size_t cpus_quota(const char *membership, const char *root);

#endif
