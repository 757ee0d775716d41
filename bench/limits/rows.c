#include "rows.h"

#include "map.h"
#include "sqlite.h"

// If a group has at most this many members, a message updates every member's row. In a larger
// group, a message updates only the chat's own row (limit `fanOutMembers`).
enum { FAN_OUT_MEMBERS = 32 };
// The last commit has left a clock value on disk. The server's clock may be ahead of this value by
// at most this many milliseconds.
enum { LEASE_MS = 250 };
enum { KIND_DIALOG, KIND_SAVED, KIND_GROUP };

struct member {
    struct chat *chat;
    uint32_t user;
    bool is_dirty, is_big;
    int64_t joined, read_time, read_n, ct, contact_ct;
};

struct chat {
    int64_t key;
    uint32_t serial; // part of the key of its members in the map
    bool is_big, is_head_dirty, is_count_dirty, is_listed;
    int64_t last_id, last_n, ct_head;
    struct member **members;
    size_t member_count, member_capacity;
};

struct message {
    struct chat *chat;
    int64_t id, n, cid;
    uint32_t sender;
    const void *body;
    size_t length;
};

// The tables that a message changes, exactly copied from Sources/TambourStore/Core/Schema*.swift.
static const char *full_schema =
    "CREATE TABLE IF NOT EXISTS meta (k text PRIMARY KEY, v INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS chat ("
    "  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, low_user INTEGER, high_user INTEGER,"
    "  owner INTEGER NOT NULL, title BLOB, created INTEGER NOT NULL, member_count INTEGER NOT NULL,"
    "  ct_head INTEGER NOT NULL, UNIQUE (low_user, high_user));"
    "CREATE TABLE IF NOT EXISTS member ("
    "  user_id INTEGER NOT NULL, chat INTEGER NOT NULL, joined INTEGER NOT NULL, read_time INTEGER NOT NULL,"
    "  read_n INTEGER NOT NULL, ct INTEGER NOT NULL, contact_ct INTEGER NOT NULL, big INTEGER NOT NULL,"
    "  PRIMARY KEY (user_id, chat)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS member_ct ON member (user_id, ct);"
    "CREATE INDEX IF NOT EXISTS member_chat ON member (chat, user_id);"
    "CREATE INDEX IF NOT EXISTS member_contact ON member (user_id, contact_ct) WHERE contact_ct > 0;"
    "CREATE INDEX IF NOT EXISTS member_big ON member (user_id, ct) WHERE big = 1;"
    "CREATE TABLE IF NOT EXISTS message ("
    "  chat INTEGER NOT NULL, id INTEGER NOT NULL, n INTEGER NOT NULL, sender INTEGER NOT NULL,"
    "  cid INTEGER NOT NULL, device INTEGER NOT NULL, status INTEGER NOT NULL, updated INTEGER NOT NULL,"
    "  reply_to INTEGER NOT NULL, text BLOB NOT NULL, elements BLOB, attaches BLOB, forward BLOB,"
    "  PRIMARY KEY (chat, id)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS message_cid ON message (cid DESC, sender);"
    "CREATE INDEX IF NOT EXISTS message_removed ON message (chat, id, status) WHERE status = 2;";

static const char *message_schema =
    "CREATE TABLE IF NOT EXISTS message ("
    "  chat INTEGER NOT NULL, id INTEGER NOT NULL, sender INTEGER NOT NULL, body BLOB NOT NULL,"
    "  PRIMARY KEY (chat, id)) WITHOUT ROWID;";

static enum rows_kind kind;
static sqlite3_stmt *begin, *commit, *insert_message, *upsert_member, *set_head, *set_meta;
static sqlite3_stmt *insert_chat, *set_count, *set_big, *chat_by_pair, *chat_by_id, *head_of_chat, *members_of_chat;

static struct map pairs, groups, members;
static int64_t last_chat_key, last_id, last_cid;
static uint32_t last_serial;
static uint16_t counter;

// The batch: the rows that wait to be committed.
static bool is_open;
static int64_t ct, wall;
static struct message *messages;
static size_t message_count, message_capacity;
static struct member **dirty_members;
static size_t dirty_count, dirty_capacity;
static struct chat **touched;
static size_t touched_count, touched_capacity;

