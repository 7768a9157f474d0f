/*
 * unix_socket.h - a listening socket that has a place in the file system, "unix:/path".
 *
 * Whoever may write to the file may connect: it is made with mode 0660, less what the umask takes.
 */
#ifndef ATTND_HTTP_UNIX_SOCKET_H
#define ATTND_HTTP_UNIX_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* The file that this process made, so that no other is removed in its place. Zeroed: none. */
struct unix_socket {
	struct sockaddr_un address;
	dev_t device;
	ino_t inode;
};

/* Whether text begins with "unix:", well formed or not. */
bool unix_socket_is(const char *text);
/* "unix:" and an absolute path that fits a socket's address; false else. */
bool unix_socket_address(const char *text, struct sockaddr_un *address);

/* Opens a non-blocking listening socket at an address as above; -1 with the reason in error. A socket that
 * lies there is replaced when nobody answers on it. */
int unix_socket_listen(struct unix_socket *file, const char *text, int backlog, char *error,
                       size_t error_size);
/* Removes the file if it is still the one made; then there is none. Before the socket is closed, which lets
 * the system give the number of its file to another. */
void unix_socket_remove(struct unix_socket *file);

#endif
