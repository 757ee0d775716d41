// The code that the programs with SQLite share: one connection and its statements.
#ifndef SQLITE_H
#define SQLITE_H

#include "common.h"

#include <sqlite3.h>
#include <stdbool.h>

static sqlite3 *db;

static inline void execute(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) die("%s: %s", sql, sqlite3_errmsg(db));
}

static inline void open_database(const char *file, int flags) {
    if (sqlite3_open_v2(file, &db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        die("%s: %s", file, sqlite3_errmsg(db));
}

static inline sqlite3_stmt *prepare(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        die("%s: %s", sql, sqlite3_errmsg(db));
    return statement;
}

static inline void bind(sqlite3_stmt *statement, int count, const int64_t *values) {
    for (int i = 0; i < count; i++) sqlite3_bind_int64(statement, i + 1, values[i]);
}

#define BIND(statement, ...) \
    bind(statement, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

// Steps the statement. Returns true if there is a row. After the last row, resets the statement and
// returns false.
static inline bool step(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) die("%s: %s", sqlite3_sql(statement), sqlite3_errmsg(db));
    if (code == SQLITE_DONE) sqlite3_reset(statement);
    return code == SQLITE_ROW;
}

static inline void run(sqlite3_stmt *statement) {
    while (step(statement)) continue;
}

static inline int64_t number(sqlite3_stmt *statement, int column) {
    return sqlite3_column_int64(statement, column);
}

#endif
