/*
 * attention_reply.h - what the reply and its upper bound agree on. The reply's contract is in
 * attention_request.h.
 */
#ifndef ATTND_CODEC_ATTENTION_REPLY_H
#define ATTND_CODEC_ATTENTION_REPLY_H

#include "codec/numbers.h"

/* Bytes of a reply that are not tensors, at most: names, brackets and the seven numbers of `shape`. */
#define ATTENTION_REPLY_FRAME 512

#endif
