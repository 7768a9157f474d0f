#include "pipeline/job.h"

#include "observe/clock.h"

#include <stdlib.h>

struct job *job_new(const struct operation *operation, struct budget *budget)
{
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL)
		return NULL;
	job->operation = operation;
	job->budget = budget;
	atomic_init(&job->cancelled, false);
	job->mail_returned = (struct mail){.kind = MAIL_RETURNED, .job = job};
	job->mail_deadline = (struct mail){.kind = MAIL_DEADLINE, .job = job};
	return job;
}

void job_drop_work(struct job *job)
{
	free(job->body);
	job->body = NULL;
	attention_request_free(job->attention);
	job->attention = NULL;
	forward_request_free(job->forward);
	job->forward = NULL;
}

void job_free(struct job *job)
{
	job_drop_work(job);
	free(job->reply);
	model_instance_release(job->model);
	budget_give_back(job->budget, job->charged);
	free(job);
}

bool job_over(const struct job *job)
{
	return job->problem.code != PROBLEM_NONE ||
	       atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

enum budget_result job_charge(struct job *job, size_t bytes)
{
	if (bytes > job->charged) {
		enum budget_result result = budget_grow(job->budget, job->charged, bytes);
		if (result != BUDGET_OK)
			return result;
	} else {
		budget_give_back(job->budget, job->charged - bytes);
	}
	job->charged = bytes;
	return BUDGET_OK;
}

enum budget_result job_charge_parsed(struct job *job, size_t bytes)
{
	enum budget_result result = job_charge(job, bytes);
	if (result == BUDGET_LATER)
		problem_set(&job->problem, PROBLEM_BUDGET_FULL, "",
		            "the request needs %zu bytes of memory; %zu of %zu are in use now", bytes,
		            budget_used(job->budget), job->budget->limit);
	return result;
}

void job_take_reply(struct job *job, char *reply)
{
	job->reply = reply;
	job->content_type = body_form_media_type(job->forms.reply);
	if (reply != NULL && job->reply_length < job->charged)
		job_charge(job, job->reply_length);
}

void job_shorten_deadline(struct job *job, uint64_t timeout_ms)
{
	if (timeout_ms == 0 || timeout_ms > UINT64_MAX / CLOCK_NS_PER_MS)
		return;
	uint64_t timeout = timeout_ms * CLOCK_NS_PER_MS;
	if (job->deadline > job->arrived && timeout < job->deadline - job->arrived)
		job->deadline = job->arrived + timeout;
}

void job_list_append(struct job_list *list, struct job *job)
{
	job->next = NULL;
	job->previous = list->last;
	if (list->last != NULL)
		list->last->next = job;
	else
		list->first = job;
	list->last = job;
	list->count++;
}

void job_list_remove(struct job_list *list, struct job *job)
{
	if (job->previous != NULL)
		job->previous->next = job->next;
	else
		list->first = job->next;
	if (job->next != NULL)
		job->next->previous = job->previous;
	else
		list->last = job->previous;
	job->next = job->previous = NULL;
	list->count--;
}

struct job *job_list_take_first(struct job_list *list)
{
	struct job *job = list->first;
	if (job != NULL)
		job_list_remove(list, job);
	return job;
}
