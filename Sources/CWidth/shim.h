#include <stddef.h>

// glibc declares this one under _XOPEN_SOURCE only, which the importer does not define.
extern int wcwidth(wchar_t character);
