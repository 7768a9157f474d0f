#include "pipeline/reload.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct reload {
	uv_loop_t *loop;
	struct reload_steps steps;
	uv_work_t work; /* one at a time: a load, then the freeing of what it replaces */
	bool busy, again, stopped;
	/* of the running work */
	void *state;
	attn_error err;
};

struct reload *reload_new(uv_loop_t *loop, const struct reload_steps *steps)
{
	struct reload *reload = calloc(1, sizeof(*reload));
	if (reload == NULL)
		return NULL;
	reload->loop = loop;
	reload->steps = *steps;
	reload->work.data = reload;
	return reload;
}

static void reload_begin(struct reload *reload);

static void reload_end(struct reload *reload)
{
	reload->busy = false;
	if (reload->again && !reload->stopped)
		reload_begin(reload);
}

/* ---- what is replaced goes */

static void discard(uv_work_t *work)
{
	struct reload *reload = work->data;
	reload->steps.discard(reload->state);
}

static void discarded(uv_work_t *work, int status)
{
	(void)status; /* work is never taken back */
	reload_end(work->data);
}

/* ---- the new comes */

static void load(uv_work_t *work)
{
	struct reload *reload = work->data;
	reload->state = reload->steps.load(reload->steps.context, &reload->err);
}

static void loaded(uv_work_t *work, int status)
{
	(void)status;
	struct reload *reload = work->data;
	const struct reload_steps *steps = &reload->steps;
	if (reload->state == NULL) {
		if (!reload->stopped)
			steps->failed(steps->context, &reload->err);
		reload_end(reload);
		return;
	}
	if (!reload->stopped)
		reload->state = steps->swap(steps->context, reload->state);
	uv_queue_work(reload->loop, &reload->work, discard, discarded);
}

static void reload_begin(struct reload *reload)
{
	reload->busy = true;
	reload->again = false;
	reload->err = (attn_error){0};
	reload->steps.begun(reload->steps.context);
	uv_queue_work(reload->loop, &reload->work, load, loaded);
}

void reload_request(struct reload *reload)
{
	if (reload->stopped)
		return;
	if (reload->busy)
		reload->again = true;
	else
		reload_begin(reload);
}

void reload_stop(struct reload *reload)
{
	if (reload != NULL)
		reload->stopped = true;
}

void reload_free(struct reload *reload)
{
	assert(reload == NULL || !reload->busy);
	free(reload);
}