// MARK: - Opening

static void expect_pragma(const char *sql, const char *expected) {
    sqlite3_stmt *statement = prepare(sql);
    if (!step(statement) || strcmp((const char *)sqlite3_column_text(statement, 0), expected))
        die("%s is not %s", sql, expected);
    sqlite3_finalize(statement);
}

void rows_open(enum rows_kind asked, const char *file) {
    kind = asked;
    if (kind == ROWS_NONE) return;
    open_database(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    execute("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8000; PRAGMA temp_store = MEMORY;"
            "PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;");
    expect_pragma("PRAGMA journal_mode", "wal");
    expect_pragma("PRAGMA synchronous", "2");
    execute(kind == ROWS_FULL ? full_schema : message_schema);
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
    if (kind == ROWS_MESSAGE) {
        insert_message = prepare("INSERT INTO message (chat, id, sender, body) VALUES (?1, ?2, ?3, ?4)");
        return;
    }
    insert_message = prepare(
        "INSERT INTO message (chat, id, n, sender, cid, device, status, updated, reply_to, text, elements, attaches,"
        " forward) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
    upsert_member = prepare(
        "INSERT INTO member (user_id, chat, joined, read_time, read_n, ct, contact_ct, big)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT (user_id, chat) DO UPDATE SET"
        " read_time = excluded.read_time, read_n = excluded.read_n, ct = excluded.ct");
    set_head = prepare("UPDATE chat SET ct_head = ?2 WHERE id = ?1");
    set_meta = prepare("INSERT INTO meta (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v");
    insert_chat = prepare(
        "INSERT INTO chat (id, kind, low_user, high_user, owner, title, created, member_count, ct_head)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    set_count = prepare("UPDATE chat SET member_count = ?2 WHERE id = ?1");
    set_big = prepare("UPDATE member SET big = 1 WHERE chat = ?1");
    chat_by_pair = prepare("SELECT id FROM chat WHERE low_user = ?1 AND high_user = ?2");
    chat_by_id = prepare("SELECT ct_head FROM chat WHERE id = ?1");
    head_of_chat = prepare("SELECT id, n FROM message WHERE chat = ?1 ORDER BY id DESC LIMIT 1");
    members_of_chat = prepare(
        "SELECT user_id, joined, read_time, read_n, ct, contact_ct, big FROM member WHERE chat = ?1 ORDER BY user_id");
    sqlite3_stmt *last = prepare("SELECT max(id) FROM chat WHERE id > 0");
    if (step(last)) last_chat_key = number(last, 0);
    sqlite3_finalize(last);
    last = prepare("SELECT v FROM meta WHERE k = 'ct_lease'");
    if (step(last)) ct = number(last, 0) + 1;
    sqlite3_finalize(last);
}

// MARK: - Batches

static void open_batch(void) {
    if (is_open) return;
    is_open = true;
    wall = clock_ns(CLOCK_REALTIME) / 1000000;
    if (wall > ct) ct = wall;
    // A client's ids are times on its clock. So all new rows go to one end of the index.
    if (last_cid < wall) last_cid = wall;
    run(begin);
}

static void mark_dirty(struct member *member) {
    member->ct = ct;
    if (member->is_dirty) return;
    member->is_dirty = true;
    dirty_members = grown(dirty_members, dirty_count, &dirty_capacity, sizeof *dirty_members);
    dirty_members[dirty_count++] = member;
}

static void list_touched(struct chat *chat) {
    if (chat->is_listed) return;
    chat->is_listed = true;
    touched = grown(touched, touched_count, &touched_capacity, sizeof *touched);
    touched[touched_count++] = chat;
}

static int by_chat_and_id(const void *a, const void *b) {
    const struct message *x = a, *y = b;
    if (x->chat->key != y->chat->key) return x->chat->key < y->chat->key ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_user_and_chat(const void *a, const void *b) {
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
    if (x->user != y->user) return x->user < y->user ? -1 : 1;
    return (x->chat->key > y->chat->key) - (x->chat->key < y->chat->key);
}

static void write_messages(void) {
    qsort(messages, message_count, sizeof *messages, by_chat_and_id);
    for (size_t i = 0; i < message_count; i++) {
        const struct message *message = &messages[i];
        if (kind == ROWS_MESSAGE) {
            BIND(insert_message, message->chat->key, message->id, message->sender);
            sqlite3_bind_blob(insert_message, 4, message->body, (int)message->length, SQLITE_STATIC);
        } else {
            // The sender has one device, which has the sender's id. The status, the time of the
            // last change, and the answered message are absent.
            BIND(insert_message, message->chat->key, message->id, message->n, message->sender, message->cid,
                 message->sender, 0, 0, 0);
            sqlite3_bind_blob(insert_message, 10, message->body, (int)message->length, SQLITE_STATIC);
        }
        run(insert_message);
    }
}

static void write_members(void) {
    qsort(dirty_members, dirty_count, sizeof *dirty_members, by_user_and_chat);
    for (size_t i = 0; i < dirty_count; i++) {
        struct member *member = dirty_members[i];
        BIND(upsert_member, member->user, member->chat->key, member->joined, member->read_time, member->read_n,
             member->ct, member->contact_ct, member->is_big);
        run(upsert_member);
        member->is_dirty = false;
    }
}

static void write_chats(void) {
    for (size_t i = 0; i < touched_count; i++) {
        struct chat *chat = touched[i];
        if (chat->is_head_dirty) {
            BIND(set_head, chat->key, chat->ct_head);
            run(set_head);
        }
        if (chat->is_count_dirty) {
            BIND(set_count, chat->key, chat->member_count);
            run(set_count);
        }
        chat->is_head_dirty = chat->is_count_dirty = chat->is_listed = false;
    }
}

static void write_meta(const char *key, int64_t value) {
    sqlite3_bind_text(set_meta, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(set_meta, 2, value);
    run(set_meta);
}

void rows_commit(void) {
    if (!is_open) return;
    write_messages();
    if (kind == ROWS_FULL) {
        write_members();
        write_chats();
        write_meta("ct", ct);
        write_meta("ct_lease", ct > wall + LEASE_MS ? ct : wall + LEASE_MS);
    }
    run(commit);
    message_count = dirty_count = touched_count = 0;
    is_open = false;
}

void rows_close(void) {
    if (kind == ROWS_NONE) return;
    sqlite3_stmt *statement;
    while ((statement = sqlite3_next_stmt(db, NULL))) sqlite3_finalize(statement);
    if (sqlite3_close(db) != SQLITE_OK) die("close: %s", sqlite3_errmsg(db));
}

// MARK: - Chats

static struct chat *new_chat(int64_t key) {
    struct chat *chat = checked(calloc(1, sizeof *chat));
    chat->key = key;
    chat->serial = ++last_serial;
    return chat;
}

static void **member_place(const struct chat *chat, uint32_t user) {
    return map_place(&members, (uint64_t)chat->serial << 32 | user);
}

static struct member *add_member(struct chat *chat, uint32_t user) {
    struct member *member = checked(calloc(1, sizeof *member));
    *member = (struct member){.chat = chat, .user = user, .joined = ct, .ct = ct};
    *member_place(chat, user) = member;
    chat->members = grown(chat->members, chat->member_count, &chat->member_capacity, sizeof *chat->members);
    chat->members[chat->member_count++] = member;
    return member;
}

// Returns the chat that an earlier run has stored; NULL if there is no row for it.
static struct chat *load_chat(int64_t key) {
    BIND(chat_by_id, key);
    if (!step(chat_by_id)) return NULL;
    struct chat *chat = new_chat(key);
    chat->ct_head = number(chat_by_id, 0);
    sqlite3_reset(chat_by_id);
    BIND(head_of_chat, key);
    if (step(head_of_chat)) {
        chat->last_id = number(head_of_chat, 0);
        chat->last_n = number(head_of_chat, 1);
    }
    sqlite3_reset(head_of_chat);
    BIND(members_of_chat, key);
    while (step(members_of_chat)) {
        struct member *member = add_member(chat, (uint32_t)number(members_of_chat, 0));
        member->joined = number(members_of_chat, 1);
        member->read_time = number(members_of_chat, 2);
        member->read_n = number(members_of_chat, 3);
        member->ct = number(members_of_chat, 4);
        member->contact_ct = number(members_of_chat, 5);
        member->is_big = chat->is_big = number(members_of_chat, 6);
    }
    return chat;
}

static struct chat *create_pair(uint32_t low, uint32_t high, uint32_t owner) {
    open_batch();
    struct chat *chat = new_chat(++last_chat_key);
    BIND(insert_chat, chat->key, low == high ? KIND_SAVED : KIND_DIALOG, low, high, owner, 0, ct, low == high ? 1 : 2,
         ct);
    sqlite3_bind_null(insert_chat, 6);
    run(insert_chat);
    chat->ct_head = ct;
    add_member(chat, low);
    if (low != high) add_member(chat, high);
    for (size_t i = 0; i < chat->member_count; i++) {
        chat->members[i]->contact_ct = low == high ? 0 : ct;
        mark_dirty(chat->members[i]);
    }
    return chat;
}

struct chat *rows_pair(uint32_t a, uint32_t b) {
    if (kind == ROWS_NONE) return NULL;
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    uint64_t key = (uint64_t)low << 32 | high;
    void **place = map_place(&pairs, key);
    if (*place) return *place;
    if (kind == ROWS_MESSAGE) return *place = new_chat((int64_t)key);
    BIND(chat_by_pair, low, high);
    if (step(chat_by_pair)) {
        int64_t stored = number(chat_by_pair, 0);
        sqlite3_reset(chat_by_pair);
        return *place = load_chat(stored);
    }
    return *place = create_pair(low, high, a);
}

struct chat *rows_group(uint32_t group, uint32_t creator) {
    if (kind == ROWS_NONE) return NULL;
    void **place = map_place(&groups, group);
    if (*place) return *place;
    // The key of a group is negative, as in the server.
    int64_t key = -1 - (int64_t)group;
    if (kind == ROWS_MESSAGE) return *place = new_chat(key);
    if ((*place = load_chat(key))) return *place;
    open_batch();
    struct chat *chat = *place = new_chat(key);
    BIND(insert_chat, key, KIND_GROUP, 0, 0, creator, 0, ct, 0, ct);
    sqlite3_bind_null(insert_chat, 3);
    sqlite3_bind_null(insert_chat, 4);
    sqlite3_bind_blob(insert_chat, 6, "group", 5, SQLITE_STATIC);
    run(insert_chat);
    chat->ct_head = ct;
    return chat;
}

void rows_join(struct chat *group, uint32_t user) {
    if (kind != ROWS_FULL || *member_place(group, user)) return;
    open_batch();
    struct member *member = add_member(group, user);
    if (!group->is_big && group->member_count > FAN_OUT_MEMBERS) {
        // If a member's row waits for the write-back, it gets the flag in memory. A statement sets
        // the flag in the rows on disk.
        group->is_big = true;
        for (size_t i = 0; i < group->member_count; i++) group->members[i]->is_big = true;
        BIND(set_big, group->key);
        run(set_big);
    }
    member->is_big = group->is_big;
    group->is_count_dirty = true;
    list_touched(group);
    mark_dirty(member);
}

// MARK: - Messages

void rows_append(struct chat *chat, uint32_t sender, const void *body, size_t length) {
    if (kind == ROWS_NONE) return;
    open_batch();
    messages = grown(messages, message_count, &message_capacity, sizeof *messages);
    struct message *message = &messages[message_count++];
    *message = (struct message){.chat = chat, .sender = sender, .body = body, .length = length};
    if (kind == ROWS_MESSAGE) {
        message->id = last_id = last_id < ct << 16 ? ct << 16 : last_id + 1;
        return;
    }
    int64_t after_last = (chat->last_id >> 16) + 1, time = ct > after_last ? ct : after_last;
    message->id = chat->last_id = time << 16 | counter++;
    message->n = ++chat->last_n;
    message->cid = last_cid++;
    struct member *member = *member_place(chat, sender);
    if (!member) die("the sender %u is no member", sender);
    member->read_time = time;
    member->read_n = message->n;
    mark_dirty(member);
    if (chat->is_big) {
        chat->ct_head = ct;
        chat->is_head_dirty = true;
        list_touched(chat);
    } else {
        for (size_t i = 0; i < chat->member_count; i++) mark_dirty(chat->members[i]);
    }
}
