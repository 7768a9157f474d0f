/*
 * hosts.h - names of hosts and origins, as settings list them and requests name them. Pure functions.
 */
#ifndef ATTND_HTTP_HOSTS_H
#define ATTND_HTTP_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether [text, length) is a name, or an address (an IPv6 one in brackets), with or without a port. */
bool host_is_one(const char *text, size_t length);
/* Whether it is scheme://host as above, or *. */
bool host_is_origin(const char *text, size_t length);

/* Whether a comma list names the host of a request: the same, or the same name without a port, which stands
 * for every port. Without regard to case. */
bool host_is_listed(const char *list, const char *host);

#endif
