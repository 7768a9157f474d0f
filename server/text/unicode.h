/*
 * unicode.h - what tokenizers ask about characters. The one file that knows utf8proc (Unicode 15).
 *
 * Where the reference implementation asks tables of Unicode 8 (punctuation, non-spacing marks, format
 * characters), characters that got that category later are not of it here either, so that ids agree. Pure
 * functions: any thread. A point is a code point that is not a surrogate.
 */
#ifndef ATTND_TEXT_UNICODE_H
#define ATTND_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The point whose well-formed UTF-8 begins at text; *size is how many bytes it takes. */
uint32_t unicode_read(const char *text, size_t *size);
/* Where the point before `at` begins, in text that is well-formed from its start. at > 0. */
size_t unicode_before(const char *text, size_t at);

bool unicode_is_space(uint32_t point);       /* White_Space */
bool unicode_is_number(uint32_t point);      /* Nd, Nl, No */
bool unicode_is_punctuation(uint32_t point); /* P*, and ASCII's $+<=>^`|~ */
bool unicode_is_control(uint32_t point);     /* Cc, Cf, Co */
bool unicode_is_mark(uint32_t point);        /* M* */
bool unicode_is_nonspacing(uint32_t point);  /* Mn */
bool unicode_is_ideograph(uint32_t point);   /* the blocks that BERT sets apart */
bool unicode_is_word(uint32_t point); /* alphabetic, marks, digits, connectors, joiners: \w of UTS 18 */

/* The lower case, one or two points; returns how many. */
size_t unicode_lower(uint32_t point, uint32_t out[2]);

/* The decomposition of one point, canonical or compatible, not reordered; returns how many of out. */
#define UNICODE_DECOMPOSED_MAX 32
size_t unicode_decompose(uint32_t point, bool compatible, uint32_t out[UNICODE_DECOMPOSED_MAX]);
uint8_t unicode_combining_class(uint32_t point);
/* The primary composite of two points, or 0. */
uint32_t unicode_compose(uint32_t first, uint32_t second);

#endif
