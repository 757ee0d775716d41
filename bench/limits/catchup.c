// The limit of catch-up. Reads the rows that a login with marks reads for one user, and makes no
// reply. The statements are the same as in Sources/TambourStore, in the order of LoginSync.login.
#include "reading.h"

enum { PRESENCE_WATCH = 40 }; // limit `presenceWatch`
static const int64_t PRESENCE_MS = 30LL * 86400000; // limit `presenceDays`

struct view {
    int64_t chat, read_time, read_n, floor;
    bool is_big;
};

static struct {
    sqlite3_stmt *session, *account, *partners, *contacts, *drafts, *left, *changed, *changed_big;
    sqlite3_stmt *head, *last_visible, *previous, *by_id, *marks, *removed_after, *hidden_after;
} statements;

static struct view *views;
static size_t view_count, view_capacity;

static void prepare_all(void) {
    statements.session = prepare("SELECT id, user_id, device, created, last_seen, client, info, address"
                                 " FROM session WHERE token_hash = ?1");
    statements.account = prepare("SELECT " ACCOUNT_COLUMNS " FROM account a WHERE a.id = ?1");
    statements.partners = prepare(
        "SELECT a.id, a.seen"
        " FROM (SELECT chat FROM member WHERE user_id = ?1 AND ct > ?3 ORDER BY ct DESC LIMIT ?2) AS recent"
        " JOIN chat c ON c.id = recent.chat JOIN account a ON a.id = c.low_user + c.high_user - ?1"
        " WHERE c.kind = 0 AND a.privacy % 2 = 0 AND NOT EXISTS ("
        "SELECT 1 FROM contact k WHERE k.owner = a.id AND k.user_id = ?1 AND k.blocked = 1)");
    statements.contacts = prepare(
        "SELECT " ACCOUNT_COLUMNS ", k.added, k.blocked, k.partner, k.first_name, k.last_name, k.ct,"
        " (SELECT r.added FROM contact r WHERE r.owner = k.user_id AND r.user_id = k.owner)"
        " FROM contact k JOIN account a ON a.id = k.user_id"
        " WHERE k.owner = ?1 AND k.ct > ?2 ORDER BY k.ct DESC, a.id");
    statements.drafts = prepare(
        "SELECT d.peer, d.ct, d.saved, d.text, d.elements, d.reply_to, COALESCE(c.created, 0)"
        " FROM draft d LEFT JOIN chat c ON c.low_user = CASE WHEN d.peer < d.user_id THEN d.peer ELSE d.user_id END"
        " AND c.high_user = CASE WHEN d.peer < d.user_id THEN d.user_id ELSE d.peer END"
        " WHERE d.user_id = ?1 AND d.ct > ?2 ORDER BY d.ct DESC, d.peer");
    statements.left = prepare("SELECT f.chat, f.owner, f.joined, f.ct, c.created"
                              " FROM former_member f JOIN chat c ON c.id = f.chat"
                              " WHERE f.user_id = ?1 AND f.ct > ?2 ORDER BY f.ct DESC, f.chat");
    statements.changed = prepare("SELECT " VIEW_COLUMNS " FROM member m JOIN chat c ON c.id = m.chat"
                                 " WHERE m.user_id = ?1 AND m.big = 0 AND m.ct > ?2 ORDER BY m.ct DESC, m.chat");
    statements.changed_big = prepare("SELECT " VIEW_COLUMNS " FROM member m JOIN chat c ON c.id = m.chat"
                                     " WHERE m.user_id = ?1 AND m.big = 1 AND (m.ct > ?2 OR c.ct_head > ?2)"
                                     " ORDER BY c.ct_head DESC, m.chat");
    statements.head = prepare("SELECT id, n FROM message WHERE chat = ?1 ORDER BY id DESC LIMIT 1");
    statements.last_visible = prepare("SELECT " MESSAGE_COLUMNS " FROM message m"
                                      " WHERE m.chat = ?1 AND m.id > ?3 AND m.status <> 2 AND " NOT_HIDDEN
                                      " ORDER BY m.id DESC LIMIT 1");
    statements.previous = prepare("SELECT id FROM message WHERE chat = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1");
    statements.by_id = prepare("SELECT " MESSAGE_COLUMNS " FROM message m WHERE m.chat = ?1 AND m.id = ?2");
    statements.marks = prepare("SELECT user_id, read_time FROM member WHERE chat = ?1 ORDER BY user_id");
    statements.removed_after = prepare("SELECT count(*) FROM message WHERE chat = ?1 AND status = 2 AND id > ?2");
    statements.hidden_after = prepare(
        "SELECT count(*) FROM message_hidden h JOIN message m ON m.chat = h.chat AND m.id = h.message"
        " WHERE h.user_id = ?1 AND h.chat = ?2 AND h.message > ?3 AND m.status <> 2");
}

