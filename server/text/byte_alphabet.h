/*
 * byte_alphabet.h - the printable character that byte-level tokenizers write for each byte (GPT-2).
 *
 * Pure functions: any thread.
 */
#ifndef ATTND_TEXT_BYTE_ALPHABET_H
#define ATTND_TEXT_BYTE_ALPHABET_H

#include "text/pieces.h"

#include <stdint.h>

/* Printable bytes of Latin-1 stand for themselves, the others for U+0100 on, in order. */
uint32_t byte_alphabet_point(unsigned char byte);
/* The byte of a point, or -1. */
int byte_alphabet_byte(uint32_t point);

/* A pieces_rewrite: each byte by its character. context is not used. */
void byte_alphabet_rewrite(const void *context, const struct pieces *source, struct piece piece,
                           struct pieces *out);

#endif
