#include <stddef.h>

// glibc declares wcwidth only if _XOPEN_SOURCE is defined. Swift's importer does not define it.
extern int wcwidth(wchar_t character);
