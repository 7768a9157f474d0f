/*
 * forward_meaning.h - what the inputs and fields of a forward request mean together, for its model: batch,
 * groups, layers, heads; or the rule of the contract that they break.
 *
 * One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_MEANING_H
#define ATTND_CODEC_FORWARD_MEANING_H

#include "codec/forward_fields.h"

/* Fills all of the request but its members; takes the list of queries over from fields. false with the
 * problem set. */
bool forward_meaning_resolve(struct forward_request *request, struct forward_fields *fields,
                             struct problem *problem);

#endif
