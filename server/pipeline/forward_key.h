/*
 * forward_key.h - the batch key of a forward job: all that a call of the library has once for its sequences.
 *
 * Jobs whose keys are equal may be computed together. Those of one length share a key with others of that
 * length; those of several lengths share one that says so, and meet by length in the calls. One thread at a
 * time.
 */
#ifndef ATTND_PIPELINE_FORWARD_KEY_H
#define ATTND_PIPELINE_FORWARD_KEY_H

#include "pipeline/job.h"

/* Sets job->key from the operation, the model and the parsed request. */
void forward_key_fill(struct job *job);

#endif
