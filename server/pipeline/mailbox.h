/*
 * mailbox.h - how workers give jobs back to the loop: a list in order of posting, and one wake-up.
 *
 * mailbox_post may be called by any thread, the rest on the loop only. An entry belongs to the mailbox from
 * its posting until `deliver` is called with it, on the loop, once; entries live in their jobs, so posting
 * allocates nothing and cannot fail. Entries come out in the order they were posted. libuv merges wake-ups,
 * so each one drains the whole list.
 */
#ifndef ATTND_PIPELINE_MAILBOX_H
#define ATTND_PIPELINE_MAILBOX_H

#include "pipeline/job.h"

#include <uv.h>

struct mailbox;

/* `deliver` may free the job. NULL when the system refuses memory or a handle. */
struct mailbox *mailbox_new(uv_loop_t *loop, void (*deliver)(void *context, struct mail *mail),
                            void *context);
void mailbox_post(struct mailbox *mailbox, struct mail *mail);
/* Delivers what is there now, without waiting for the wake-up. */
void mailbox_drain(struct mailbox *mailbox);
/* When nobody posts any more and it is empty: closes the handle and frees the mailbox; then the loop calls
 * `closed`. */
void mailbox_close(struct mailbox *mailbox, void (*closed)(void *context), void *context);

#endif
