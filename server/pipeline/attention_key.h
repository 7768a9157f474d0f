/*
 * attention_key.h - the batch key of an attention job: all that a call of the library has once for its
 * sequences.
 *
 * Jobs whose keys are equal may be computed in one call. One thread at a time.
 */
#ifndef ATTND_PIPELINE_ATTENTION_KEY_H
#define ATTND_PIPELINE_ATTENTION_KEY_H

#include "pipeline/job.h"

/* Sets job->key from the operation, the model and the parsed request. */
void attention_key_fill(struct job *job);

#endif
