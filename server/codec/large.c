#include "codec/large.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uintptr_t)2 << 20)
#define LEAST_BYTES (2 * HUGE_PAGE) /* one huge page lies in it, wherever it begins */
/* malloc's own words stand before the block; a large one with them begins a mapping. */
#define WORDS_BEFORE ((uintptr_t)16)

void *large_block(void *block, size_t bytes)
{
	uintptr_t at = (uintptr_t)block;
	uintptr_t begin = (at - WORDS_BEFORE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = (at + bytes) / HUGE_PAGE * HUGE_PAGE;
	if (block != NULL && bytes >= LEAST_BYTES)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	return block;
}
