#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

/// Returns the number of allocations and reallocations by this thread. Returns -1 without glibc,
/// and under a sanitizer, because a sanitizer has its own allocator.
long allocation_count(void);

#endif
