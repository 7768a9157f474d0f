#include "codec/large.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uintptr_t)2 << 20)
#define LEAST_BYTES (2 * HUGE_PAGE) /* one huge page lies in it, wherever it begins */

void *large_block(void *block, size_t bytes)
{
	uintptr_t begin = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = ((uintptr_t)block + bytes) / HUGE_PAGE * HUGE_PAGE;
	if (block != NULL && bytes >= LEAST_BYTES)
		madvise((char *)block + (begin - (uintptr_t)block), end - begin, MADV_HUGEPAGE);
	return block;
}
