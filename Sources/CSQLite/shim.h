#include <sqlite3.h>

// Turns off memory statistics: with statistics, each allocation takes a lock. Call this before the
// first connection is opened. Swift cannot call sqlite3_config, which takes variable arguments.
static inline int tambour_sqlite3_stop_counting_memory(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
