// The limit of sending. Only forwards message bodies between connections, after a group commit.
//
// A frame is: u32 length of the rest, u8 type, u32 `a`, body. Numbers are big-endian.
#define _GNU_SOURCE
#include "common.h"
#include "map.h"
#include "rows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO = 0, DIRECT = 1, GROUP = 2, JOIN = 3, ACK = 4 };
enum {
    HEADER = 9,              // of a frame
    MAX_FRAME = 1 << 20,     // a longer frame ends the connection
    READ_AT_ONCE = 64 << 10, // per connection and round, so that no connection starves another
    CHUNK = 1 << 20,
    FIRST_OUTPUT = 1 << 10,
    MAX_OUTPUT = 16 << 20, // a reader with more waiting output is disconnected
    EVENTS = 1024,
    MAX_USER = 0x7fffffff,
};

struct connection {
    int fd;
    uint32_t user;
    uint32_t sends; // the number of its last message
    bool is_known, is_blocked, is_listed, is_doomed;
    // The output that the relay has not sent yet, or NULL.
    char *out;
    uint32_t out_start, out_end, out_capacity;
    // The received part of an incomplete frame; usually NULL.
    char *rest;
    uint32_t rest_length;
    struct membership *memberships;
    size_t membership_count, membership_capacity;
};

// A connected member of a group. `membership` is the index of this group in the connection's
// memberships.
struct seat {
    struct connection *connection;
    size_t membership;
};

struct membership {
    struct group *group;
    size_t seat;
};

struct group {
    struct chat *chat;
    struct seat *seats;
    size_t seat_count, seat_capacity;
};

// In a round, the relay reads into chunks. The chunks stay until the round ends. So the relay need
// not copy a body on its way into the store.
struct chunk {
    struct chunk *older;
    size_t used, capacity;
    char bytes[];
};

struct list {
    struct connection **items;
    size_t count, capacity;
};

static int epoll_fd, listen_fd, signal_fd;
static struct map users;  // the connection of each user; NULL after it closes
static struct map groups;
static struct chunk *chunks;
static struct list ready;  // connections with output
static struct list doomed; // connections to close at the end of the round
static uint64_t round_sends, total_sends, total_rounds, largest_round;

// MARK: - Bytes

static uint32_t load(const char *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return ntohl(value);
}

static void store(char *bytes, uint32_t value) {
    value = htonl(value);
    memcpy(bytes, &value, sizeof value);
}

