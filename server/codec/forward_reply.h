/*
 * forward_reply.h - upper bounds of a forward reply, by its parts. The reply's contract is in
 * forward_request.h. One thread at a time.
 */
#ifndef ATTND_CODEC_FORWARD_REPLY_H
#define ATTND_CODEC_FORWARD_REPLY_H

#include "codec/forward_members.h"

/* Bytes that one member takes, and what is not members, in the form that is asked for; SIZE_MAX on overflow.
 */
size_t forward_reply_member_bytes(const struct forward_request *request, const struct forward_member *member);
size_t forward_reply_frame_bytes(const struct forward_request *request);

#endif
