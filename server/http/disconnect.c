#include "http/disconnect.h"

#include <stdlib.h>

struct disconnect {
	uv_poll_t poll;
	disconnect_fn *gone;
	void *owner;
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct disconnect *watch = poll->data;
	(void)events;
	uv_poll_stop(poll); /* a half-closed socket would be reported for ever */
	watch->gone(watch->owner, status < 0);
}

struct disconnect *disconnect_watch(uv_loop_t *loop, int fd, disconnect_fn *gone, void *owner)
{
	struct disconnect *watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	watch->gone = gone;
	watch->owner = owner;
	watch->poll.data = watch;
	if (uv_poll_init(loop, &watch->poll, fd) != 0) {
		free(watch);
		return NULL;
	}
	if (uv_poll_start(&watch->poll, UV_DISCONNECT, on_event) != 0) {
		disconnect_stop(watch);
		return NULL;
	}
	return watch;
}

void disconnect_stop(struct disconnect *watch)
{
	if (!watch)
		return;
	uv_poll_stop(&watch->poll);
	uv_close((uv_handle_t *)&watch->poll, on_closed);
}
