#include "http/unix_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "unix:"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)
#define SOCKET_MODE 0660

bool unix_socket_is(const char *text)
{
	return strncmp(text, PREFIX, PREFIX_LENGTH) == 0;
}

bool unix_socket_address(const char *text, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!unix_socket_is(text) || text[PREFIX_LENGTH] != '/')
		return false;
	size_t length = strlen(text + PREFIX_LENGTH);
	if (length >= sizeof(address->sun_path))
		return false;
	memcpy(address->sun_path, text + PREFIX_LENGTH, length + 1);
	return true;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Whether a socket lies there on which nobody listens: only then it may go. errno says why not. */
static bool is_stale(const struct sockaddr_un *address)
{
	struct stat facts;
	if (lstat(address->sun_path, &facts) != 0)
		return errno == ENOENT;
	errno = EEXIST;
	if (!S_ISSOCK(facts.st_mode))
		return false;
	int fd = open_socket();
	if (fd < 0)
		return false;
	int failed = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	int reason = failed ? errno : EADDRINUSE;
	close(fd);
	errno = reason == EAGAIN ? EADDRINUSE : reason;
	return reason == ECONNREFUSED;
}

/* The mode is set on the socket before it has a file, so the file never has another. */
static bool bind_file(int fd, const struct sockaddr_un *address)
{
	const struct sockaddr *bare = (const struct sockaddr *)address;
	if (fchmod(fd, SOCKET_MODE) != 0)
		return false;
	if (bind(fd, bare, sizeof(*address)) == 0)
		return true;
	if (errno != EADDRINUSE || !is_stale(address))
		return false;
	unlink(address->sun_path);
	return bind(fd, bare, sizeof(*address)) == 0;
}

static bool note_file(struct unix_socket *file)
{
	struct stat facts;
	if (lstat(file->address.sun_path, &facts) != 0)
		return false;
	file->device = facts.st_dev;
	file->inode = facts.st_ino;
	return true;
}

int unix_socket_listen(struct unix_socket *file, const char *text, int backlog, char *error,
                       size_t error_size)
{
	*file = (struct unix_socket){0};
	struct sockaddr_un address;
	if (!unix_socket_address(text, &address)) {
		snprintf(error, error_size, "%s is not unix: and an absolute path of at most %zu characters",
		         text, sizeof(address.sun_path) - 1);
		return -1;
	}
	int fd = open_socket();
	if (fd < 0 || !bind_file(fd, &address))
		goto failed;
	file->address = address;
	if (note_file(file) && listen(fd, backlog) == 0)
		return fd;
failed:
	snprintf(error, error_size, "cannot listen at %s: %s", text, strerror(errno));
	unix_socket_remove(file);
	if (fd >= 0)
		close(fd);
	return -1;
}

void unix_socket_remove(struct unix_socket *file)
{
	const char *path = file->address.sun_path;
	struct stat facts;
	if (*path != '\0' && lstat(path, &facts) == 0 && facts.st_dev == file->device &&
	    facts.st_ino == file->inode)
		unlink(path);
	*file = (struct unix_socket){0};
}