static void push(struct list *list, struct connection *connection) {
    list->items = grown(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = connection;
}

// Returns `size` bytes. They stay in their place until the end of the round.
static char *reserve(size_t size) {
    if (!chunks || chunks->capacity - chunks->used < size) {
        size_t capacity = size > CHUNK ? size : CHUNK;
        struct chunk *chunk = checked(malloc(sizeof *chunk + capacity));
        *chunk = (struct chunk){.older = chunks, .capacity = capacity};
        chunks = chunk;
    }
    return chunks->bytes + chunks->used;
}

static void release_chunks(void) {
    while (chunks && chunks->older) {
        struct chunk *older = chunks->older;
        free(chunks);
        chunks = older;
    }
    if (chunks) chunks->used = 0;
}

// MARK: - Output

static void doom(struct connection *connection) {
    if (connection->is_doomed) return;
    connection->is_doomed = true;
    push(&doomed, connection);
}

static void list_ready(struct connection *connection) {
    if (connection->is_listed) return;
    connection->is_listed = true;
    push(&ready, connection);
}

static void make_room(struct connection *connection, size_t length) {
    uint32_t waiting = connection->out_end - connection->out_start;
    if (connection->out_start > 0) {
        memmove(connection->out, connection->out + connection->out_start, waiting);
        connection->out_start = 0;
        connection->out_end = waiting;
    }
    uint32_t capacity = connection->out_capacity ? connection->out_capacity : FIRST_OUTPUT;
    while (capacity < waiting + length) capacity *= 2;
    if (capacity == connection->out_capacity) return;
    connection->out = checked(realloc(connection->out, capacity));
    connection->out_capacity = capacity;
}

// Appends bytes to the output of a connection. The relay sends the output at the end of the round.
static void put(struct connection *connection, const char *bytes, size_t length) {
    if (connection->is_doomed) return;
    if (connection->out_end - connection->out_start + length > MAX_OUTPUT) {
        doom(connection);
        return;
    }
    if (connection->out_capacity - connection->out_end < length) make_room(connection, length);
    memcpy(connection->out + connection->out_end, bytes, length);
    connection->out_end += length;
    list_ready(connection);
}

static void put_header(struct connection *connection, uint8_t type, uint32_t a) {
    char frame[HEADER];
    store(frame, HEADER - 4);
    frame[4] = (char)type;
    store(frame + 5, a);
    put(connection, frame, sizeof frame);
}

static void watch_output(struct connection *connection, bool is_blocked) {
    if (connection->is_blocked == is_blocked) return;
    connection->is_blocked = is_blocked;
    struct epoll_event event = {.events = EPOLLIN | (is_blocked ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
}

// Sends once. If the socket does not accept all bytes, the rest waits until the socket is writable.
static void flush(struct connection *connection) {
    size_t waiting = connection->out_end - connection->out_start;
    if (connection->is_blocked || waiting == 0) return;
    ssize_t sent = send(connection->fd, connection->out + connection->out_start, waiting, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        doom(connection);
        return;
    }
    if (sent > 0) connection->out_start += sent;
    if (connection->out_start < connection->out_end) {
        watch_output(connection, true);
        return;
    }
    free(connection->out);
    connection->out = NULL;
    connection->out_start = connection->out_end = connection->out_capacity = 0;
}

// MARK: - Connections

static void accept_all(void) {
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN) return;
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
        if (fd < 0) die("accept: %s", strerror(errno));
        struct connection *connection = checked(calloc(1, sizeof *connection));
        connection->fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl: %s", strerror(errno));
    }
}

// Removes a member from a group. The last seat of the group moves into the freed seat.
static void leave(const struct membership *membership) {
    struct group *group = membership->group;
    struct seat last = group->seats[--group->seat_count];
    group->seats[membership->seat] = last;
    last.connection->memberships[last.membership].seat = membership->seat;
}

static void close_connection(struct connection *connection) {
    for (size_t i = 0; i < connection->membership_count; i++) leave(&connection->memberships[i]);
    if (connection->is_known) {
        void **place = map_place(&users, connection->user);
        if (*place == connection) *place = NULL;
    }
    close(connection->fd);
    free(connection->out);
    free(connection->rest);
    free(connection->memberships);
    free(connection);
}

static bool is_member(const struct connection *connection, const struct group *group) {
    for (size_t i = 0; i < connection->membership_count; i++) {
        if (connection->memberships[i].group == group) return true;
    }
    return false;
}

// MARK: - Frames

static void hello(struct connection *connection, uint32_t user) {
    if (connection->is_known || user > MAX_USER) {
        doom(connection);
        return;
    }
    connection->user = user;
    connection->is_known = true;
    *map_place(&users, user) = connection;
    put_header(connection, HELLO, user);
}

static void join(struct connection *connection, uint32_t number) {
    void **place = map_place(&groups, number);
    if (!*place) *place = checked(calloc(1, sizeof(struct group)));
    struct group *group = *place;
    if (!group->chat) group->chat = rows_group(number, connection->user);
    if (!is_member(connection, group)) {
        rows_join(group->chat, connection->user);
        group->seats = grown(group->seats, group->seat_count, &group->seat_capacity, sizeof *group->seats);
        connection->memberships = grown(connection->memberships, connection->membership_count,
                                        &connection->membership_capacity, sizeof *connection->memberships);
        group->seats[group->seat_count] = (struct seat){connection, connection->membership_count};
        connection->memberships[connection->membership_count++] = (struct membership){group, group->seat_count++};
    }
    put_header(connection, JOIN, number);
}

static void acknowledge(struct connection *connection) {
    round_sends++;
    put_header(connection, ACK, ++connection->sends);
}

// Forwards the received frame to a user. Changes only the number in the frame.
static void send_direct(struct connection *sender, char *frame, size_t length) {
    uint32_t user = load(frame + 5);
    if (user > MAX_USER) {
        doom(sender);
        return;
    }
    rows_append(rows_pair(sender->user, user), sender->user, frame + HEADER, length - HEADER);
    acknowledge(sender);
    struct connection *receiver = map_get(&users, user);
    if (!receiver || receiver == sender) return;
    store(frame + 5, sender->user);
    put(receiver, frame, length);
}

static void send_to_group(struct connection *sender, const char *frame, size_t length) {
    const struct group *group = map_get(&groups, load(frame + 5));
    if (!group || !is_member(sender, group)) {
        doom(sender);
        return;
    }
    rows_append(group->chat, sender->user, frame + HEADER, length - HEADER);
    acknowledge(sender);
    for (size_t i = 0; i < group->seat_count; i++) {
        if (group->seats[i].connection != sender) put(group->seats[i].connection, frame, length);
    }
}

static void take_frame(struct connection *connection, char *frame, size_t length) {
    uint8_t type = (uint8_t)frame[4];
    if (type == HELLO) {
        hello(connection, load(frame + 5));
    } else if (!connection->is_known) {
        doom(connection);
    } else if (type == DIRECT) {
        send_direct(connection, frame, length);
    } else if (type == GROUP) {
        send_to_group(connection, frame, length);
    } else if (type == JOIN) {
        join(connection, load(frame + 5));
    } else {
        doom(connection);
    }
}

// Handles the complete frames. Returns their total size in bytes.
static size_t take_frames(struct connection *connection, char *bytes, size_t length) {
    size_t taken = 0;
    while (length - taken >= HEADER && !connection->is_doomed) {
        size_t frame = 4 + (size_t)load(bytes + taken);
        if (frame < HEADER || frame > MAX_FRAME) {
            doom(connection);
        } else if (length - taken < frame) {
            break;
        } else {
            take_frame(connection, bytes + taken, frame);
            taken += frame;
        }
    }
    return taken;
}

static void receive(struct connection *connection) {
    size_t rest = connection->rest_length;
    char *bytes = reserve(rest + READ_AT_ONCE);
    ssize_t received = read(connection->fd, bytes + rest, READ_AT_ONCE);
    if (received < 0 && errno == EAGAIN) return;
    if (received <= 0) {
        doom(connection);
        return;
    }
    if (rest) memcpy(bytes, connection->rest, rest);
    free(connection->rest);
    connection->rest = NULL;
    connection->rest_length = 0;
    size_t length = rest + (size_t)received;
    chunks->used += length;
    size_t taken = take_frames(connection, bytes, length);
    if (taken == length || connection->is_doomed) return;
    connection->rest_length = length - taken;
    connection->rest = checked(malloc(connection->rest_length));
    memcpy(connection->rest, bytes + taken, connection->rest_length);
}

// MARK: - Rounds

// The relay sends no message before the commit. After the commit, it sends all messages.
static void end_round(void) {
    rows_commit();
    for (size_t i = 0; i < ready.count; i++) {
        ready.items[i]->is_listed = false;
        if (!ready.items[i]->is_doomed) flush(ready.items[i]);
    }
    ready.count = 0;
    for (size_t i = 0; i < doomed.count; i++) close_connection(doomed.items[i]);
    doomed.count = 0;
    release_chunks();
    total_sends += round_sends;
    if (round_sends) total_rounds++;
    if (round_sends > largest_round) largest_round = round_sends;
    round_sends = 0;
}

static void serve(void) {
    struct epoll_event events[EVENTS];
    for (bool is_stopping = false; !is_stopping;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &listen_fd) {
                accept_all();
            } else if (events[i].data.ptr == &signal_fd) {
                is_stopping = true;
            } else {
                struct connection *connection = events[i].data.ptr;
                if (connection->is_doomed) continue;
                // The output of this connection may already contain messages of this round. So send
                // it at the end of the round, too.
                if (events[i].events & EPOLLOUT) {
                    watch_output(connection, false);
                    list_ready(connection);
                }
                if (events[i].events & ~EPOLLOUT) receive(connection);
            }
        }
        end_round();
    }
}

