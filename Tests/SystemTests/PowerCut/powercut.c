// A power cut for one program: what it wrote and did not sync is lost, torn or out of order.
//
// Preloaded (LD_PRELOAD) into the real server or any other dynamically linked program. It sees
// every call that changes a file below one directory and remembers, for each file, what a sync has
// made durable. Reads are not its business: the files hold what the program believes they hold.
// At the cut it takes back what no sync has covered, as far as the seed says, and kills the process.
// What is then on disk is what a machine could have kept that lost its power at that moment.
//
// Environment (taken out again at the start, so that programs started by this one are left alone):
//   TAMBOUR_POWERCUT_DIR      the directory; without it the layer sleeps
//   TAMBOUR_POWERCUT_PROGRAM  if set: only a program of this name wakes the layer; one of another
//                             name (a shell in between) hands the environment on untouched
//   TAMBOUR_POWERCUT_SEED     a number; the same calls in the same order lose the same bytes
//   TAMBOUR_POWERCUT_AFTER    if set: cut at the operation of this number, counted from 1
//   TAMBOUR_POWERCUT_POLICY   drop, prefix, blocks, sectors or keep; without it the seed chooses one
//                             of the first four
//   TAMBOUR_POWERCUT_SYNC     if 1: syncs also wait for the real disk, which takes longer and
//                             changes nothing else
// SIGUSR2 cuts at once. The process ends by SIGKILL; one line on stderr says what was lost. From
// the moment of the cut no thread gets another byte out, on a socket neither: whatever a client has
// received, it received before.
//
// What may be lost:
//   - Data. Per file: blocks of 4,096 bytes written since its last sync. `drop` loses all of them,
//     `prefix` all that were written after some moment, `blocks` any of them, `sectors` any 512
//     bytes of any of them (torn writes). What is lost reads as it did at the last sync, or as
//     zeros where there was nothing. The file's length is the old one or the new one.
//   - Names. Creating, removing and renaming become durable when the DIRECTORY is synced, in the
//     order in which they were done; a cut loses all that came after some moment. (Many file
//     systems are kinder. mkdir, link and symlink count as durable at once.)
//   - `*-shm` files, always: SQLite maps them, never syncs them and builds them anew.
// `keep` loses nothing but those and is the same as kill -9.
//
// Not seen: io_uring, stdio. What could go past it unnoticed and matters (writable shared maps,
// fopen for writing, sendfile and their like, on a file below the directory) ends the program with
// a message, so that no test passes because the layer was blind.
//
//   cc -shared -fPIC -O2 -o powercut.so powercut.c -ldl -lpthread

#define _GNU_SOURCE
// The 64-bit names are defined here beside the plain ones; they must not become macros for them.
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

// What a block held at the file's last sync, kept from the first write to it on.
struct block {
    uint64_t last_write;  // the operation that touched it last
    unsigned char old[BLOCK];
};

// A file or a directory below the directory, known by device and inode.
struct file {
    struct file *next;
    dev_t device;
    ino_t inode;
    bool is_directory;
    int keeper;           // a descriptor of our own, -1 until needed. Never closed: closing any
                          // descriptor of a file drops the locks SQLite holds on it.
    off_t durable_size;   // at the last sync
    uint64_t shortened;   // the operation that last cut its length
    struct block **blocks;
    size_t block_capacity;
    size_t *dirty;        // which places in `blocks` are taken
    size_t dirty_count, dirty_capacity;
};

// A change of names that its directory's sync has not covered yet.
struct name_change {
    enum { CREATED, REMOVED, RENAMED } kind;
    char *path;           // the name created, removed or renamed to
    char *from;           // RENAMED: the old name
    char *saved;          // REMOVED, or RENAMED over a file: another link to what was there
};

enum policy { DROP, PREFIX, BLOCKS, SECTORS, KEEP };
static const char *const policy_names[] = {"drop", "prefix", "blocks", "sectors", "keep"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *root;                       // absolute, without a slash at the end; NULL: asleep
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

// MARK: - Small things

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

// After the cut nothing leaves the process any more.
static void stand_still_after_the_cut(void) {
    while (cutting && !pthread_equal(pthread_self(), cutter)) pause();
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

// The absolute path if it lies below the directory (or is it), else NULL. The last component need
// not exist and is not followed.
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
        if (is_new) {  // a removed file's inode was given out again: this is another file
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

// Keeps what these bytes were at the last sync. Called before they change.
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

// Gives a file that is about to lose its name another one out of sight.
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

// The names in this directory are durable now.
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
            // In the order of time the length goes with the last block that made the file longer.
            size = file->durable_size;
            for (size_t i = 0; i < file->dirty_count; i++) {
                off_t end = (off_t)(file->dirty[i] + 1) * BLOCK;
                if (end > now) end = now;
                if (end > size && file->blocks[file->dirty[i]]->last_write <= moment) size = end;
            }
        }
    }
    // A shorter length that did not last takes all that came after it along.
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
            // SECTORS: a block that survives does so whole; one that does not is torn.
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

// The lock is held, so no call is half done.
static void __attribute__((noreturn)) cut(void) {
    cutter = pthread_self();
    cutting = true;
    random_state = seed;
    uint64_t choice = next_random();
    if ((int)policy < 0) policy = choice % 4;

    // The moment lies among the operations that are still open, or it would keep all or nothing.
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

// Opens an operation that changes something: at most one runs at a time.
static void enter(void) {
    stand_still_after_the_cut();
    pthread_mutex_lock(&lock);
    operations++;
}

// Closes it; the cut by number comes after the change and before any later sync.
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

// One thread is there for the signal and blocks no other: the program's own threads do not see it,
// except one that waits for signals with an empty mask. Whichever takes it
// only passes it on.
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

// The lock is kept: a cut that has begun ends the process itself, and none begins any more. Else an
// exit on another thread would end a cut halfway, with some files taken back and others not.
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
    // A file that grew without a write has nothing to take back but its length.
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
    // A cut at this very operation comes before the sync: it may have done any part of its work.
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
    // A child between fork and exec has the lock as it was, and no thread that would give it back.
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
