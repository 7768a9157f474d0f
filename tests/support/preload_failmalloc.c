/*
 * preload_failmalloc.c - a system that refuses memory, for LD_PRELOAD: from the signal SIGUSR1 on, every
 * allocation of more than FAILMALLOC_OVER bytes fails with ENOMEM; smaller ones are the C library's.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static size_t limit;
static atomic_bool armed;

static void arm(int signal)
{
	(void)signal;
	atomic_store(&armed, true);
}

__attribute__((constructor)) static void read_limit(void)
{
	const char *text = getenv("FAILMALLOC_OVER");
	limit = text ? strtoull(text, NULL, 10) : SIZE_MAX;
	signal(SIGUSR1, arm);
}

static bool refused(size_t bytes)
{
	if (!atomic_load(&armed) || bytes <= limit)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return refused(bytes) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size)
{
	return size && refused(count > SIZE_MAX / size ? SIZE_MAX : count * size)
	           ? NULL
	           : __libc_calloc(count, size);
}

void *realloc(void *block, size_t bytes)
{
	return refused(bytes) ? NULL : __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return refused(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
	return refused(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	if (refused(bytes))
		return ENOMEM;
	*out = __libc_memalign(alignment, bytes);
	return *out ? 0 : ENOMEM;
}
