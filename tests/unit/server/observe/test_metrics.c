/* The exposition text by its rules, exact counts from many threads, the bound on series. */
#include "observe/metrics.h"
#include "observe/metrics_shard.h"
#include "suite.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char *render(void)
{
	const struct metrics_gauges gauges = {.queue_depth = 3,
	                                      .inflight_bytes = 4096,
	                                      .workers_busy = 1,
	                                      .workers = 2,
	                                      .connections = 5,
	                                      .version = "1.2",
	                                      .kernels = "blas",
	                                      .blas_core = "Za\"b\\c\nd",
	                                      .blas_config = "serial"};
	size_t length = 0;
	char *text = metrics_render(&gauges, &length);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(length, strlen(text));
	ck_assert_int_eq(text[length - 1], '\n');
	return text;
}

/* The value of the series written exactly so, or -1. */
static double value_of(const char *text, const char *series)
{
	size_t length = strlen(series);
	for (const char *line = text; line != NULL && *line != '\0';
	     line = strchr(line, '\n'), line += line != NULL) {
		if (strncmp(line, series, length) == 0 && line[length] == ' ')
			return strtod(line + length, NULL);
	}
	return -1;
}

static size_t count_series(const char *text)
{
	size_t count = 0;
	for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
		count += *line != '#';
	return count;
}

static void count_some(void)
{
	metrics_reset();
	ck_assert(metrics_thread_start());
	metrics_request_done(METRICS_ATTENTION, 200);
	metrics_request_done(METRICS_ATTENTION, 200);
	metrics_request_done(METRICS_MODEL_ATTENTION, 429);
	metrics_request_done(METRICS_MODEL_ATTENTION, 0);
	metrics_request_seconds(METRICS_ATTENTION, 5, 0.003);
	metrics_request_seconds(METRICS_ATTENTION, 8, 0.1);
	metrics_request_seconds(METRICS_ATTENTION, 8, 100);
	metrics_stage_seconds(STAGE_COMPUTE, 70000, 0.25);
	metrics_batch(32, 512);
	metrics_batch(1, 16);
	metrics_connection_closed_late(METRICS_PART_BODY);
	metrics_thread_stop();
}

START_TEST(what_was_counted_is_told)
{
	count_some();
	char *text = render();
	ck_assert_double_eq(value_of(text, "attnd_requests_total{operation=\"attention\",code=\"200\"}"), 2);
	ck_assert_double_eq(
	    value_of(text, "attnd_requests_total{operation=\"model_attention\",code=\"429\"}"), 1);
	ck_assert_double_eq(
	    value_of(text, "attnd_requests_total{operation=\"model_attention\",code=\"other\"}"), 1);
#define REQUESTS(suffix, label)                                                                              \
	"attnd_request_duration_seconds_" suffix "{operation=\"attention\",sequence_length=\"8\"" label "}"
	ck_assert_double_eq(value_of(text, REQUESTS("count", "")), 3);
	ck_assert_double_eq_tol(value_of(text, REQUESTS("sum", "")), 100.103, 1e-9);
	ck_assert_double_eq(value_of(text, REQUESTS("bucket", ",le=\"0.0025\"")), 0);
	ck_assert_double_eq(value_of(text, REQUESTS("bucket", ",le=\"0.005\"")), 1);
	ck_assert_double_eq(value_of(text, REQUESTS("bucket", ",le=\"0.1\"")), 2);
	ck_assert_double_eq(value_of(text, REQUESTS("bucket", ",le=\"10\"")), 2);
	ck_assert_double_eq(value_of(text, REQUESTS("bucket", ",le=\"+Inf\"")), 3);
	ck_assert_double_eq(
	    value_of(text, "attnd_stage_duration_seconds_count{stage=\"compute\",sequence_length=\"65536\"}"),
	    1);
	ck_assert_double_eq(value_of(text, "attnd_batch_sequences_sum"), 33);
	ck_assert_double_eq(value_of(text, "attnd_batch_sequences_count"), 2);
	ck_assert_double_eq(value_of(text, "attnd_batch_tokens_bucket{le=\"16\"}"), 1);
	ck_assert_double_eq(value_of(text, "attnd_deadline_closes_total{part=\"body\"}"), 1);
	ck_assert_double_eq(value_of(text, "attnd_deadline_closes_total{part=\"header\"}"), 0);
	ck_assert_double_eq(value_of(text, "attnd_queue_depth"), 3);
	ck_assert_double_eq(value_of(text, "attnd_inflight_bytes"), 4096);
	ck_assert_double_eq(value_of(text, "attnd_workers_busy"), 1);
	ck_assert_double_eq(value_of(text, "attnd_workers"), 2);
	ck_assert_double_eq(value_of(text, "attnd_connections"), 5);
	free(text);
}
END_TEST

