#include "pipeline/estimate.h"

#define ESTIMATE_KEEP 0.9 /* of the past at each call */

void estimate_record(struct estimate *estimate, double seconds, double work, size_t jobs)
{
	estimate->seconds = ESTIMATE_KEEP * estimate->seconds + seconds;
	estimate->work = ESTIMATE_KEEP * estimate->work + work;
	estimate->jobs = ESTIMATE_KEEP * estimate->jobs + (double)jobs;
}

double estimate_seconds(const struct estimate *estimate, double work, size_t unread)
{
	double seconds = 0;
	if (estimate->work > 0)
		seconds += estimate->seconds / estimate->work * work;
	if (estimate->jobs > 0)
		seconds += estimate->seconds / estimate->jobs * (double)unread;
	return seconds;
}
