// Simulates a power cut for one program. Data that it wrote but did not sync is lost, torn or out
// of order.
//
// The layer is preloaded (LD_PRELOAD) into the real server or any other dynamically linked program.
// It sees every call that changes a file below one directory, and remembers for each file what a
// sync has made durable. It ignores reads, because the files contain what the program has written.
// At the cut, it takes back changes that no sync has covered, as the seed decides, and kills the
// process. The disk is then in a state in which a power failure at that moment could have left it.
//
// Environment (the layer removes it at the start, so that child processes run without the layer):
//   TAMBOUR_POWERCUT_DIR      the directory; without it, the layer is inactive
//   TAMBOUR_POWERCUT_PROGRAM  if set: the layer is active only in a program of this name; another
//                             program, such as a shell, passes the environment on unchanged
//   TAMBOUR_POWERCUT_SEED     a number; the same calls in the same order lose the same bytes
//   TAMBOUR_POWERCUT_AFTER    if set: cut at the operation of this number, counted from 1
//   TAMBOUR_POWERCUT_POLICY   drop, prefix, blocks, sectors or keep; without it, the seed chooses
//                             one of the first four
//   TAMBOUR_POWERCUT_SYNC     if 1: syncs also wait for the real disk, which takes longer and
//                             changes nothing else
// SIGUSR2 cuts at once. The process ends by SIGKILL; one line on stderr says what was lost. From
// the moment of the cut, no thread writes another byte, not even to a socket: a client has received
// only what the program sent before the cut.
//
// What may be lost:
//   - Data: blocks of 4,096 bytes written to a file since its last sync. `drop` loses all of these
//     blocks, `prefix` those written after some moment, `blocks` any of them, and `sectors` any 512
//     bytes of any of them (torn writes). A lost block reads as it did at the last sync, or as
//     zeros if it did not exist. The file's length is the old one or the new one.
//   - Names: creating, removing and renaming become durable in order, when the DIRECTORY is synced.
//     A cut loses all such changes after some moment. (Many file systems lose less. The layer
//     treats mkdir, link and symlink as durable at once.)
//   - `*-shm` files, always: SQLite maps them, never syncs them, and rebuilds them.
// `keep` loses only the `*-shm` files, so it equals kill -9.
//
// The layer does not see io_uring, nor the writes of stdio. It ends the program with a message when
// the program uses a call that it cannot follow for a file below the directory: a writable shared
// map, fopen for writing, sendfile or a similar call. Otherwise a test might pass only because the
// layer missed a write.
//
//   cc -shared -fPIC -O2 -o powercut.so powercut.c -ldl -lpthread

#define _GNU_SOURCE
// This file defines both the plain and the 64-bit names, so neither may be a macro for the other.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BLOCK = 4096, SECTOR = 512, MAX_FD = 1 << 20 };

// The real function of this name, looked up once.
#define REAL(name)                                                          \
    ({                                                                      \
        static __typeof__(&name) found;                                     \
        if (!found) found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);     \
        found;                                                              \
    })

// The content of a block at the file's last sync, saved before the first write to the block.
struct block {
    uint64_t last_write;  // the last operation that changed the block
    unsigned char old[BLOCK];
};

// A file or directory below `root`, identified by device and inode.
struct file {
    struct file *next;
    dev_t device;
    ino_t inode;
    bool is_directory;
    int keeper;           // the layer's own descriptor, -1 until needed. Never closed: closing any
                          // descriptor of a file drops SQLite's locks on it.
    off_t durable_size;   // at the last sync
    uint64_t shortened;   // the last operation that shortened the file
    struct block **blocks;
    size_t block_capacity;
    size_t *dirty;        // the indexes of the used entries of `blocks`
    size_t dirty_count, dirty_capacity;
};

