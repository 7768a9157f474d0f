#include "pipeline/choose.h"

static uint64_t choose_age(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

static uint64_t choose_hold_end(uint64_t since, uint64_t wait)
{
	return wait < CHOOSE_NEVER - since ? since + wait : CHOOSE_NEVER;
}

enum choice choose_task(const struct choose_view *view, const struct choose_rules *rules, uint64_t now,
                        uint64_t *again)
{
	uint64_t batch_age = choose_age(view->batch_since, now);
	bool open = view->batch && batch_age >= rules->batch_wait;

	*again = CHOOSE_NEVER;
	if (view->format)
		return CHOOSE_FORMAT;
	if (open && batch_age > rules->batch_max_age)
		return CHOOSE_BATCH;
	if (view->full)
		return CHOOSE_FULL_BATCH;
	if (view->parse && (!open || view->parse_since <= view->batch_since))
		return CHOOSE_PARSE;
	if (open)
		return CHOOSE_BATCH;
	if (view->batch)
		*again = choose_hold_end(view->batch_since, rules->batch_wait);
	return view->tile ? CHOOSE_TILE : CHOOSE_NOTHING;
}
