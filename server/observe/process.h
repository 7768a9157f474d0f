/*
 * process.h - what the system says of this process: processor time, memory, descriptors.
 */
#ifndef ATTND_OBSERVE_PROCESS_H
#define ATTND_OBSERVE_PROCESS_H

/* Seconds, bytes and counts; NAN where the system does not say. */
struct process_stats {
	double cpu_seconds;   /* user and system, all threads */
	double start_seconds; /* since the epoch */
	double resident_bytes, virtual_bytes;
	double open_descriptors, max_descriptors;
};

/* Reads /proc and the descriptor limit; tens of microseconds. Any thread. */
struct process_stats process_stats_now(void);

#endif
