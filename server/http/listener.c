#include "http/listener.h"

#include "http/address.h"
#include "http/exchange.h"
#include "http/unix_socket.h"
#include "observe/clock.h"
#include "observe/log.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors kept for all but connections: standard streams, loop, signals, epoll, files read at a scrape.
 */
#define RESERVED_DESCRIPTORS 24
#define BACKLOG 1024
#define CONNECTION_MEMORY ((size_t)128 * 1024)

struct listener {
	struct http_context *context;
	struct MHD_Daemon *daemon;
	int socket;              /* -1 once closed */
	struct unix_socket file; /* of it, if it has one */
	char address[ADDRESS_TEXT_MAX];
	uv_poll_t poll;
	uv_timer_t timer;
	int open_handles;
	void (*changed)(void *arg);
	void *changed_arg;
};

/* ---- running */

static void expire(struct http_context *context)
{
	struct connections *connections = &context->connections;
	uint64_t now = clock_now();
	for (struct deadline *due; (due = deadlines_take_due(&connections->deadlines, now));) {
		struct connection *connection =
		    (struct connection *)((char *)due - offsetof(struct connection, deadline));
		if (connection->phase == CONNECTION_WAITING)
			exchange_give_up(connection->exchange, PROBLEM_DEADLINE,
			                 "the deadline passed before the answer was ready");
		else
			connection_shut_late(connections, connection);
	}
}

static void on_timer(uv_timer_t *timer);

/* Sets the timer to whichever comes first, microhttpd's timeout or our soonest deadline. */
static void arm(struct listener *listener)
{
	uint64_t wait = UINT64_MAX;
	MHD_UNSIGNED_LONG_LONG timeout = 0;
	if (MHD_get_timeout(listener->daemon, &timeout) == MHD_YES)
		wait = timeout;
	const struct deadline *first = deadlines_first(&listener->context->connections.deadlines);
	if (first) {
		uint64_t now = clock_now();
		uint64_t left = first->at > now ? (first->at - now) / CLOCK_NS_PER_MS + 1 : 0;
		wait = left < wait ? left : wait;
	}
	if (wait == UINT64_MAX)
		uv_timer_stop(&listener->timer);
	else
		uv_timer_start(&listener->timer, on_timer, wait, 0);
}

/* Where connections ended, microhttpd may have room again and listens from its next run on, which nothing
 * else would bring about. */
static void pump(struct listener *listener)
{
	const struct connections *connections = &listener->context->connections;
	expire(listener->context);
	uint64_t ended = connections->ended;
	MHD_run(listener->daemon);
	if (listener->changed)
		listener->changed(listener->changed_arg);
	if (connections->ended == ended)
		arm(listener);
	else
		listener_kick(listener);
}

static void on_timer(uv_timer_t *timer)
{
	pump(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	pump(poll->data);
}

void listener_kick(struct listener *listener)
{
	uv_timer_start(&listener->timer, on_timer, 0, 0);
}

/* ---- microhttpd's callbacks */

static void on_connection(void *arg, struct MHD_Connection *handle, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
	struct http_context *context = arg;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		int fd = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		uint64_t deadline = clock_now() + context->options->header_timeout_ms * CLOCK_NS_PER_MS;
		*slot = connection_open(&context->connections, fd, deadline);
		if (!*slot)
			shutdown(fd, SHUT_RDWR);
	} else if (*slot) {
		connection_close(&context->connections, *slot);
		*slot = NULL;
	}
}

__attribute__((format(printf, 2, 0))) static void on_log(void *arg, const char *format, va_list arguments)
{
	(void)arg;
	char text[512];
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\r\n")] = '\0';
	log_event(LOG_DEBUG, "microhttpd", log_text("message", text));
}

/* As microhttpd does, but an escaped NUL stays as it is: it would end the path early. */
static size_t on_unescape(void *arg, struct MHD_Connection *handle, char *text)
{
	(void)arg;
	(void)handle;
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* ---- start and end */

static bool fail(attn_error *err, const char *text)
{
	err->status = ATTN_FILE;
	snprintf(err->message, sizeof(err->message), "%s", text);
	return false;
}

/* How many connections fit beside the descriptors that the daemon itself needs; 0: none do. */
static size_t connection_limit(const struct options *options)
{
	struct rlimit descriptors;
	if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur == RLIM_INFINITY)
		return options->max_connections;
	if (descriptors.rlim_cur <= RESERVED_DESCRIPTORS)
		return 0;
	size_t most = descriptors.rlim_cur - RESERVED_DESCRIPTORS;
	return most < options->max_connections ? most : options->max_connections;
}

