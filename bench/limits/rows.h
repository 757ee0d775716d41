// Writes the rows of messages in batches.
#ifndef ROWS_H
#define ROWS_H

#include <stddef.h>
#include <stdint.h>

enum rows_kind {
    ROWS_NONE,    // nothing is stored
    ROWS_MESSAGE, // one row per message
    ROWS_FULL,    // the rows that the server writes: message, cid index, members or big chat, clock
};

struct chat;

void rows_open(enum rows_kind kind, const char *file);

// Returns the dialog of two users, or the saved messages of one user; NULL if the program stores no
// rows.
struct chat *rows_pair(uint32_t a, uint32_t b);

// Returns the group with this number; NULL if the program stores no rows.
struct chat *rows_group(uint32_t group, uint32_t creator);

// Makes the user a member of the group. Does nothing if the user is already a member.
void rows_join(struct chat *group, uint32_t user);

// Adds a message to the batch. Does not copy the body, so the body must stay in its place until the
// commit.
void rows_append(struct chat *chat, uint32_t sender, const void *body, size_t length);

// Writes the batch and waits for the disk. Does nothing if the batch is empty.
void rows_commit(void);

// Closes the file. The caller calls it between two batches.
void rows_close(void);

#endif
