#include "pipeline/mailbox.h"

#include <assert.h>
#include <stdlib.h>

struct mailbox {
	uv_async_t wake; /* data: the mailbox */
	void (*deliver)(void *context, struct mail *mail);
	void *context;
	void (*closed)(void *context);
	void *closed_context;

	uv_mutex_t lock; /* first and last; what was written to a job before its posting is seen after */
	struct mail *first, *last;
};

static void mailbox_woken(uv_async_t *wake)
{
	mailbox_drain(wake->data);
}

struct mailbox *mailbox_new(uv_loop_t *loop, void (*deliver)(void *context, struct mail *mail), void *context)
{
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
	if (mailbox == NULL)
		return NULL;
	mailbox->deliver = deliver;
	mailbox->context = context;
	if (uv_mutex_init(&mailbox->lock) != 0)
		goto no_mutex;
	if (uv_async_init(loop, &mailbox->wake, mailbox_woken) != 0)
		goto no_handle;
	mailbox->wake.data = mailbox;
	return mailbox;
no_handle:
	uv_mutex_destroy(&mailbox->lock);
no_mutex:
	free(mailbox);
	return NULL;
}

void mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
	mail->next = NULL;
	uv_mutex_lock(&mailbox->lock);
	bool was_empty = mailbox->first == NULL;
	if (was_empty)
		mailbox->first = mail;
	else
		mailbox->last->next = mail;
	mailbox->last = mail;
	uv_mutex_unlock(&mailbox->lock);
	if (was_empty)
		uv_async_send(&mailbox->wake);
}

void mailbox_drain(struct mailbox *mailbox)
{
	uv_mutex_lock(&mailbox->lock);
	struct mail *mail = mailbox->first;
	mailbox->first = mailbox->last = NULL;
	uv_mutex_unlock(&mailbox->lock);
	while (mail != NULL) {
		struct mail *next = mail->next; /* read first: deliver may free the job the mail is in */
		mailbox->deliver(mailbox->context, mail);
		mail = next;
	}
}

static void mailbox_closed(uv_handle_t *handle)
{
	struct mailbox *mailbox = handle->data;
	void (*closed)(void *context) = mailbox->closed;
	void *context = mailbox->closed_context;
	uv_mutex_destroy(&mailbox->lock);
	free(mailbox);
	closed(context);
}

void mailbox_close(struct mailbox *mailbox, void (*closed)(void *context), void *context)
{
	assert(mailbox->first == NULL);
	mailbox->closed = closed;
	mailbox->closed_context = context;
	uv_close((uv_handle_t *)&mailbox->wake, mailbox_closed);
}
