#include <sys/epoll.h>
#include <sys/socket.h>

// glibc declares accept4 only if _GNU_SOURCE is defined. Swift's importer does not define it.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
