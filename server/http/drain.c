#include "http/drain.h"

#include "http/exchange.h"
#include "http/listener.h"
#include "observe/clock.h"

#include <stdlib.h>

#define SETTLE_MS 100 /* for clients that were connecting when the last answer went out */
#define LINGER_MS 500 /* for replies to be read once the drain deadline has passed */

enum drain_phase {
	DRAIN_ADMITTED, /* until what was let in is answered, or the deadline */
	DRAIN_SETTLES,
	DRAIN_CLOSES, /* no listening socket; until no connection is left, or the deadline */
	DRAIN_DONE,
};

struct drain {
	struct http_context *context;
	uv_timer_t timer;
	enum drain_phase phase;
	uint64_t deadline;
	size_t cut;
	void (*done)(void *arg, size_t cut);
	void *arg;
};

static void on_timer(uv_timer_t *timer);

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void finish(struct drain *drain)
{
	drain->phase = DRAIN_DONE;
	listener_on_change(drain->context->listener, NULL, NULL);
	uv_timer_start(&drain->timer, on_timer, 0, 0);
}

/* Milliseconds to the drain deadline, at least LINGER_MS. */
static uint64_t time_left_ms(const struct drain *drain)
{
	uint64_t now = clock_now();
	uint64_t left = drain->deadline > now ? (drain->deadline - now) / CLOCK_NS_PER_MS : 0;
	return left > LINGER_MS ? left : LINGER_MS;
}

static void close_down(struct drain *drain)
{
	drain->phase = DRAIN_CLOSES;
	listener_quiesce(drain->context->listener);
	uv_timer_start(&drain->timer, on_timer, time_left_ms(drain), 0);
	listener_kick(drain->context->listener);
}

/* After each run of the listener: moves on when there is nothing left to wait for. */
static void on_change(void *arg)
{
	struct drain *drain = arg;
	struct http_context *context = drain->context;
	if (drain->phase == DRAIN_ADMITTED && context->admitted == 0) {
		drain->phase = DRAIN_SETTLES;
		uv_timer_start(&drain->timer, on_timer, SETTLE_MS, 0);
	}
	if (drain->phase == DRAIN_CLOSES) {
		connections_shut_idle(&context->connections);
		if (context->connections.count == 0)
			finish(drain);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct drain *drain = timer->data;
	switch (drain->phase) {
	case DRAIN_ADMITTED:
		drain->cut += exchange_give_up_all(drain->context);
		close_down(drain);
		break;
	case DRAIN_SETTLES:
		close_down(drain);
		break;
	case DRAIN_CLOSES:
		drain->cut += drain->context->admitted;
		connections_shut_all(&drain->context->connections);
		finish(drain);
		break;
	case DRAIN_DONE:
		drain->done(drain->arg, drain->cut);
		uv_close((uv_handle_t *)timer, on_closed);
		break;
	}
}

struct drain *drain_begin(struct http_context *context, void (*done)(void *arg, size_t cut), void *arg)
{
	struct drain *drain = calloc(1, sizeof(*drain));
	if (!drain)
		return NULL;
	drain->context = context;
	drain->done = done;
	drain->arg = arg;
	drain->deadline = clock_now() + context->options->drain_timeout_ms * CLOCK_NS_PER_MS;
	drain->timer.data = drain;
	uv_timer_init(context->loop, &drain->timer);
	uv_timer_start(&drain->timer, on_timer, context->options->drain_timeout_ms, 0);
	context->draining = true;
	listener_on_change(context->listener, on_change, drain);
	listener_kick(context->listener);
	return drain;
}

void drain_hurry(struct drain *drain)
{
	if (drain->phase == DRAIN_DONE)
		return;
	drain->deadline = 0;
	uv_timer_start(&drain->timer, on_timer, 0, 0);
}