// A change of a name that no sync of its directory has covered yet.
struct name_change {
    enum { CREATED, REMOVED, RENAMED } kind;
    char *path;           // the created or removed name, or the new one
    char *from;           // RENAMED: the old name
    char *saved;          // REMOVED, or RENAMED over a file: another link to what was there
};

enum policy { DROP, PREFIX, BLOCKS, SECTORS, KEEP };
static const char *const policy_names[] = {"drop", "prefix", "blocks", "sectors", "keep"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *root;                       // absolute, no slash at the end; NULL: inactive
static size_t root_length;
static char *attic;                      // holds links to removed files
static struct file *files;
static struct file *table[MAX_FD];       // by descriptor
static struct name_change *changes;
static size_t change_count, change_capacity, saved_count;
static uint64_t operations, cut_at;
static uint64_t seed, random_state;
static enum policy policy;
static bool real_sync;
static volatile bool cutting;
static pthread_t cutter;
static pid_t own_pid;
static sem_t signalled;

// MARK: - Helpers

static void say(const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 1) length = sizeof line - 1;
    if (REAL(write)(STDERR_FILENO, line, length) < 0) return;
}

static void __attribute__((noreturn)) refuse(const char *what) {
    say("powercut: cannot follow %s; the test would prove nothing\n", what);
    abort();
}

static void *need(void *memory) {
    if (!memory) refuse("without memory");
    return memory;
}

