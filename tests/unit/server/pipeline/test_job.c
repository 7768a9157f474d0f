#include "pipeline/job.h"

#include "suite.h"

START_TEST(a_freed_job_gives_back_every_byte)
{
	struct budget budget;
	budget_init(&budget, 100);
	struct job *job = job_new(NULL, &budget);
	ck_assert_int_eq(job_charge(job, 30), BUDGET_OK);
	ck_assert_int_eq(job_charge(job, 80), BUDGET_OK);
	ck_assert_uint_eq(budget_used(&budget), 80);
	ck_assert_int_eq(job_charge(job, 10), BUDGET_OK);
	ck_assert_uint_eq(budget_used(&budget), 10);
	ck_assert_int_eq(job_charge(job, 101), BUDGET_NEVER);
	ck_assert_uint_eq(job->charged, 10);
	job->body = malloc(10);
	job->reply = malloc(10);
	job_free(job);
	ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(a_job_is_over_when_cancelled_or_refused)
{
	struct budget budget;
	budget_init(&budget, 100);
	struct job *job = job_new(NULL, &budget);
	ck_assert(!job_over(job));
	atomic_store(&job->cancelled, true);
	ck_assert(job_over(job));
	atomic_store(&job->cancelled, false);
	job->problem.code = PROBLEM_SYNTAX;
	ck_assert(job_over(job));
	job_free(job);
}
END_TEST

START_TEST(a_list_keeps_its_order_when_jobs_leave)
{
	struct job jobs[4] = {0};
	struct job_list list = {0};
	for (size_t i = 0; i < 4; i++)
		job_list_append(&list, &jobs[i]);
	job_list_remove(&list, &jobs[1]);
	job_list_remove(&list, &jobs[3]);
	ck_assert_ptr_eq(list.last, &jobs[2]);
	ck_assert_uint_eq(list.count, 2);
	ck_assert_ptr_eq(job_list_take_first(&list), &jobs[0]);
	job_list_append(&list, &jobs[1]);
	ck_assert_ptr_eq(job_list_take_first(&list), &jobs[2]);
	ck_assert_ptr_eq(job_list_take_first(&list), &jobs[1]);
	ck_assert_ptr_null(job_list_take_first(&list));
	ck_assert_ptr_null(list.last);
}
END_TEST

SUITE_MAIN("job", a_freed_job_gives_back_every_byte, a_job_is_over_when_cancelled_or_refused,
           a_list_keeps_its_order_when_jobs_leave)
