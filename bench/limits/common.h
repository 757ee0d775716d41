// The code that all programs share: options, errors and time.
#ifndef COMMON_H
#define COMMON_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct option {
    const char *name;   // such as "--db"
    const char **value; // unchanged if the option is not given
};

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

// Parses pairs of "--name value". The last element of `options` has a null name.
static inline void parse_options(int argc, char **argv, const struct option *options, const char *usage) {
    for (int i = 1; i < argc; i += 2) {
        const struct option *option = options;
        while (option->name && strcmp(option->name, argv[i])) option++;
        if (!option->name || i + 1 == argc) die("usage: %s", usage);
        *option->value = argv[i + 1];
    }
}

static inline int64_t parse_number(const char *text) {
    char *end;
    int64_t number = strtoll(text, &end, 10);
    if (end == text || *end) die("not a number: %s", text);
    return number;
}

static inline void *checked(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

// Returns the array with room for at least one more element. The array has `count` elements.
static inline void *grown(void *array, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return array;
    *capacity = *capacity ? *capacity * 2 : 4;
    return checked(realloc(array, *capacity * size));
}

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

#endif
