// The program that the power-cut tests cut. It commits to a SQLite file and reports each commit.
//
//   writer FILE SYNCHRONOUS     e.g. writer /tmp/x/test.db FULL
//
// Transaction n inserts row n, whose content depends only on n, and sets the one row of `last` to
// n. After COMMIT has returned, it writes the line n to stdout. After MOST transactions it waits to
// be killed.
//
//   cc -O1 -o writer writer.c -lsqlite3

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// More than any test waits for, but few enough to fit the disk if the test kills the program late.
#define MOST 20000

static sqlite3 *database;

static void run(const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) == SQLITE_OK) return;
    fprintf(stderr, "writer: %s in %s\n", message, sql);
    exit(1);
}

int main(int count, char **arguments) {
    if (count != 3 || sqlite3_open(arguments[1], &database)) return 2;
    char sql[512];
    snprintf(sql, sizeof sql,
             "PRAGMA journal_mode = WAL; PRAGMA synchronous = %s; PRAGMA wal_autocheckpoint = 30;"
             "CREATE TABLE IF NOT EXISTS row(id INTEGER PRIMARY KEY, body TEXT NOT NULL);"
             "CREATE TABLE IF NOT EXISTS last(one INTEGER PRIMARY KEY, id INTEGER NOT NULL);",
             arguments[2]);
    run(sql);
    for (long n = 1; n <= MOST; n++) {
        char line[32];
        snprintf(sql, sizeof sql,
                 "BEGIN IMMEDIATE; INSERT INTO row VALUES (%ld, printf('%%.*c', %ld, 'x'));"
                 "INSERT OR REPLACE INTO last VALUES (1, %ld); COMMIT",
                 n, 100 + n * 37 % 900, n);
        run(sql);
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(STDOUT_FILENO, line, length) != length) return 3;
    }
    for (;;) pause();
}
