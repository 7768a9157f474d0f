#include "http/observed.h"

#include "observe/clock.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "pipeline/operation.h"

void observed_answer(const struct observed *observed)
{
	if (observed->operation)
		metrics_request_done(observed->operation->metric, observed->status);
	bool failed = observed->status >= 500 && observed->problem->code != PROBLEM_DRAINING;
	log_event(failed ? LOG_WARNING : LOG_DEBUG, "request", log_text("id", observed->request_id),
	          log_text("method", observed->method), log_text("path", observed->path),
	          log_number("status", (uint64_t)observed->status), log_number("bytes", observed->bytes),
	          log_real("ms", observed->seconds * 1e3),
	          log_text("code", problem_code_text(observed->problem->code)),
	          log_text("detail", observed->problem->detail),
	          log_text("traceparent", observed->traceparent));
}

void observed_gone(const char *request_id, const struct operation *operation)
{
	metrics_request_done(operation->metric, 0);
	log_event(LOG_DEBUG, "client-gone", log_text("id", request_id));
}

static double seconds(uint64_t nanoseconds)
{
	return (double)nanoseconds / (double)CLOCK_NS_PER_S;
}

void observed_job(struct latency *latency, const struct job *job, uint64_t now)
{
	double total = seconds(now - job->arrived);
	metrics_request_seconds(job->operation->metric, job->length, total);
	for (int stage = 0; stage < STAGES; stage++)
		metrics_stage_seconds((enum metrics_stage)stage, job->length, seconds(job->stages[stage]));
	/* A job that is a batch by itself may have taken several calls, whose times add up. */
	size_t sequences = job->batch_sequences > job->sequences ? job->batch_sequences : job->sequences;
	if (sequences == 0)
		return;
	latency_record(latency, &(struct latency_sample){
	                            .operation = job->operation->metric,
	                            .model = job->model ? model_instance_name(job->model) : NULL,
	                            .heads = job->heads,
	                            .width = job->width,
	                            .length = job->length,
	                            .total = total,
	                            .compute = seconds(job->stages[STAGE_COMPUTE]) / (double)sequences,
	                        });
}
