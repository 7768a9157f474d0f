/*
 * normal_form.h - the four normal forms of Unicode (UAX 15) over pieces, each byte's origin kept.
 */
#ifndef ATTND_TEXT_NORMAL_FORM_H
#define ATTND_TEXT_NORMAL_FORM_H

#include "text/pieces.h"

struct normal_form {
	bool compatible; /* K */
	bool composed;   /* C, not D */
};

/* A pieces_rewrite; context is a struct normal_form. */
void normal_form_rewrite(const void *context, const struct pieces *source, struct piece piece,
                         struct pieces *out);

#endif
