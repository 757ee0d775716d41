// Records which functions are called, in order. A build with sanitizer coverage calls
// `__sanitizer_cov_trace_pc_guard` at the start of each function. SIGRTMIN begins a trace and
// creates the file TAMBOUR_TRACE.begun. SIGRTMIN+1 ends the trace and writes it to TAMBOUR_TRACE.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_CALLS (1u << 22)

extern const char __executable_start[];

static struct call { uint32_t thread, offset; } calls[MOST_CALLS];
static atomic_uint count;
static atomic_int is_tracing;
static char path[4096], partial[4096], begun[4096];

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) {
    for (uint32_t *guard = start; guard < stop; guard++) *guard = 1;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
    static _Thread_local uint32_t thread;
    (void)guard;
    if (!atomic_load_explicit(&is_tracing, memory_order_relaxed)) return;
    if (!thread) thread = (uint32_t)gettid();
    unsigned index = atomic_fetch_add(&count, 1);
    if (index >= MOST_CALLS) return;
    const char *address = __builtin_return_address(0);
    calls[index] = (struct call){thread, (uint32_t)(address - __executable_start)};
}

static void begin(int signal) {
    (void)signal;
    atomic_store(&count, 0);
    atomic_store(&is_tracing, 1);
    int file = open(begun, O_WRONLY | O_CREAT, 0600);
    if (file >= 0) close(file);
}

static void end(int signal) {
    (void)signal;
    atomic_store(&is_tracing, 0);
    unsigned made = atomic_load(&count);
    size_t left = (made < MOST_CALLS ? made : MOST_CALLS) * sizeof(struct call);
    const char *bytes = (const char *)calls;
    int file = open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    while (file >= 0 && left > 0) {
        ssize_t written = write(file, bytes, left);
        if (written <= 0) break;
        bytes += written;
        left -= (size_t)written;
    }
    if (file >= 0) close(file);
    rename(partial, path);
}

__attribute__((constructor)) static void start(void) {
    const char *named = getenv("TAMBOUR_TRACE");
    if (!named) return;
    snprintf(path, sizeof path, "%s", named);
    snprintf(partial, sizeof partial, "%s.partial", named);
    snprintf(begun, sizeof begun, "%s.begun", named);
    signal(SIGRTMIN, begin);
    signal(SIGRTMIN + 1, end);
}
