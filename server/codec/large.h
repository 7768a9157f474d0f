/*
 * large.h - large blocks of memory, which take the system long to hand out page by page.
 */
#ifndef ATTND_CODEC_LARGE_H
#define ATTND_CODEC_LARGE_H

#include <stddef.h>

/* Asks for huge pages where the block, just allocated, covers whole ones; what holds them is freed as ever.
 * Advice only: any system may pass over it. NULL and small blocks are left alone. Returns the block. */
void *large_block(void *block, size_t bytes);

#endif
