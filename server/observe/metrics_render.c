#include "observe/metrics.h"
#include "observe/metrics_shard.h"
#include "observe/process.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Every text goes through a memory stream, whose first refusal is remembered and found at the end. */

static uint64_t cell(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void render_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void render_gauge(FILE *out, const char *name, const char *help, size_t value)
{
	render_family(out, name, "gauge", help);
	fprintf(out, "%s %zu\n", name, value);
}

/* labels: `a="b",c="d"`, or "". A histogram without counts is left out. */
static void render_histogram(FILE *out, const char *name, const char *labels,
                             const struct metrics_histogram *histogram, const struct metrics_bounds *bounds)
{
	uint64_t buckets[METRICS_MAX_BUCKETS];
	uint64_t count = 0;
	for (size_t i = 0; i <= bounds->count; i++) {
		count += cell(&histogram->buckets[i]);
		buckets[i] = count;
	}
	if (count == 0)
		return;
	bool bare = labels[0] == '\0';
	const char *comma = bare ? "" : ",", *open = bare ? "" : "{", *close = bare ? "" : "}";
	for (size_t i = 0; i < bounds->count; i++)
		fprintf(out, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma, bounds->le[i],
		        buckets[i]);
	fprintf(out, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, count);
	double sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
	fprintf(out, "%s_sum%s%s%s %.12g\n", name, open, labels, close, sum);
	fprintf(out, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, count);
}

/* One series for each length bucket of one operation or stage. */
static void render_lengths(FILE *out, const char *name, const char *key, const char *label,
                           const struct metrics_histogram *histograms)
{
	for (size_t i = 0; i < METRICS_LENGTHS; i++) {
		char labels[96];
		snprintf(labels, sizeof(labels), "%s=\"%s\",sequence_length=\"%zu\"", key, label,
		         (size_t)1 << i);
		render_histogram(out, name, labels, &histograms[i], &metrics_bounds_seconds);
	}
}

static void render_durations(FILE *out, const struct metrics_shard *total)
{
	render_family(
	    out, "attnd_request_duration_seconds", "histogram",
	    "Time from a request's headers to its reply, by operation and sequence length (upper bound).");
	for (int i = 0; i < METRICS_OPERATIONS; i++)
		render_lengths(out, "attnd_request_duration_seconds", "operation",
		               metrics_operation_label((enum metrics_operation)i), total->request_seconds[i]);
	render_family(
	    out, "attnd_stage_duration_seconds", "histogram",
	    "Time of a request in each stage, by sequence length (upper bound); compute is the whole call.");
	for (int i = 0; i < STAGES; i++)
		render_lengths(out, "attnd_stage_duration_seconds", "stage",
		               metrics_stage_label((enum metrics_stage)i), total->stage_seconds[i]);
}

static void render_batches(FILE *out, const struct metrics_shard *total)
{
	render_family(out, "attnd_batch_sequences", "histogram", "Sequences in one call.");
	render_histogram(out, "attnd_batch_sequences", "", &total->batch_sequences,
	                 &metrics_bounds_sequences);
	render_family(out, "attnd_batch_tokens", "histogram", "Tokens (sequences times length) in one call.");
	render_histogram(out, "attnd_batch_tokens", "", &total->batch_tokens, &metrics_bounds_tokens);
}

static void render_requests(FILE *out, const struct metrics_shard *total)
{
	static const char *const codes[METRICS_STATUSES] = {
#define X(status) #status,
	    METRICS_STATUS_MAP(X)
#undef X
	        "other"};
	render_family(out, "attnd_requests_total", "counter", "Requests by operation and HTTP status.");
	for (int i = 0; i < METRICS_OPERATIONS; i++) {
		for (size_t code = 0; code < METRICS_STATUSES; code++) {
			uint64_t count = cell(&total->requests[i][code]);
			if (count > 0)
				fprintf(
				    out, "attnd_requests_total{operation=\"%s\",code=\"%s\"} %" PRIu64 "\n",
				    metrics_operation_label((enum metrics_operation)i), codes[code], count);
		}
	}
	render_family(out, "attnd_deadline_closes_total", "counter",
	              "Connections closed because a part was not done by its deadline.");
	for (int part = 0; part < METRICS_PARTS; part++)
		fprintf(out, "attnd_deadline_closes_total{part=\"%s\"} %" PRIu64 "\n",
		        metrics_part_label((enum metrics_part)part), cell(&total->closes[part]));
}

/* A label's value: backslash, quote and newline escaped. */
static void render_label(FILE *out, const char *key, const char *value, const char *after)
{
	fprintf(out, "%s=\"", key);
	for (const char *c = value != NULL ? value : ""; *c != '\0'; c++) {
		if (*c == '\n')
			fputs("\\n", out);
		else if (*c == '\\' || *c == '"')
			fprintf(out, "\\%c", *c);
		else
			fputc(*c, out);
	}
	fprintf(out, "\"%s", after);
}

static void render_gauges(FILE *out, const struct metrics_gauges *gauges)
{
	render_gauge(out, "attnd_queue_depth", "Requests waiting for a worker.", gauges->queue_depth);
	render_gauge(out, "attnd_inflight_bytes", "Bytes charged to requests in flight.",
	             gauges->inflight_bytes);
	render_gauge(out, "attnd_workers_busy", "Workers running a task.", gauges->workers_busy);
	render_gauge(out, "attnd_workers", "Workers.", gauges->workers);
	render_gauge(out, "attnd_connections", "Open client connections.", gauges->connections);
	render_family(out, "attnd_build_info", "gauge", "What was built and what computes; always 1.");
	fputs("attnd_build_info{", out);
	render_label(out, "version", gauges->version, ",");
	render_label(out, "kernels", gauges->kernels, ",");
	render_label(out, "blas_core", gauges->blas_core, ",");
	render_label(out, "blas_config", gauges->blas_config, "} 1\n");
}

static void render_process_value(FILE *out, const char *name, const char *type, const char *help,
                                 double value)
{
	if (isnan(value))
		return;
	render_family(out, name, type, help);
	if (isinf(value))
		fprintf(out, "%s +Inf\n", name);
	else
		fprintf(out, "%s %.15g\n", name, value);
}

static void render_process(FILE *out)
{
	struct process_stats stats = process_stats_now();
	render_process_value(out, "process_cpu_seconds_total", "counter", "Processor time, user and system.",
	                     stats.cpu_seconds);
	render_process_value(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
	                     stats.resident_bytes);
	render_process_value(out, "process_virtual_memory_bytes", "gauge", "Address space.",
	                     stats.virtual_bytes);
	render_process_value(out, "process_open_fds", "gauge", "Open descriptors.", stats.open_descriptors);
	render_process_value(out, "process_max_fds", "gauge", "Limit on open descriptors.",
	                     stats.max_descriptors);
	render_process_value(out, "process_start_time_seconds", "gauge",
	                     "Start of the process since the epoch.", stats.start_seconds);
}

char *metrics_render(const struct metrics_gauges *gauges, size_t *length)
{
	char *text = NULL;
	struct metrics_shard *total = calloc(1, sizeof(*total));
	if (total == NULL)
		return NULL;
	FILE *out = open_memstream(&text, length);
	if (out == NULL)
		goto free_total;
	metrics_collect(total);
	render_durations(out, total);
	render_batches(out, total);
	render_requests(out, total);
	render_gauges(out, gauges);
	render_process(out);
	int refused = ferror(out);
	if (fclose(out) != 0 || refused != 0) {
		free(text);
		text = NULL;
	}
free_total:
	free(total);
	return text;
}
