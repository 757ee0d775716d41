#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

/// The number of allocations and reallocations by this thread; -1 under a sanitizer, which has its
/// own allocator, and without glibc.
long allocation_count(void);

#endif
