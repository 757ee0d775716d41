#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

/// How many blocks this thread has asked the allocator for; -1 where a sanitizer has its own.
long allocation_count(void);

#endif
