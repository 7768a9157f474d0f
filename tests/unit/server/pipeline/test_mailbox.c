#include "pipeline/mailbox.h"

#include "suite.h"

#define THREADS 4
#define MAILS 2000

struct poster {
	uv_thread_t thread;
	struct mailbox *mailbox;
	struct job *jobs; /* MAILS of them */
};

struct reader {
	struct mailbox *mailbox;
	size_t delivered, wanted;
	size_t next[THREADS]; /* the mail due from each poster */
	size_t out_of_order;
	bool closed;
};

static struct job jobs[THREADS][MAILS];

static void reader_closed(void *context)
{
	((struct reader *)context)->closed = true;
}

static void reader_deliver(void *context, struct mail *mail)
{
	struct reader *reader = context;
	size_t poster = (size_t)(mail->job - &jobs[0][0]) / MAILS;
	size_t number = (size_t)(mail->job - &jobs[0][0]) % MAILS;
	reader->out_of_order += number != reader->next[poster] || mail->job->length != number;
	reader->next[poster]++;
	reader->delivered++;
	if (reader->delivered == reader->wanted)
		mailbox_close(reader->mailbox, reader_closed, reader);
}

static void post_all(void *arg)
{
	struct poster *poster = arg;
	for (size_t i = 0; i < MAILS; i++) {
		poster->jobs[i].length = i;
		poster->jobs[i].mail_returned.job = &poster->jobs[i];
		mailbox_post(poster->mailbox, &poster->jobs[i].mail_returned);
	}
}

START_TEST(every_mail_of_every_thread_arrives_once_and_in_order)
{
	uv_loop_t loop;
	struct reader reader = {.wanted = THREADS * MAILS};
	struct poster posters[THREADS];
	uv_loop_init(&loop);
	reader.mailbox = mailbox_new(&loop, reader_deliver, &reader);
	for (size_t i = 0; i < THREADS; i++) {
		posters[i] = (struct poster){.mailbox = reader.mailbox, .jobs = jobs[i]};
		uv_thread_create(&posters[i].thread, post_all, &posters[i]);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	for (size_t i = 0; i < THREADS; i++)
		uv_thread_join(&posters[i].thread);
	ck_assert_uint_eq(reader.delivered, THREADS * MAILS);
	ck_assert_uint_eq(reader.out_of_order, 0);
	ck_assert(reader.closed);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(a_single_mail_wakes_the_loop)
{
	uv_loop_t loop;
	struct reader reader = {.wanted = 1};
	uv_loop_init(&loop);
	reader.mailbox = mailbox_new(&loop, reader_deliver, &reader);
	jobs[0][0].mail_returned.job = &jobs[0][0];
	mailbox_post(reader.mailbox, &jobs[0][0].mail_returned);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_uint_eq(reader.delivered, 1);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

struct freeing {
	struct mailbox *mailbox;
	size_t deadlines, returned;
};

static void free_returned(void *context, struct mail *mail)
{
	struct freeing *freeing = context;
	if (mail->kind == MAIL_DEADLINE) {
		freeing->deadlines++;
		ck_assert_uint_eq(freeing->returned, 0);
		return;
	}
	freeing->returned++;
	job_free(mail->job);
}

static void ignore_closed(void *context)
{
	(void)context;
}

START_TEST(a_job_may_be_freed_by_its_last_mail)
{
	uv_loop_t loop;
	struct freeing freeing = {0};
	struct budget budget;
	budget_init(&budget, 1);
	uv_loop_init(&loop);
	freeing.mailbox = mailbox_new(&loop, free_returned, &freeing);
	struct job *job = job_new(NULL, &budget);
	mailbox_post(freeing.mailbox, &job->mail_deadline);
	mailbox_post(freeing.mailbox, &job->mail_returned);
	ck_assert_uint_eq(freeing.deadlines, 0);
	mailbox_drain(freeing.mailbox);
	ck_assert_uint_eq(freeing.deadlines, 1);
	ck_assert_uint_eq(freeing.returned, 1);
	mailbox_close(freeing.mailbox, ignore_closed, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

SUITE_MAIN("mailbox", a_single_mail_wakes_the_loop, every_mail_of_every_thread_arrives_once_and_in_order,
           a_job_may_be_freed_by_its_last_mail)