START_TEST(the_process_metrics_are_plausible)
{
	char *text = render();
	ck_assert_double_ge(value_of(text, "process_cpu_seconds_total"), 0);
	ck_assert_double_gt(value_of(text, "process_resident_memory_bytes"), 100000);
	ck_assert_double_gt(value_of(text, "process_virtual_memory_bytes"), 100000);
	ck_assert_double_ge(value_of(text, "process_open_fds"), 3);
	ck_assert_double_ge(value_of(text, "process_max_fds"), value_of(text, "process_open_fds"));
	ck_assert_double_gt(value_of(text, "process_start_time_seconds"), 1.5e9);
	free(text);
}
END_TEST

START_TEST(labels_are_escaped)
{
	char *text = render();
	ck_assert_double_eq(value_of(text, "attnd_build_info{version=\"1.2\",kernels=\"blas\","
	                                   "blas_core=\"Za\\\"b\\\\c\\nd\",blas_config=\"serial\"}"),
	                    1);
	free(text);
}
END_TEST

/* The family a line belongs to: its name without a histogram's suffix. */
static void family_of(const char *line, char *family, size_t size)
{
	size_t length = strcspn(line, "{ ");
	snprintf(family, size, "%.*s", (int)length, line);
	static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
	for (size_t i = 0; i < 3; i++) {
		size_t tail = strlen(suffixes[i]);
		if (length > tail && strcmp(family + length - tail, suffixes[i]) == 0)
			family[length - tail] = '\0';
	}
}

START_TEST(each_family_has_one_help_and_one_type_before_its_series)
{
	count_some();
	char *text = render(), *rest = NULL, seen[64][96], help[96] = "", type[96] = "";
	size_t families = 0;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		char name[96] = "";
		if (sscanf(line, "# HELP %95s ", name) == 1) {
			for (size_t i = 0; i < families; i++)
				ck_assert_str_ne(seen[i], name);
			ck_assert_uint_lt(families, 64);
			memcpy(seen[families++], name, sizeof(name));
			memcpy(help, name, sizeof(name));
		} else if (sscanf(line, "# TYPE %95s ", name) == 1) {
			ck_assert_str_eq(name, help);
			ck_assert_str_ne(name, type);
			memcpy(type, name, sizeof(name));
		} else {
			family_of(line, name, sizeof(name));
			ck_assert_str_eq(name, type);
		}
	}
	ck_assert_uint_gt(families, 15);
	free(text);
}
END_TEST

START_TEST(buckets_are_cumulative_and_the_last_is_the_count)
{
	count_some();
	char *text = render(), *rest = NULL;
	double before_le = -1, before = 0;
	size_t histograms = 0;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		const char *le = strstr(line, "le=\""), *value = strrchr(line, ' ');
		if (*line == '#')
			continue;
		if (strstr(line, "_bucket{") != NULL) {
			ck_assert_double_gt(strtod(le + 4, NULL), before_le);
			ck_assert_double_ge(strtod(value, NULL), before);
			before_le = strtod(le + 4, NULL);
			before = strtod(value, NULL);
		} else if (strstr(line, "_count") != NULL) {
			ck_assert_double_eq(strtod(value, NULL), before);
			ck_assert(before_le > 1e300);
			before_le = -1;
			before = 0;
			histograms++;
		}
	}
	ck_assert_uint_eq(histograms, 4);
	free(text);
}
END_TEST

START_TEST(random_statuses_and_lengths_add_no_series_beyond_the_bound)
{
	metrics_reset();
	char *text = render();
	size_t fixed = count_series(text);
	free(text);
	ck_assert(metrics_thread_start());
	uint64_t state = 11;
	for (int i = 0; i < 10000; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		enum metrics_operation operation =
		    (enum metrics_operation)((state >> 60) % METRICS_OPERATIONS);
		size_t length = (size_t)(state >> 20) >> (state >> 58);
		metrics_request_done(operation, (int)(state >> 33));
		metrics_request_seconds(operation, length, (double)(state >> 40) * 1e-6);
		metrics_stage_seconds((enum metrics_stage)((state >> 50) % STAGES), length, 0.1);
		metrics_batch(length, length);
	}
	metrics_thread_stop();
	text = render();
	size_t a_histogram = METRICS_MAX_BUCKETS + 2;
	size_t bound = fixed + METRICS_OPERATIONS * METRICS_STATUSES +
	               ((METRICS_OPERATIONS + STAGES) * METRICS_LENGTHS + 2) * a_histogram;
	ck_assert_uint_le(count_series(text), bound);
	ck_assert_uint_lt(count_series(text), 3000);
	free(text);
	metrics_reset();
}
END_TEST

