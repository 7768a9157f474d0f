/*
 * latency_table.h - what latency.c keeps, for latency_json.c to write; inside latency only.
 */
#ifndef ATTND_OBSERVE_LATENCY_TABLE_H
#define ATTND_OBSERVE_LATENCY_TABLE_H

#include "observe/latency.h"
#include "observe/quantiles.h"

#define LATENCY_MODEL_MAX 128

/* All that was seen of one length in one series. */
struct latency_length {
	size_t length;
	struct quantiles total, compute;
};

struct latency_series {
	enum metrics_operation operation;
	bool has_model;
	char model[LATENCY_MODEL_MAX + 1];
	size_t heads, width;
	struct latency_length **lengths; /* ascending, owned; LATENCY_MAX_LENGTHS over all series */
	size_t count, room;
};

struct latency {
	struct latency_series series[LATENCY_MAX_SERIES]; /* by first sight */
	size_t series_count, lengths_count;
	struct latency_length other; /* its length means nothing */
};

#endif