static void read_views(sqlite3_stmt *statement, int64_t user, int64_t since) {
    BIND(statement, user, since);
    while (read_row(statement)) {
        views = grown(views, view_count, &view_capacity, sizeof *views);
        views[view_count++] = (struct view){
            .chat = number(statement, VIEW_CHAT),
            .read_time = number(statement, VIEW_READ_TIME),
            .read_n = number(statement, VIEW_READ_N),
            .floor = number(statement, VIEW_FLOOR),
            .is_big = number(statement, VIEW_BIG) != 0,
        };
    }
}

// Computes the number of unread messages from message numbers. Removed messages and hidden messages
// do not count.
static void read_unread(const struct view *view, int64_t user) {
    int64_t read = view->read_time << 16 | 0xffff;
    BIND(statements.removed_after, view->chat, read);
    read_rows(statements.removed_after);
    BIND(statements.hidden_after, user, view->chat, read);
    read_rows(statements.hidden_after);
}

static void read_last_message(const struct view *view, int64_t user) {
    BIND(statements.last_visible, view->chat, user, view->floor);
    if (!read_row(statements.last_visible)) return;
    int64_t id = number(statements.last_visible, MESSAGE_ID);
    int64_t reply_to = number(statements.last_visible, MESSAGE_REPLY_TO);
    sqlite3_reset(statements.last_visible);
    if (reply_to) {
        BIND(statements.by_id, view->chat, reply_to);
        read_rows(statements.by_id);
    }
    BIND(statements.previous, view->chat, id);
    read_rows(statements.previous);
}

static void read_chat(const struct view *view, int64_t user) {
    BIND(statements.head, view->chat);
    int64_t last_n = read_row(statements.head) ? number(statements.head, 1) : 0;
    sqlite3_reset(statements.head);
    if (last_n > 0) read_last_message(view, user);
    if (!view->is_big) {
        BIND(statements.marks, view->chat);
        read_rows(statements.marks);
    }
    if (last_n > view->read_n) read_unread(view, user);
}

// `token` is the hash of one of the user's login tokens. It is NULL for a login without a token.
static void read_login(int64_t user, int64_t since, sqlite3_value *token) {
    begin_snapshot();
    if (token) {
        sqlite3_bind_value(statements.session, 1, token);
        read_rows(statements.session);
    }
    BIND(statements.account, user);
    read_rows(statements.account);
    BIND(statements.partners, user, PRESENCE_WATCH, since - PRESENCE_MS);
    read_rows(statements.partners);
    BIND(statements.contacts, user, since);
    read_rows(statements.contacts);
    BIND(statements.drafts, user, since);
    read_rows(statements.drafts);
    BIND(statements.left, user, since);
    read_rows(statements.left);
    view_count = 0;
    read_views(statements.changed, user, since);
    read_views(statements.changed_big, user, since);
    for (size_t i = 0; i < view_count; i++) read_chat(&views[i], user);
    end_snapshot();
}

static sqlite3_value *token_of(int64_t user) {
    sqlite3_stmt *statement = prepare("SELECT token_hash FROM session WHERE user_id = ?1 LIMIT 1");
    BIND(statement, user);
    sqlite3_value *token = step(statement) ? sqlite3_value_dup(sqlite3_column_value(statement, 0)) : NULL;
    sqlite3_finalize(statement);
    return token;
}

int main(int argc, char **argv) {
    const char *usage = "catchup --db FILE --user ID --since CT [--repeat N]";
    const char *file = NULL, *user_option = NULL, *since_option = NULL, *repeat_option = "1000";
    parse_options(argc, argv,
                  (struct option[]){{"--db", &file}, {"--user", &user_option}, {"--since", &since_option},
                                    {"--repeat", &repeat_option}, {0}},
                  usage);
    if (!file || !user_option || !since_option) die("usage: %s", usage);
    int64_t user = parse_number(user_option), since = parse_number(since_option), repeat = parse_number(repeat_option);
    if (since <= 0 || repeat <= 0) die("--since and --repeat are above 0: a login without marks is another matter");
    open_store(file);
    prepare_all();
    sqlite3_value *token = token_of(user);
    read_login(user, since, token); // fills the caches
    tally.rows = tally.bytes = 0;
    int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int64_t i = 0; i < repeat; i++) read_login(user, since, token);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    printf("{\"what\":\"catchup\",\"chats\":%zu,\"rows\":%lld,\"bytes\":%lld,\"cpu_us\":%.2f,\"wall_us\":%.2f}\n",
           view_count, (long long)(tally.rows / repeat), (long long)(tally.bytes / repeat), cpu / 1e3 / repeat,
           wall / 1e3 / repeat);
    return tally.sum == 0; // the login always reads an account
}
