/*
 * address.h - the place the daemon listens at, from text to a listening socket and back. A place in the file
 * system is unix_socket.h's.
 */
#ifndef ATTND_HTTP_ADDRESS_H
#define ATTND_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define ADDRESS_TEXT_MAX 128

/* Splits host:port or [v6]:port into its parts (each of size bytes). false when the text is not of that form.
 */
bool address_split(const char *text, char *host, char *port, size_t size);

/* Opens a non-blocking listening socket at host:port; -1 with the reason in error. */
int address_listen(const char *text, int backlog, char *error, size_t error_size);

/* What the socket is bound to, as host:port, [v6]:port or unix:/path, with the port the system picked for
 * port 0. */
void address_of_socket(int socket, char text[static ADDRESS_TEXT_MAX]);

#endif
