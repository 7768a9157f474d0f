#include "pipeline/watchdog.h"

#include "observe/log.h"

#include <stdlib.h>
#include <string.h>

struct watchdog {
	const struct pipeline *pipeline;
	void (*alive)(void);
	uv_timer_t timer;
	size_t workers;
	uint64_t *now;       /* [workers], behind previous */
	uint64_t previous[]; /* [workers] */
};

bool watchdog_alive(const uint64_t *previous, const uint64_t *now, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (now[i] % 2 == 1 && now[i] == previous[i])
			return false;
	return true;
}

static void on_timer(uv_timer_t *timer)
{
	struct watchdog *watchdog = timer->data;
	pipeline_beats(watchdog->pipeline, watchdog->now);
	if (watchdog_alive(watchdog->previous, watchdog->now, watchdog->workers))
		watchdog->alive();
	else
		log_event(LOG_ERROR, "worker-stuck",
		          log_text("reason", "a task went on for a whole watchdog period"));
	memcpy(watchdog->previous, watchdog->now, watchdog->workers * sizeof(uint64_t));
}

struct watchdog *watchdog_new(uv_loop_t *loop, const struct pipeline *pipeline, uint64_t period_ms,
                              void (*alive)(void))
{
	size_t workers = pipeline_workers(pipeline);
	struct watchdog *watchdog = calloc(1, sizeof(*watchdog) + 2 * workers * sizeof(uint64_t));
	if (watchdog == NULL)
		return NULL;
	watchdog->pipeline = pipeline;
	watchdog->alive = alive;
	watchdog->workers = workers;
	watchdog->now = watchdog->previous + workers;
	watchdog->timer.data = watchdog;
	uv_timer_init(loop, &watchdog->timer);
	uv_timer_start(&watchdog->timer, on_timer, period_ms, period_ms);
	return watchdog;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void watchdog_free(struct watchdog *watchdog)
{
	if (watchdog != NULL)
		uv_close((uv_handle_t *)&watchdog->timer, on_closed);
}
