/* Allocation. Every allocation of the engine goes through these functions, and every caller checks for NULL. */
#include "engine.h"

#ifdef MH_TEST_ALLOCATION
/* For tests: the allocation after the next n fails, once; live allocations are counted to find leaks. */
static int64_t allocations_until_failure = -1;
static int64_t live_allocations = 0;

EXPORT void mh_fail_allocation_after(int64_t n) { __atomic_store_n(&allocations_until_failure, n, __ATOMIC_SEQ_CST); }
EXPORT int64_t mh_live_allocations(void) { return __atomic_load_n(&live_allocations, __ATOMIC_SEQ_CST); }

static int must_fail(void)
{
    if (__atomic_load_n(&allocations_until_failure, __ATOMIC_SEQ_CST) < 0) return 0;
    return __atomic_fetch_sub(&allocations_until_failure, 1, __ATOMIC_SEQ_CST) == 0;
}
#define COUNT_ALLOCATION(change) __atomic_fetch_add(&live_allocations, (change), __ATOMIC_SEQ_CST)
#else
INLINE int must_fail(void) { return 0; }
#define COUNT_ALLOCATION(change) ((void)0)
#endif

/* A zeroed buffer of `count` elements, aligned to 64 bytes; NULL: out of memory. */
static void *allocate_zeroed(size_t count, size_t size)
{
    size_t n_bytes;
    void *buffer = NULL;
    if (__builtin_mul_overflow(count, size, &n_bytes) || must_fail()) return NULL;
    if (posix_memalign(&buffer, 64, n_bytes ? n_bytes : 1)) return NULL;
    COUNT_ALLOCATION(1);
    return memset(buffer, 0, n_bytes);
}

/* Resize `buffer` to `count` elements, or allocate it if it is NULL. NULL: out of memory, `buffer` stays valid. */
static void *reallocate(void *buffer, size_t count, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(count, size, &n_bytes) || must_fail()) return NULL;
    void *resized = realloc(buffer, n_bytes ? n_bytes : 1);
    if (resized && !buffer) COUNT_ALLOCATION(1);
    return resized;
}

static void *allocate(size_t count, size_t size) { return reallocate(NULL, count, size); }

static void release(void *buffer)
{
    if (buffer) COUNT_ALLOCATION(-1);
    free(buffer);
}

/* Write an error message into the caller's buffer of MESSAGE_SIZE characters. */
__attribute__((format(printf, 2, 3))) static int invalid(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, MESSAGE_SIZE, format, arguments);
    va_end(arguments);
    return MH_INVALID;
}