START_TEST(a_length_falls_into_the_power_of_two_above_it)
{
	const struct {
		size_t length;
		uint32_t bucket;
	} cases[] = {{0, 1},         {1, 1},         {2, 2},           {3, 4},       {5, 8},
	             {8, 8},         {9, 16},        {4096, 4096},     {4097, 8192}, {65535, 65536},
	             {65536, 65536}, {65537, 65536}, {SIZE_MAX, 65536}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(metrics_length_bucket(cases[i].length), cases[i].bucket);
}
END_TEST

#define THREADS 8
#define EVENTS 20000

static void *count_events(void *unused)
{
	(void)unused;
	if (!metrics_thread_start())
		return NULL;
	for (int i = 0; i < EVENTS; i++) {
		metrics_request_done(METRICS_ATTENTION, 200);
		metrics_request_seconds(METRICS_ATTENTION, 16, 0.5);
		metrics_batch(2, 32);
	}
	metrics_thread_stop();
	return NULL;
}

START_TEST(counts_of_many_threads_add_up_exactly_while_they_are_read)
{
	metrics_reset();
	pthread_t threads[THREADS];
	for (int round = 1; round <= 2; round++) { /* the second takes over the shards of the first */
		for (size_t i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, count_events, NULL), 0);
		for (int i = 0; i < 20; i++)
			free(render());
		for (size_t i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		double events = (double)(round * THREADS * EVENTS);
		char *text = render();
		ck_assert_double_eq(
		    value_of(text, "attnd_requests_total{operation=\"attention\",code=\"200\"}"), events);
		ck_assert_double_eq(value_of(text,
		                             "attnd_request_duration_seconds_sum{operation=\"attention\","
		                             "sequence_length=\"16\"}"),
		                    0.5 * events);
		ck_assert_double_eq(value_of(text, "attnd_batch_sequences_sum"), 2 * events);
		free(text);
	}
	metrics_reset();
}
END_TEST

struct crowd {
	pthread_barrier_t all_asked;
	_Atomic int started;
};

static void *ask_for_a_shard(void *arg)
{
	struct crowd *crowd = arg;
	if (metrics_thread_start())
		crowd->started++;
	pthread_barrier_wait(&crowd->all_asked);
	metrics_request_done(METRICS_ATTENTION, 200);
	metrics_thread_stop();
	return NULL;
}

START_TEST(a_thread_too_many_counts_nothing_and_does_no_harm)
{
	enum { CROWD = METRICS_MAX_THREADS + 3 };
	static pthread_t threads[CROWD];
	struct crowd crowd = {.started = 0};
	metrics_reset();
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 * 1024);
	pthread_barrier_init(&crowd.all_asked, NULL, CROWD);
	for (size_t i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&threads[i], &small, ask_for_a_shard, &crowd), 0);
	for (size_t i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&crowd.all_asked);
	pthread_attr_destroy(&small);
	ck_assert_int_eq(crowd.started, METRICS_MAX_THREADS);
	char *text = render();
	ck_assert_double_eq(value_of(text, "attnd_requests_total{operation=\"attention\",code=\"200\"}"),
	                    METRICS_MAX_THREADS);
	free(text);
	metrics_reset();
}
END_TEST

START_TEST(promtool_finds_nothing_to_say)
{
	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		suite_skip("promtool (Debian package prometheus) is not installed");
		return;
	}
	count_some();
	char *text = render();
	char said[4096] = "";
	char path[] = "/tmp/attnd-metrics-XXXXXX", command[256];
	int descriptor = mkstemp(path);
	ck_assert_int_ge(descriptor, 0);
	FILE *file = fdopen(descriptor, "w");
	fputs(text, file);
	fclose(file);
	snprintf(command, sizeof(command), "promtool check metrics <%s 2>&1; echo \"status $?\"", path);
	FILE *promtool = popen(command, "r");
	ck_assert_ptr_nonnull(promtool);
	size_t length = fread(said, 1, sizeof(said) - 1, promtool);
	said[length] = '\0';
	pclose(promtool);
	remove(path);
	free(text);
	ck_assert_str_eq(said, "status 0\n");
}
END_TEST

SUITE_MAIN("metrics", what_was_counted_is_told, the_process_metrics_are_plausible, labels_are_escaped,
           each_family_has_one_help_and_one_type_before_its_series,
           buckets_are_cumulative_and_the_last_is_the_count,
           random_statuses_and_lengths_add_no_series_beyond_the_bound,
           a_length_falls_into_the_power_of_two_above_it,
           counts_of_many_threads_add_up_exactly_while_they_are_read,
           a_thread_too_many_counts_nothing_and_does_no_harm, promtool_finds_nothing_to_say)
