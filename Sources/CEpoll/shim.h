#include <sys/epoll.h>
#include <sys/socket.h>

// glibc declares this one under _GNU_SOURCE only, which the importer does not define.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
