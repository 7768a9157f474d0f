#include "server.h"

#include "attn.h"
#include "http/context.h"
#include "http/drain.h"
#include "http/exchange.h"
#include "http/listener.h"
#include "http/tokens.h"
#include "notify.h"
#include "observe/clock.h"
#include "observe/latency.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "options.h"
#include "pipeline/budget.h"
#include "pipeline/pipeline.h"
#include "pipeline/registry.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#define SELF_CHECK_SEED 20170612 /* any will do */

struct server {
	const struct options *options;
	uv_loop_t loop;
	uv_signal_t signals[2]; /* SIGTERM, SIGINT */
	attn_kernels *kernels;
	struct budget budget;
	struct registry *registry;
	struct latency *latency;
	struct pipeline *pipeline;
	struct http_context http;
	struct drain *drain; /* once a signal came */
};

/* ---- end */

static void on_pipeline_closed(void *arg)
{
	struct server *server = arg;
	server->pipeline = NULL;
}

/* Ends everything that has a handle; the loop runs out when they have closed. */
static void stop(struct server *server)
{
	if (server->http.listener)
		listener_free(server->http.listener);
	server->http.listener = NULL;
	if (server->pipeline)
		pipeline_stop(server->pipeline, on_pipeline_closed, server);
	for (size_t i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&server->signals[i], NULL);
}

static void on_drained(void *arg, size_t cut)
{
	struct server *server = arg;
	log_event(LOG_INFO, "drained", log_number("cut", cut));
	stop(server);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;
	if (server->drain) {
		log_event(LOG_INFO, "hurrying", log_number("admitted", server->http.admitted));
		drain_hurry(server->drain);
		return;
	}
	log_event(LOG_INFO, "draining", log_text("signal", number == SIGTERM ? "TERM" : "INT"),
	          log_number("admitted", server->http.admitted));
	notify_stopping();
	server->drain = drain_begin(&server->http, on_drained, server);
	if (!server->drain)
		stop(server);
}

/* ---- start */

static void start_signals(struct server *server)
{
	static const int numbers[2] = {SIGTERM, SIGINT};
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < 2; i++) {
		uv_signal_init(&server->loop, &server->signals[i]);
		server->signals[i].data = server;
		uv_signal_start(&server->signals[i], on_signal, numbers[i]);
	}
}

static bool refuse(attn_error *err, attn_status status, const char *what)
{
	err->status = status;
	snprintf(err->message, sizeof(err->message), "%s", what);
	return false;
}

static bool start_kernels(struct server *server, attn_error *err)
{
	const char *name = server->options->kernels;
	if (strcmp(name, "auto") == 0)
		name = attn_kernels_list(0);
	attn_status status = attn_kernels_new(name, &server->kernels);
	if (status != ATTN_OK)
		return refuse(err, status, attn_status_text(status));
	return attn_kernels_self_check(server->kernels, SELF_CHECK_SEED, err) == ATTN_OK;
}

static bool start_pipeline(struct server *server, attn_error *err)
{
	const struct options *options = server->options;
	const struct pipeline_config config = {
	    .workers = options->workers,
	    .queue_limit = options->queue_limit,
	    .max_batch = options->max_batch,
	    .max_batch_tokens = options->max_batch_tokens,
	    .max_batch_scores = options->max_batch_scores,
	    .max_body = options->max_body,
	    .batch_wait_ns = options->batch_wait_ms * CLOCK_NS_PER_MS,
	    .batch_max_age_ns = options->batch_max_age_ms * CLOCK_NS_PER_MS,
	    .limits = {.sequence_length = options->max_sequence_length,
	               .elements = options->max_elements,
	               .reply_bytes = options->max_reply,
	               .timeout_ms = options->request_timeout_ms},
	    .kernels = server->kernels,
	    .budget = &server->budget,
	};
	const struct pipeline_events events = {
	    .context = &server->http, .returned = exchange_job_returned, .deadline = exchange_job_deadline};
	server->pipeline = pipeline_new(&server->loop, &config, &events, err);
	return server->pipeline != NULL;
}

static bool start_http(struct server *server, attn_error *err)
{
	server->http = (struct http_context){
	    .loop = &server->loop,
	    .options = server->options,
	    .budget = &server->budget,
	    .registry = server->registry,
	    .pipeline = server->pipeline,
	    .latency = server->latency,
	    .facts = {.version = ATTND_VERSION,
	              .kernels = attn_kernels_name(server->kernels),
	              .blas_core = attn_blas_core(),
	              .blas_config = attn_blas_config()},
	};
	const char *tokens = server->options->tokens_file;
	if (tokens && !(server->http.tokens = tokens_load(tokens, err)))
		return false;
	return listener_new(&server->http, err) != NULL;
}

static bool start(struct server *server, attn_error *err)
{
	const struct options *options = server->options;
	budget_init(&server->budget, options->max_inflight);
	if (!metrics_thread_start())
		return refuse(err, ATTN_MEMORY, "there is no room for the counters of the loop");
	server->latency = latency_new();
	if (!server->latency)
		return refuse(err, ATTN_MEMORY, "the system refused memory for the latency table");
	if (!start_kernels(server, err) ||
	    registry_load(options->models, &server->registry, err) != ATTN_OK ||
	    !start_pipeline(server, err) || !start_http(server, err))
		return false;
	log_event(
	    LOG_INFO, "ready", log_text("listen", listener_address(server->http.listener)),
	    log_number("workers", options->workers), log_text("kernels", attn_kernels_name(server->kernels)),
	    log_text("blas_core", attn_blas_core()), log_number("models", registry_count(server->registry)));
	notify_ready();
	return true;
}

int server_run(const struct options *options)
{
	struct server server = {.options = options};
	attn_error err = {0};
	if (uv_loop_init(&server.loop) != 0) {
		log_event(LOG_ERROR, "not-started", log_text("reason", "the loop cannot be made"));
		return 1;
	}
	start_signals(&server);
	bool started = start(&server, &err);
	if (!started) {
		log_event(LOG_ERROR, "not-started", log_text("reason", err.message));
		stop(&server);
	}
	uv_run(&server.loop, UV_RUN_DEFAULT);
	int open = uv_loop_close(&server.loop);
	assert(open == 0);
	(void)open;
	assert(budget_used(&server.budget) == 0);
	tokens_free(server.http.tokens);
	registry_free(server.registry);
	attn_kernels_free(server.kernels);
	latency_free(server.latency);
	metrics_thread_stop();
	log_event(LOG_INFO, "stopped");
	return started ? 0 : 1;
}
