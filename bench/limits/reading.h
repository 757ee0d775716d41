// The code that the two reading programs share: it opens a store as the server does, and reads
// rows.
#ifndef READING_H
#define READING_H

#include "sqlite.h"

// The amount of data that the program has read: rows, and the bytes of their columns. An integer
// counts as 8 bytes.
static struct {
    int64_t rows, bytes;
    uint64_t sum; // of all values, so that the compiler cannot omit a read
} tally;

static inline void open_store(const char *file) {
    open_database(file, SQLITE_OPEN_READONLY);
    sqlite3_busy_timeout(db, 5000);
    execute("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;"
            "PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;");
}

// Reads every column of the current row.
static inline void touch(sqlite3_stmt *statement) {
    int columns = sqlite3_column_count(statement);
    for (int i = 0; i < columns; i++) {
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_NULL:
            break;
        case SQLITE_INTEGER:
            tally.sum += (uint64_t)sqlite3_column_int64(statement, i);
            tally.bytes += 8;
            break;
        default: {
            const unsigned char *bytes = sqlite3_column_blob(statement, i);
            int length = sqlite3_column_bytes(statement, i);
            for (int j = 0; j < length; j++) tally.sum += bytes[j];
            tally.bytes += length;
        }
        }
    }
    tally.rows++;
}

// Reads all remaining rows.
static inline void read_rows(sqlite3_stmt *statement) {
    while (step(statement)) touch(statement);
}

// Reads the first row. The statement stays on this row.
static inline bool read_row(sqlite3_stmt *statement) {
    if (!step(statement)) return false;
    touch(statement);
    return true;
}

// BEGIN alone does not take a snapshot. The first read takes the snapshot, as in the server.
static sqlite3_stmt *begin_statement, *first_read, *end_statement;

static inline void begin_snapshot(void) {
    if (!begin_statement) {
        begin_statement = prepare("BEGIN");
        first_read = prepare("SELECT 1 FROM sqlite_schema LIMIT 1");
        end_statement = prepare("ROLLBACK");
    }
    run(begin_statement);
    run(first_read);
}

static inline void end_snapshot(void) {
    run(end_statement);
}

#define ACCOUNT_COLUMNS                                                                          \
    "a.id, a.phone, a.first_name, a.last_name, a.registered, a.updated, a.blocked, a.seen, "     \
    "a.description, a.privacy, a.settings_ct"
#define MESSAGE_COLUMNS                                                                          \
    "m.chat, m.id, m.n, m.sender, m.cid, m.device, m.status, m.updated, m.reply_to, m.text, "    \
    "m.elements, m.attaches, m.forward, m.reactions, m.poll"
#define NOT_HIDDEN                                                                               \
    "NOT EXISTS (SELECT 1 FROM message_hidden h"                                                 \
    " WHERE h.user_id = ?2 AND h.chat = m.chat AND h.message = m.id)"
#define VIEW_COLUMNS                                                                             \
    "c.id, c.kind, c.low_user, c.high_user, c.owner, c.title, c.created, c.member_count, "       \
    "c.ct_head, m.user_id, m.joined, m.read_time, m.read_n, m.ct, m.big, c.description, "         \
    "c.options, c.pinned, m.permissions, m.floor, c.link, c.reactions, c.is_public, m.hidden_n, " \
    "m.delayed_updated, m.delayed_failed"

// The columns of a message and of a view that determine which rows the program reads next.
enum { MESSAGE_ID = 1, MESSAGE_REPLY_TO = 8 };
enum { VIEW_CHAT = 0, VIEW_READ_TIME = 11, VIEW_READ_N = 12, VIEW_BIG = 14, VIEW_FLOOR = 19 };

#endif
