#include "server.h"

#include "attn.h"
#include "http/context.h"
#include "http/drain.h"
#include "http/exchange.h"
#include "http/listener.h"
#include "notify.h"
#include "observe/clock.h"
#include "observe/latency.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "options.h"
#include "pipeline/budget.h"
#include "pipeline/pipeline.h"
#include "pipeline/registry.h"
#include "pipeline/reload.h"
#include "pipeline/watchdog.h"
#include "served.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define SIGNALS 3
#define STATUS_MAX 600
#define SELF_CHECK_SEED 20170612 /* any will do */

struct server {
	const struct options *options;
	int argc; /* what they were read from */
	char **argv;
	uv_loop_t loop;
	uv_signal_t signals[SIGNALS]; /* SIGTERM, SIGINT, SIGHUP */
	attn_kernels *kernels;
	int socket; /* passed by the service manager; -1: none was */
	struct budget budget;
	struct served *served;
	struct latency *latency;
	struct pipeline *pipeline;
	struct http_context http;
	struct reload *reload;
	struct watchdog *watchdog; /* NULL when the service manager wants none */
	struct drain *drain;       /* once a signal came */
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
	reload_stop(server->reload);
	watchdog_free(server->watchdog);
	server->watchdog = NULL;
	if (server->pipeline)
		pipeline_stop(server->pipeline, on_pipeline_closed, server);
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&server->signals[i], NULL);
}

static void on_drained(void *arg, size_t cut)
{
	struct server *server = arg;
	log_event(LOG_INFO, "drained", log_number("cut", cut));
	stop(server);
}

static void end(struct server *server, int number)
{
	if (server->drain) {
		log_event(LOG_INFO, "hurrying", log_number("admitted", server->http.admitted));
		drain_hurry(server->drain);
		return;
	}
	log_event(LOG_INFO, "draining", log_text("signal", number == SIGTERM ? "TERM" : "INT"),
	          log_number("admitted", server->http.admitted));
	notify_stopping();
	reload_stop(server->reload);
	server->drain = drain_begin(&server->http, on_drained, server);
	if (!server->drain)
		stop(server);
}

/* ---- reload */

static void tell_ready(const struct server *server)
{
	char status[STATUS_MAX];
	snprintf(status, sizeof(status), "serving at %s, %zu models", listener_address(server->http.listener),
	         registry_count(server->served->registry));
	notify_ready(status);
}

static void reload_begun(void *arg)
{
	(void)arg;
	log_event(LOG_INFO, "reloading");
	notify_reloading();
}

static void *reload_load(void *arg, attn_error *err)
{
	const struct server *server = arg;
	return served_load_again(server->argc, server->argv, environ, server->kernels, err);
}

/* Makes what was loaded the one that is served. Jobs and requests keep the instances they hold. */
static void *reload_swap(void *arg, void *loaded)
{
	struct server *server = arg;
	struct served *old = server->served;
	server->served = loaded;
	server->http.registry = server->served->registry;
	server->http.tokens = server->served->tokens;
	log_setup(server->served->log_level, server->served->log_format);
	log_event(LOG_INFO, "reloaded", log_number("models", registry_count(server->served->registry)));
	tell_ready(server);
	return old;
}

static void reload_failed(void *arg, const attn_error *err)
{
	(void)arg;
	char status[STATUS_MAX];
	log_event(LOG_ERROR, "reload-failed", log_text("reason", err->message));
	snprintf(status, sizeof(status), "serving what was loaded before; the reload failed: %s",
	         err->message);
	notify_ready(status);
}

static void reload_discard(void *state)
{
	served_free(state);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;
	if (number == SIGHUP)
		reload_request(server->reload);
	else
		end(server, number);
}

/* ---- start */

static void start_signals(struct server *server)
{
	static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < SIGNALS; i++) {
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
	    .registry = server->served->registry,
	    .tokens = server->served->tokens,
	    .pipeline = server->pipeline,
	    .latency = server->latency,
	    .socket = server->socket,
	    .facts = {.version = ATTND_VERSION,
	              .kernels = attn_kernels_name(server->kernels),
	              .blas_core = attn_blas_core(),
	              .blas_config = attn_blas_config()},
	};
	return listener_new(&server->http, err) != NULL;
}

/* What goes on beside serving: reloads, and the watchdog if the service manager has one. */
static bool start_upkeep(struct server *server, attn_error *err)
{
	const struct reload_steps steps = {.context = server,
	                                   .begun = reload_begun,
	                                   .load = reload_load,
	                                   .swap = reload_swap,
	                                   .failed = reload_failed,
	                                   .discard = reload_discard};
	uint64_t period_ms = notify_watchdog_ms();
	server->reload = reload_new(&server->loop, &steps);
	if (server->reload && period_ms > 0)
		server->watchdog = watchdog_new(&server->loop, server->pipeline, period_ms, notify_alive);
	if (!server->reload || (period_ms > 0 && !server->watchdog))
		return refuse(err, ATTN_MEMORY, "the system refused memory for reloads");
	return true;
}

static void tell_failures(const struct registry *registry)
{
	for (size_t i = 0; i < registry_failures(registry); i++)
		log_event(LOG_ERROR, "model-failed",
		          log_text("reason", registry_failure(registry, i)->message));
}

static bool start(struct server *server, attn_error *err)
{
	const struct options *options = server->options;
	server->socket = notify_take_socket(err->message, sizeof(err->message));
	if (server->socket < -1)
		return false;
	budget_init(&server->budget, options->max_inflight);
	if (!metrics_thread_start())
		return refuse(err, ATTN_MEMORY, "there is no room for the counters of the loop");
	server->latency = latency_new();
	if (!server->latency)
		return refuse(err, ATTN_MEMORY, "the system refused memory for the latency table");
	if (!start_kernels(server, err))
		return false;
	server->served = served_load(options, server->kernels, err);
	if (!server->served || !start_pipeline(server, err) || !start_http(server, err) ||
	    !start_upkeep(server, err))
		return false;
	tell_failures(server->served->registry);
	log_event(LOG_INFO, "ready", log_text("listen", listener_address(server->http.listener)),
	          log_number("workers", options->workers),
	          log_text("kernels", attn_kernels_name(server->kernels)),
	          log_text("blas_core", attn_blas_core()),
	          log_number("models", registry_count(server->served->registry)));
	tell_ready(server);
	return true;
}

int server_run(const struct options *options, int argc, char **argv)
{
	struct server server = {.options = options, .argc = argc, .argv = argv};
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
	reload_free(server.reload);
	served_free(server.served);
	attn_kernels_free(server.kernels);
	latency_free(server.latency);
	metrics_thread_stop();
	log_event(LOG_INFO, "stopped");
	return started ? 0 : 1;
}