static uint64_t next_random(void) {  // splitmix64
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Blocks a thread for good once the cut has begun, so that nothing more leaves the process.
static void stand_still_after_the_cut(void) {
    while (cutting && !pthread_equal(pthread_self(), cutter)) pause();
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

// Returns the absolute path if it is the directory or below it, else NULL. The last component need
// not exist; if it is a symlink, it is not followed.
static char *path_inside(int directory, const char *path) {
    if (!root || !path || !*path) return NULL;
    char joined[PATH_MAX], parent[PATH_MAX], result[2 * PATH_MAX];
    if (path[0] == '/' || directory == AT_FDCWD) {
        if (snprintf(joined, sizeof joined, "%s", path) >= (int)sizeof joined) return NULL;
    } else {
        char link[64], base[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length < 0) return NULL;
        base[length] = 0;
        if (snprintf(joined, sizeof joined, "%s/%s", base, path) >= (int)sizeof joined) return NULL;
    }
    if (realpath(joined, parent) && !strcmp(parent, root)) return strdup(root);
    char *slash = strrchr(joined, '/');
    const char *name = slash ? slash + 1 : joined;
    if (slash == joined) {
        strcpy(parent, "/");
    } else {
        if (slash) *slash = 0;
        if (!realpath(slash ? joined : ".", parent)) return NULL;
    }
    snprintf(result, sizeof result, "%s/%s", strcmp(parent, "/") ? parent : "", name);
    if (strncmp(result, root, root_length) || result[root_length] != '/') return NULL;
    return strdup(result);
}

static struct file *file_at(int fd) {
    return fd >= 0 && fd < MAX_FD ? __atomic_load_n(&table[fd], __ATOMIC_ACQUIRE) : NULL;
}

static void set_file_at(int fd, struct file *file) {
    if (fd >= MAX_FD) refuse("a descriptor above its table");
    __atomic_store_n(&table[fd], file, __ATOMIC_RELEASE);
}

// MARK: - What a file held at its last sync

static off_t size_of(int fd) {
    struct stat status;
    return fstat(fd, &status) ? 0 : status.st_size;
}

static void forget_blocks(struct file *file) {
    for (size_t i = 0; i < file->dirty_count; i++) {
        free(file->blocks[file->dirty[i]]);
        file->blocks[file->dirty[i]] = NULL;
    }
    file->dirty_count = 0;
}

static struct file *known_file(const struct stat *status, bool is_new) {
    for (struct file *file = files; file; file = file->next) {
        if (file->device != status->st_dev || file->inode != status->st_ino) continue;
        if (is_new) {  // a new file has got the inode of a removed one
            forget_blocks(file);
            file->durable_size = 0;
            file->keeper = -1;
        }
        return file;
    }
    struct file *file = need(calloc(1, sizeof *file));
    file->device = status->st_dev;
    file->inode = status->st_ino;
    file->is_directory = S_ISDIR(status->st_mode);
    file->keeper = -1;
    file->durable_size = is_new ? 0 : status->st_size;
    file->next = files;
    files = file;
    return file;
}

static int keeper_of(struct file *file, int fd) {
    if (file->keeper < 0) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        file->keeper = REAL(open)(link, O_RDWR | O_CLOEXEC);
        if (file->keeper < 0) refuse("a file it cannot open for itself");
    }
    return file->keeper;
}

// Saves the content that these bytes had at the last sync. Called before the bytes change.
static void remember(struct file *file, int fd, off_t offset, off_t length) {
    if (length <= 0) return;
    int keeper = keeper_of(file, fd);
    size_t first = offset / BLOCK, last = (offset + length - 1) / BLOCK;
    if (last >= file->block_capacity) {
        size_t capacity = (last + 1) * 2;
        file->blocks = need(realloc(file->blocks, capacity * sizeof *file->blocks));
        memset(file->blocks + file->block_capacity, 0,
               (capacity - file->block_capacity) * sizeof *file->blocks);
        file->block_capacity = capacity;
    }
    for (size_t i = first; i <= last; i++) {
        if (!file->blocks[i]) {
            struct block *block = need(calloc(1, sizeof *block));
            off_t start = (off_t)i * BLOCK, durable = file->durable_size - start;
            if (durable > BLOCK) durable = BLOCK;
            if (durable > 0 && pread(keeper, block->old, durable, start) < 0)
                refuse("a file it cannot read");
            file->blocks[i] = block;
            if (file->dirty_count == file->dirty_capacity) {
                file->dirty_capacity = file->dirty_capacity ? file->dirty_capacity * 2 : 64;
                file->dirty =
                    need(realloc(file->dirty, file->dirty_capacity * sizeof *file->dirty));
            }
            file->dirty[file->dirty_count++] = i;
        }
        file->blocks[i]->last_write = operations;
    }
}

static void make_durable(struct file *file, int fd) {
    forget_blocks(file);
    file->durable_size = size_of(fd);
}

// MARK: - Names

static struct name_change *add_change(int kind, const char *path) {
    if (change_count == change_capacity) {
        change_capacity = change_capacity ? change_capacity * 2 : 16;
        changes = need(realloc(changes, change_capacity * sizeof *changes));
    }
    struct name_change *change = &changes[change_count++];
    memset(change, 0, sizeof *change);
    change->kind = kind;
    change->path = need(strdup(path));
    return change;
}

// Links a file that is about to lose its name into the attic, and returns the new name.
static char *save(const char *path) {
    mkdir(attic, 0700);
    char *saved = NULL;
    if (asprintf(&saved, "%s/%zu", attic, saved_count++) < 0) refuse("without memory");
    if (link(path, saved)) refuse("the removal of a file it cannot link");
    return saved;
}

static void free_change(struct name_change *change) {
    if (change->saved) {
        REAL(unlink)(change->saved);
        free(change->saved);
    }
    free(change->from);
    free(change->path);
}

// Makes all changes of names in this directory durable.
static void make_names_durable(int fd) {
    struct stat synced, status;
    if (fstat(fd, &synced)) return;
    size_t kept = 0;
    for (size_t i = 0; i < change_count; i++) {
        char parent[PATH_MAX];
        snprintf(parent, sizeof parent, "%s", changes[i].path);
        *strrchr(parent, '/') = 0;
        bool covered = !stat(parent, &status) && status.st_ino == synced.st_ino
                       && status.st_dev == synced.st_dev;
        if (covered) free_change(&changes[i]);
        else changes[kept++] = changes[i];
    }
    change_count = kept;
}

// MARK: - The cut

static bool block_survives(const struct block *block, uint64_t moment) {
    switch (policy) {
    case DROP: return false;
    case KEEP: return true;
    case PREFIX: return block->last_write <= moment;
    default: return next_random() & 1;
    }
}

static void cut_file(struct file *file, uint64_t moment, size_t *kept, size_t *lost, size_t *torn) {
    if (file->is_directory || file->keeper < 0) return;
    int fd = file->keeper;
    off_t now = size_of(fd), size = now;
    if (now != file->durable_size) {
        bool survives = policy == KEEP || (policy != DROP && (next_random() & 1));
        if (policy == PREFIX && now < file->durable_size) survives = file->shortened <= moment;
        if (!survives) size = file->durable_size;
        if (policy == PREFIX && now > file->durable_size) {
            // The file keeps the length that it had after its last surviving block.
            size = file->durable_size;
            for (size_t i = 0; i < file->dirty_count; i++) {
                off_t end = (off_t)(file->dirty[i] + 1) * BLOCK;
                if (end > now) end = now;
                if (end > size && file->blocks[file->dirty[i]]->last_write <= moment) size = end;
            }
        }
    }
    // If a truncation is taken back, all later writes are lost, too.
    bool lose_all = size > now;
    for (size_t i = 0; i < file->dirty_count; i++) {
        size_t index = file->dirty[i];
        struct block *block = file->blocks[index];
        off_t start = (off_t)index * BLOCK;
        bool survives = !lose_all && block_survives(block, moment);
        if (survives && policy != SECTORS) {
            (*kept)++;
            continue;
        }
        int lost_sectors = 0;
        for (int offset = 0; offset < BLOCK; offset += SECTOR) {
            // SECTORS: a surviving block is whole; any other block is torn.
            if (!lose_all && policy == SECTORS && (survives || (next_random() & 1))) continue;
            lost_sectors++;
            off_t length = size - (start + offset);
            if (length > SECTOR) length = SECTOR;
            if (length > 0
                && REAL(pwrite)(fd, block->old + offset, length, start + offset) != length)
                refuse("a file it cannot write");
        }
        if (lost_sectors == 0) (*kept)++;
        else if (lost_sectors == BLOCK / SECTOR) (*lost)++;
        else (*torn)++;
    }
    if (size != now && REAL(ftruncate)(fd, size)) refuse("a file it cannot cut to length");
}

static void undo(struct name_change *change) {
    switch (change->kind) {
    case CREATED:
        REAL(unlink)(change->path);
        break;
    case REMOVED:
        if (link(change->saved, change->path)) refuse("a removed file it cannot bring back");
        break;
    case RENAMED:
        REAL(rename)(change->path, change->from);
        if (change->saved && link(change->saved, change->path))
            refuse("a replaced file it cannot bring back");
        break;
    }
}

static void remove_matching(const char *directory, const char *end) {
    DIR *listing = opendir(directory);
    if (!listing) return;
    struct dirent *entry;
    while ((entry = readdir(listing))) {
        char path[PATH_MAX];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat status;
        if (lstat(path, &status)) continue;
        if (S_ISDIR(status.st_mode)) remove_matching(path, end);
        else if (ends_with(entry->d_name, end)) REAL(unlink)(path);
    }
    closedir(listing);
}

// The caller holds the lock, so no other call is in progress.
static void __attribute__((noreturn)) cut(void) {
    cutter = pthread_self();
    cutting = true;
    random_state = seed;
    uint64_t choice = next_random();
    if ((int)policy < 0) policy = choice % 4;

    // Choose a moment among the unsynced writes. Any other moment would keep all of these writes or
    // none.
    uint64_t oldest = operations;
    for (struct file *file = files; file; file = file->next)
        for (size_t i = 0; i < file->dirty_count; i++) {
            uint64_t write = file->blocks[file->dirty[i]]->last_write;
            if (write < oldest) oldest = write;
        }
    uint64_t moment = oldest + next_random() % (operations - oldest + 1);
    size_t kept = 0, lost = 0, torn = 0;
    for (struct file *file = files; file; file = file->next)
        cut_file(file, moment, &kept, &lost, &torn);

    size_t durable = policy == DROP   ? 0
                     : policy == KEEP ? change_count
                                      : next_random() % (change_count + 1);
    for (size_t i = change_count; i > durable; i--) undo(&changes[i - 1]);
    remove_matching(root, "-shm");
    remove_matching(attic, "");
    rmdir(attic);
    say("powercut: operation %llu, seed %llu, %s: blocks kept %zu, lost %zu, torn %zu; "
        "names kept %zu, lost %zu\n",
        (unsigned long long)operations, (unsigned long long)seed, policy_names[policy], kept, lost,
        torn, durable, change_count - durable);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// Begins an operation that changes something; only one runs at a time.
static void enter(void) {
    stand_still_after_the_cut();
    pthread_mutex_lock(&lock);
    operations++;
}

// Ends the operation. If the cut is set to this operation's number, it happens here: after the
// change and before any later sync.
static void leave(void) {
    int error = errno;
    if (cut_at && operations >= cut_at) cut();
    pthread_mutex_unlock(&lock);
    errno = error;
}

static void note_signal(int number) {
    (void)number;
    int error = errno;
    sem_post(&signalled);
    errno = error;
}

// Runs on a separate thread, the only one that does not block SIGUSR2. A thread of the program that
// waits for signals with an empty mask may receive SIGUSR2, too. In either case the handler only
// wakes this thread.
static void *wait_for_signal(void *unused) {
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (sem_wait(&signalled)) {}
    pthread_mutex_lock(&lock);
    cut();
}

static const char *setting(const char *name) {
    char full[64];
    snprintf(full, sizeof full, "TAMBOUR_POWERCUT_%s", name);
    return getenv(full);
}

static void __attribute__((constructor)) wake(void) {
    const char *directory = setting("DIR"), *program = setting("PROGRAM");
    if (!directory || (program && strcmp(program, program_invocation_short_name))) return;
    char resolved[PATH_MAX];
    if (!realpath(directory, resolved)) refuse("a directory that is not there");
    if (setting("SEED")) seed = strtoull(setting("SEED"), NULL, 10);
    if (setting("AFTER")) cut_at = strtoull(setting("AFTER"), NULL, 10);
    real_sync = setting("SYNC") && !strcmp(setting("SYNC"), "1");
    policy = (enum policy)-1;
    if (setting("POLICY")) {
        for (int i = 0; i <= KEEP; i++)
            if (!strcmp(setting("POLICY"), policy_names[i])) policy = (enum policy)i;
        if ((int)policy < 0) refuse("a policy of that name");
    }
    if (asprintf(&attic, "%s.powercut", resolved) < 0) refuse("without memory");
    remove_matching(attic, "");

    sigset_t cut_signal, all, before;
    sigemptyset(&cut_signal);
    sigaddset(&cut_signal, SIGUSR2);
    sigfillset(&all);
    pthread_t thread;
    struct sigaction on_signal = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    if (sem_init(&signalled, 0, 0) || sigaction(SIGUSR2, &on_signal, NULL)) refuse("signals");
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&thread, NULL, wait_for_signal, NULL)) refuse("without a thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_sigmask(SIG_BLOCK, &cut_signal, NULL);

    unsetenv("LD_PRELOAD");
    const char *names[] = {"DIR", "PROGRAM", "SEED", "AFTER", "POLICY", "SYNC"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char full[64];
        snprintf(full, sizeof full, "TAMBOUR_POWERCUT_%s", names[i]);
        unsetenv(full);
    }
    own_pid = getpid();
    root_length = strlen(resolved);
    root = need(strdup(resolved));
}

// Waits for the lock and keeps it. A cut in progress holds the lock until it ends the process, and
// no new cut can begin. Otherwise an exit on another thread could end the process in the middle of
// a cut.
static void __attribute__((destructor)) tidy(void) {
    if (!root || pthread_equal(pthread_self(), cutter)) return;
    pthread_mutex_lock(&lock);
    remove_matching(attic, "");
    rmdir(attic);
}

// MARK: - Opening and closing

static int open_tracked(int directory, const char *path, int flags, mode_t mode) {
    char *inside = path_inside(directory, path);
    if (!inside || ends_with(inside, "-shm") || (flags & O_PATH)) {
        free(inside);
        return REAL(openat)(directory, path, flags, mode);
    }
    if ((flags & O_TMPFILE) == O_TMPFILE) refuse("O_TMPFILE");
    enter();
    struct stat status;
    bool existed = !fstatat(directory, path, &status, 0);
    int fd = REAL(openat)(directory, path, flags & ~O_TRUNC, mode);
    if (fd >= 0 && !fstat(fd, &status) && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        struct file *file = known_file(&status, !existed);
        set_file_at(fd, file);
        if (!existed) add_change(CREATED, inside);
        if (existed && (flags & O_TRUNC) && S_ISREG(status.st_mode)) {
            remember(file, fd, 0, status.st_size);
            file->shortened = operations;
            if (REAL(ftruncate)(fd, 0)) refuse("a file it cannot empty");
        }
    }
    leave();
    free(inside);
    return fd;
}

static mode_t mode_argument(int flags, va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define DEFINE_OPEN(name)                                        \
    int name(const char *path, int flags, ...) {                 \
        va_list arguments;                                       \
        va_start(arguments, flags);                              \
        mode_t mode = mode_argument(flags, arguments);           \
        va_end(arguments);                                       \
        return open_tracked(AT_FDCWD, path, flags, mode);        \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                           \
    int name(int directory, const char *path, int flags, ...) {       \
        va_list arguments;                                            \
        va_start(arguments, flags);                                   \
        mode_t mode = mode_argument(flags, arguments);                \
        va_end(arguments);                                            \
        return open_tracked(directory, path, flags, mode);            \
    }

DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

int creat(const char *path, mode_t mode) {
    return open_tracked(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode) { return creat(path, mode); }
int __open_2(const char *path, int flags) { return open_tracked(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_tracked(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char *path, int flags) {
    return open_tracked(directory, path, flags, 0);
}
int __openat64_2(int directory, const char *path, int flags) {
    return open_tracked(directory, path, flags, 0);
}

static void refuse_stdio(const char *path, const char *mode) {
    if (!strpbrk(mode, "wa+")) return;
    if (path_inside(AT_FDCWD, path)) refuse("fopen for writing");
}
FILE *fopen(const char *path, const char *mode) {
    refuse_stdio(path, mode);
    return REAL(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode) {
    refuse_stdio(path, mode);
    return REAL(fopen64)(path, mode);
}

int close(int fd) {
    if (!file_at(fd)) return REAL(close)(fd);
    stand_still_after_the_cut();
    pthread_mutex_lock(&lock);
    set_file_at(fd, NULL);
    int result = REAL(close)(fd);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

static int copied(int result, int fd) {
    if (result >= 0) set_file_at(result, file_at(fd));
    return result;
}
int dup(int fd) { return copied(REAL(dup)(fd), fd); }
int dup2(int fd, int to) { return copied(REAL(dup2)(fd, to), fd); }
int dup3(int fd, int to, int flags) { return copied(REAL(dup3)(fd, to, flags), fd); }

#define DEFINE_FCNTL(name)                                                              \
    int name(int fd, int command, ...) {                                                \
        va_list arguments;                                                              \
        va_start(arguments, command);                                                   \
        void *argument = va_arg(arguments, void *);                                     \
        va_end(arguments);                                                              \
        int result = REAL(name)(fd, command, argument);                                 \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(result, fd)    \
                                                                : result;               \
    }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

// MARK: - Writing

static ssize_t write_tracked(int fd, const struct iovec *parts, int count, off_t offset) {
    enter();
    struct file *file = file_at(fd);
    off_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    bool at_position = offset < 0;
    if (REAL(fcntl)(fd, F_GETFL) & O_APPEND) offset = size_of(fd);
    else if (at_position) offset = lseek(fd, 0, SEEK_CUR);
    if (file && offset >= 0) remember(file, fd, offset, length);
    ssize_t result = at_position ? REAL(writev)(fd, parts, count)
                                 : REAL(pwritev64)(fd, parts, count, offset);
    leave();
    return result;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (!file_at(fd)) {
        stand_still_after_the_cut();
        return REAL(write)(fd, bytes, count);
    }
    struct iovec part = {(void *)bytes, count};
    return write_tracked(fd, &part, 1, -1);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!file_at(fd)) {
        stand_still_after_the_cut();
        return REAL(writev)(fd, parts, count);
    }
    return write_tracked(fd, parts, count, -1);
}

#define DEFINE_PWRITE(name)                                                      \
    ssize_t name(int fd, const void *bytes, size_t count, off_t offset) {        \
        if (!file_at(fd)) return REAL(name)(fd, bytes, count, offset);           \
        struct iovec part = {(void *)bytes, count};                              \
        return write_tracked(fd, &part, 1, offset);                              \
    }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)

#define DEFINE_PWRITEV(name)                                                         \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t offset) {       \
        if (!file_at(fd)) return REAL(name)(fd, parts, count, offset);               \
        return write_tracked(fd, parts, count, offset);                              \
    }
DEFINE_PWRITEV(pwritev)
DEFINE_PWRITEV(pwritev64)

static int truncate_tracked(int fd, off_t size) {
    enter();
    struct file *file = file_at(fd);
    off_t now = size_of(fd);
    if (file && size < now) {
        remember(file, fd, size, now - size);
        file->shortened = operations;
    }
    int result = REAL(ftruncate)(fd, size);
    // This file may grow without a write. Keep a descriptor, so that the cut can restore its length.
    if (file && size > now) keeper_of(file, fd);
    leave();
    return result;
}
int ftruncate(int fd, off_t size) {
    return file_at(fd) ? truncate_tracked(fd, size) : REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static int allocate_tracked(int fd, int mode, off_t offset, off_t length) {
    enter();
    struct file *file = file_at(fd);
    if (file) remember(file, fd, offset, length);
    int result = REAL(fallocate)(fd, mode, offset, length);
    leave();
    return result;
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
    return file_at(fd) ? allocate_tracked(fd, mode, offset, length)
                       : REAL(fallocate)(fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off_t offset, off_t length) {
    return fallocate(fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
    if (!file_at(fd)) return REAL(posix_fallocate)(fd, offset, length);
    return allocate_tracked(fd, 0, offset, length) ? errno : 0;
}
int posix_fallocate64(int fd, off_t offset, off_t length) {
    return posix_fallocate(fd, offset, length);
}

// MARK: - Making durable

static int sync_tracked(int fd) {
    enter();
    // A cut at this operation happens before the sync, which may have done any part of its work.
    if (cut_at && operations >= cut_at) cut();
    int result = real_sync ? REAL(fdatasync)(fd) : 0;
    struct file *file = file_at(fd);
    if (file && result == 0) {
        if (file->is_directory) make_names_durable(fd);
        else make_durable(file, fd);
    }
    leave();
    return result;
}
int fsync(int fd) { return file_at(fd) ? sync_tracked(fd) : REAL(fsync)(fd); }
int fdatasync(int fd) { return file_at(fd) ? sync_tracked(fd) : REAL(fdatasync)(fd); }

// MARK: - Names

static int unlink_tracked(int directory, const char *path, int flags) {
    char *inside = path_inside(directory, path);
    if (!inside || ends_with(inside, "-shm") || (flags & AT_REMOVEDIR)) {
        free(inside);
        return REAL(unlinkat)(directory, path, flags);
    }
    enter();
    struct stat status;
    bool is_file = !fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW)
                   && S_ISREG(status.st_mode);
    char *saved = is_file ? save(inside) : NULL;
    int result = REAL(unlinkat)(directory, path, flags);
    if (saved && result == 0) {
        add_change(REMOVED, inside)->saved = saved;
    } else if (saved) {
        REAL(unlink)(saved);
        free(saved);
    }
    leave();
    free(inside);
    return result;
}
int unlink(const char *path) { return unlink_tracked(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) {
    return unlink_tracked(directory, path, flags);
}
int remove(const char *path) {
    struct stat status;
    bool is_directory = !lstat(path, &status) && S_ISDIR(status.st_mode);
    return is_directory ? rmdir(path) : unlink(path);
}

static int rename_tracked(
    int from_directory, const char *from, int to_directory, const char *to, unsigned flags
) {
    char *inside_from = path_inside(from_directory, from);
    char *inside_to = path_inside(to_directory, to);
    if (!inside_from && !inside_to)
        return REAL(renameat2)(from_directory, from, to_directory, to, flags);
    if (!inside_from || !inside_to || (flags & RENAME_EXCHANGE))
        refuse("a rename into, out of or across the directory");
    enter();
    struct stat status;
    bool replaces = !lstat(inside_to, &status) && S_ISREG(status.st_mode);
    char *saved = replaces ? save(inside_to) : NULL;
    int result = REAL(renameat2)(from_directory, from, to_directory, to, flags);
    if (result == 0) {
        struct name_change *change = add_change(RENAMED, inside_to);
        change->from = inside_from;
        change->saved = saved;
    } else {
        if (saved) REAL(unlink)(saved);
        free(saved);
        free(inside_from);
    }
    leave();
    free(inside_to);
    return result;
}
int rename(const char *from, const char *to) {
    return rename_tracked(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    return rename_tracked(from_directory, from, to_directory, to, 0);
}
int renameat2(
    int from_directory, const char *from, int to_directory, const char *to, unsigned flags
) {
    return rename_tracked(from_directory, from, to_directory, to, flags);
}

// MARK: - Ways past the layer, and ways out of the process

void _exit(int status) {
    // A child between fork and exec inherits the lock's state, but no thread that could release it.
    if (root && getpid() == own_pid) pthread_mutex_lock(&lock);
    REAL(_exit)(status);
    abort();
}
void _Exit(int status) { _exit(status); }

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE) && file_at(fd)) refuse("a writable map");
    return REAL(mmap)(address, length, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(address, length, protection, flags, fd, offset);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t count);
ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    if (file_at(to)) refuse("sendfile");
    stand_still_after_the_cut();
    return REAL(sendfile)(to, from, offset, count);
}
ssize_t copy_file_range(int from, off_t *in, int to, off_t *out, size_t count, unsigned flags) {
    if (file_at(to)) refuse("copy_file_range");
    return REAL(copy_file_range)(from, in, to, out, count, flags);
}
ssize_t splice(int from, off_t *in, int to, off_t *out, size_t count, unsigned flags) {
    if (file_at(to)) refuse("splice");
    stand_still_after_the_cut();
    return REAL(splice)(from, in, to, out, count, flags);
}
ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    stand_still_after_the_cut();
    return REAL(send)(fd, bytes, count, flags);
}
ssize_t sendto(
    int fd, const void *bytes, size_t count, int flags, const struct sockaddr *address,
    socklen_t length
) {
    stand_still_after_the_cut();
    return REAL(sendto)(fd, bytes, count, flags, address, length);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    stand_still_after_the_cut();
    return REAL(sendmsg)(fd, message, flags);
}