// MARK: - Start

static void watch(int fd, void *mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl: %s", strerror(errno));
}

// Listens on HOST:PORT, which must both be numeric. Prints the address.
static void listen_on(const char *address) {
    char host[INET_ADDRSTRLEN];
    const char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof host) die("not HOST:PORT: %s", address);
    memcpy(host, address, colon - address);
    host[colon - address] = 0;
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)parse_number(colon + 1))};
    if (inet_pton(AF_INET, host, &name.sin_addr) != 1) die("not an IPv4 address: %s", host);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // On Linux, accepted connections inherit this option.
    setsockopt(listen_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    socklen_t length = sizeof name;
    if (bind(listen_fd, (struct sockaddr *)&name, length) || listen(listen_fd, SOMAXCONN)
        || getsockname(listen_fd, (struct sockaddr *)&name, &length))
        die("%s: %s", address, strerror(errno));
    printf("listening tcp %s:%d\n", host, ntohs(name.sin_port));
    fflush(stdout);
}

static void catch_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
}

static void raise_descriptor_limit(void) {
    struct rlimit limit, wanted = {1 << 17, 1 << 17};
    if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) return; // this step needs privileges
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static enum rows_kind parse_rows(const char *name) {
    if (!strcmp(name, "none")) return ROWS_NONE;
    if (!strcmp(name, "message")) return ROWS_MESSAGE;
    if (!strcmp(name, "full")) return ROWS_FULL;
    die("--rows is none, message or full, not %s", name);
}

int main(int argc, char **argv) {
    const char *usage = "relay --listen HOST:PORT --rows none|message|full [--db FILE]";
    const char *address = NULL, *rows = NULL, *file = NULL;
    parse_options(argc, argv, (struct option[]){{"--listen", &address}, {"--rows", &rows}, {"--db", &file}, {0}},
                  usage);
    if (!address || !rows || (!file && strcmp(rows, "none"))) die("usage: %s", usage);
    catch_signals();
    raise_descriptor_limit();
    rows_open(parse_rows(rows), file);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    listen_on(address);
    watch(listen_fd, &listen_fd);
    watch(signal_fd, &signal_fd);
    serve();
    rows_close();
    fprintf(stderr, "{\"what\":\"relay\",\"rows\":\"%s\",\"messages\":%llu,\"rounds\":%llu,\"largest\":%llu}\n", rows,
            (unsigned long long)total_sends, (unsigned long long)total_rounds, (unsigned long long)largest_round);
}
