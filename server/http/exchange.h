/*
 * exchange.h - one request's life on the loop: headers, body, waiting for the pipeline, reply.
 *
 * An exchange is made in the first call of microhttpd's handler and freed when microhttpd says the request is
 * completed, however it ended. Its job, once submitted, is the pipeline's: the two point at each other until
 * the job returns or the loop cuts them apart (deadline, client gone, shutdown). A cut job is freed when it
 * returns. Loop thread only.
 */
#ifndef ATTND_HTTP_EXCHANGE_H
#define ATTND_HTTP_EXCHANGE_H

#include "codec/problem.h"
#include "http/context.h"
#include "pipeline/job.h"

#include <microhttpd.h>
#include <stddef.h>

/* microhttpd's callbacks; context is the struct http_context. */
enum MHD_Result exchange_handle(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data, size_t *size,
                                void **slot);
void exchange_completed(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_RequestTerminationCode how);

/* The pipeline's events (pipeline.h); context is the struct http_context. */
void exchange_job_returned(void *context, struct job *job);
void exchange_job_deadline(void *context, struct job *job);

/* Answers a waiting exchange with a problem at once; its job is cut. */
void exchange_give_up(struct exchange *exchange, enum problem_code code, const char *detail);
/* All that wait, because the daemon stops; returns how many. */
size_t exchange_give_up_all(struct http_context *context);

#endif
