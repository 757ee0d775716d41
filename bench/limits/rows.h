// The rows that a message leaves behind, written batch by batch.
#ifndef ROWS_H
#define ROWS_H

#include <stddef.h>
#include <stdint.h>

enum rows_kind {
    ROWS_NONE,    // nothing is stored
    ROWS_MESSAGE, // one row a message
    ROWS_FULL,    // what the server writes for it: message, cid index, members or big chat, clock
};

struct chat;

void rows_open(enum rows_kind kind, const char *file);

// The dialog of two users, or one's saved messages; null when nothing is stored.
struct chat *rows_pair(uint32_t a, uint32_t b);

// The group with this number; null when nothing is stored.
struct chat *rows_group(uint32_t group, uint32_t creator);

// Makes the user a member of the group; one that is a member stays it.
void rows_join(struct chat *group, uint32_t user);

// Takes a message into the batch. The body is not copied: it must stay where it is until the commit.
void rows_append(struct chat *chat, uint32_t sender, const void *body, size_t length);

// Writes the batch and waits for the disk; does nothing when there is nothing to write.
void rows_commit(void);

// Closes the file between two batches.
void rows_close(void);

#endif
