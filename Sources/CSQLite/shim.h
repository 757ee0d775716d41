#include <sqlite3.h>

// sqlite3_config takes variable arguments, which Swift cannot call. Counting every allocation costs a
// lock each. Before the first connection is opened.
static inline int tambour_sqlite3_stop_counting_memory(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
