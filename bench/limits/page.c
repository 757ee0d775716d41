// The limit of a history page. Reads the rows that CHAT_HISTORY reads backward, and makes no reply.
// The statements are the same as in Sources/TambourStore, in the order of ChatsHandler.chatHistory.
#include "reading.h"

struct viewer {
    int64_t user, chat;
    int64_t low, high; // of a dialog; 0 in a group
};

static sqlite3_stmt *by_pair, *view, *backward, *by_id;

static void prepare_all(void) {
    by_pair = prepare("SELECT id FROM chat WHERE low_user = ?1 AND high_user = ?2");
    view = prepare("SELECT " VIEW_COLUMNS " FROM member m JOIN chat c ON c.id = m.chat"
                   " WHERE m.user_id = ?1 AND m.chat = ?2");
    backward = prepare("SELECT " MESSAGE_COLUMNS " FROM message m"
                       " WHERE m.chat = ?1 AND m.id <= ?3 AND m.id >= ?4 AND m.status <> 2 AND " NOT_HIDDEN
                       " ORDER BY m.id DESC LIMIT ?5");
    by_id = prepare("SELECT " MESSAGE_COLUMNS " FROM message m WHERE m.chat = ?1 AND m.id = ?2");
}

// Reads the page up to and including `pivot`. Then steps to one more row, to find out whether there
// are more messages.
static void read_page(const struct viewer *viewer, int64_t pivot, int64_t count) {
    begin_snapshot();
    if (viewer->low) {
        BIND(by_pair, viewer->low, viewer->high);
        read_rows(by_pair);
    }
    BIND(view, viewer->user, viewer->chat);
    read_rows(view);
    BIND(backward, viewer->chat, viewer->user, pivot | 0xffff, 0, count + 1);
    for (int64_t i = 0; step(backward); i++) {
        if (i == count) {
            sqlite3_reset(backward);
            break;
        }
        touch(backward);
        int64_t reply_to = number(backward, MESSAGE_REPLY_TO);
        if (!reply_to) continue;
        BIND(by_id, viewer->chat, reply_to);
        read_rows(by_id);
    }
    end_snapshot();
}

// Returns any member of the chat. It does not matter which one, because all members see the same
// messages.
static struct viewer find_viewer(int64_t chat) {
    struct viewer viewer = {.chat = chat};
    sqlite3_stmt *statement = prepare("SELECT low_user, high_user FROM chat WHERE id = ?1");
    BIND(statement, chat);
    if (!step(statement)) die("there is no chat %lld", (long long)chat);
    viewer.low = number(statement, 0);
    viewer.high = number(statement, 1);
    sqlite3_finalize(statement);
    statement = prepare("SELECT user_id FROM member WHERE chat = ?1 ORDER BY user_id LIMIT 1");
    BIND(statement, chat);
    viewer.user = step(statement) ? number(statement, 0) : 0;
    sqlite3_finalize(statement);
    return viewer;
}

static int64_t *read_pivots(const char *file, size_t *count) {
    FILE *stream = fopen(file, "r");
    if (!stream) die("cannot read %s", file);
    int64_t *pivots = NULL;
    size_t capacity = 0;
    char line[64];
    for (*count = 0; fgets(line, sizeof line, stream);) {
        line[strcspn(line, "\r\n")] = 0;
        if (!*line) continue;
        pivots = grown(pivots, *count, &capacity, sizeof *pivots);
        pivots[(*count)++] = parse_number(line);
    }
    fclose(stream);
    if (*count == 0) die("%s is empty", file);
    return pivots;
}

static uint64_t next_random(void) { // xorshift64: the same pages in every run
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

int main(int argc, char **argv) {
    const char *usage = "page --db FILE --chat KEY --pivots FILE [--count 50] [--repeat N]";
    const char *file = NULL, *chat = NULL, *pivot_file = NULL, *count_option = "50", *repeat_option = "1000";
    parse_options(argc, argv,
                  (struct option[]){{"--db", &file}, {"--chat", &chat}, {"--pivots", &pivot_file},
                                    {"--count", &count_option}, {"--repeat", &repeat_option}, {0}},
                  usage);
    if (!file || !chat || !pivot_file) die("usage: %s", usage);
    int64_t count = parse_number(count_option), repeat = parse_number(repeat_option);
    if (count <= 0 || repeat <= 0) die("--count and --repeat are above 0");
    size_t pivot_count;
    const int64_t *pivots = read_pivots(pivot_file, &pivot_count);

    open_store(file);
    prepare_all();
    struct viewer viewer = find_viewer(parse_number(chat));
    read_page(&viewer, pivots[0], count); // fills the caches
    tally.rows = tally.bytes = 0;
    int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int64_t i = 0; i < repeat; i++) read_page(&viewer, pivots[next_random() % pivot_count], count);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    printf("{\"what\":\"page\",\"pages_per_s\":%.0f,\"cpu_us\":%.2f,\"wall_us\":%.2f,\"rows\":%.1f,\"bytes\":%.0f}\n",
           repeat * 1e9 / wall, cpu / 1e3 / repeat, wall / 1e3 / repeat, (double)tally.rows / repeat,
           (double)tally.bytes / repeat);
    return tally.sum == 0; // no row has only zeros
}