static bool prepare_context(struct http_context *context, attn_error *err)
{
	size_t limit = connection_limit(context->options);
	if (limit == 0)
		return fail(err, "the limit of open descriptors (RLIMIT_NOFILE) leaves none for connections");
	if (limit < context->options->max_connections)
		log_event(LOG_WARNING, "fewer-connections", log_number("limit", limit),
		          log_number("max_connections", context->options->max_connections));
	if (!connections_init(&context->connections, limit))
		return fail(err, "the system refused memory for the connections");
	if (getrandom(&context->id_base, sizeof(context->id_base), 0) != (ssize_t)sizeof(context->id_base))
		return fail(err, "the system refused random bytes");
	return true;
}

static bool open_socket(struct listener *listener, attn_error *err)
{
	struct http_context *context = listener->context;
	const char *listen = context->options->listen;
	listener->socket = context->socket;
	if (listener->socket < 0)
		listener->socket = unix_socket_is(listen)
		                       ? unix_socket_listen(&listener->file, listen, BACKLOG, err->message,
		                                            sizeof(err->message))
		                       : address_listen(listen, BACKLOG, err->message, sizeof(err->message));
	if (listener->socket < 0) {
		err->status = ATTN_FILE;
		return false;
	}
	address_of_socket(listener->socket, listener->address);
	context->local = unix_socket_is(listener->address);
	return true;
}

static bool start_daemon(struct listener *listener, attn_error *err)
{
	struct http_context *context = listener->context;
	if (!open_socket(listener, err))
		return false;
	listener->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, exchange_handle,
	    context, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, listener->socket,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)context->connections.limit, MHD_OPTION_LISTEN_BACKLOG_SIZE,
	    (unsigned)BACKLOG, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
	    MHD_OPTION_NOTIFY_CONNECTION, on_connection, context, MHD_OPTION_NOTIFY_COMPLETED,
	    exchange_completed, context, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
	    MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	return listener->daemon ? true : fail(err, "microhttpd does not start");
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct listener *listener = handle->data;
	if (--listener->open_handles == 0)
		free(listener);
}

static bool start_polling(struct listener *listener, attn_error *err)
{
	uv_loop_t *loop = listener->context->loop;
	int epoll = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	listener->timer.data = listener->poll.data = listener;
	uv_timer_init(loop, &listener->timer);
	listener->open_handles++;
	if (uv_poll_init(loop, &listener->poll, epoll) != 0)
		return fail(err, "libuv cannot watch microhttpd");
	listener->open_handles++;
	if (uv_poll_start(&listener->poll, UV_READABLE, on_poll) != 0)
		return fail(err, "libuv cannot watch microhttpd");
	arm(listener);
	return true;
}

struct listener *listener_new(struct http_context *context, attn_error *err)
{
	if (!prepare_context(context, err))
		goto fail;
	struct listener *listener = calloc(1, sizeof(*listener));
	if (!listener) {
		fail(err, "the system refused memory for the listener");
		goto fail;
	}
	listener->context = context;
	if (start_daemon(listener, err) && start_polling(listener, err)) {
		context->listener = listener;
		return listener;
	}
	listener_free(listener);
	return NULL;
fail:
	connections_clear(&context->connections);
	return NULL;
}

const char *listener_address(const struct listener *listener)
{
	return listener->address;
}

void listener_on_change(struct listener *listener, void (*changed)(void *arg), void *arg)
{
	listener->changed = changed;
	listener->changed_arg = arg;
}

void listener_quiesce(struct listener *listener)
{
	MHD_quiesce_daemon(listener->daemon);
	unix_socket_remove(&listener->file);
	close(listener->socket);
	listener->socket = -1;
}

void listener_free(struct listener *listener)
{
	exchange_give_up_all(listener->context);
	if (listener->open_handles > 1) {
		uv_poll_stop(&listener->poll);
		uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
	}
	if (listener->open_handles > 0)
		uv_close((uv_handle_t *)&listener->timer, on_handle_closed);
	if (listener->daemon)
		MHD_stop_daemon(listener->daemon);
	unix_socket_remove(&listener->file);
	if (listener->socket >= 0 && !listener->daemon)
		close(listener->socket);
	connections_clear(&listener->context->connections);
	if (listener->open_handles == 0)
		free(listener);
}
