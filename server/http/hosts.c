#include "http/hosts.h"

#include "http/lists.h"

#include <string.h>
#include <strings.h>

/* Characters of a name that may stand before a port; an IPv6 address stands in brackets. */
static size_t name_length(const char *text, size_t length)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	static const char of_addresses[] = "0123456789abcdefABCDEF:.";
	size_t end = 0;
	if (length == 0 || *text != '[') {
		while (end < length && strchr(of_names, text[end]))
			end++;
		return end;
	}
	end = 1;
	while (end < length && strchr(of_addresses, text[end]))
		end++;
	return end > 1 && end < length && text[end] == ']' ? end + 1 : 0;
}

bool host_is_one(const char *text, size_t length)
{
	size_t name = name_length(text, length);
	if (name == 0 || name == length)
		return name > 0;
	size_t digits = 0;
	while (name + 1 + digits < length && strchr("0123456789", text[name + 1 + digits]))
		digits++;
	return text[name] == ':' && digits > 0 && digits <= 5 && name + 1 + digits == length;
}

bool host_is_origin(const char *text, size_t length)
{
	if (length == 1 && *text == '*')
		return true;
	size_t scheme = 0;
	while (scheme < length && strchr("abcdefghijklmnopqrstuvwxyz0123456789+-.", text[scheme]))
		scheme++;
	return scheme > 0 && length > scheme + 3 && strncmp(text + scheme, "://", 3) == 0 &&
	       host_is_one(text + scheme + 3, length - scheme - 3);
}

/* Whether a host is the item: the same, or the same name where the item has no port. */
static bool matches(const char *host, const struct list_item *item)
{
	if (list_item_is(item, host))
		return true;
	size_t name = name_length(host, strlen(host));
	return name == item->length && host[name] == ':' && strncasecmp(host, item->text, name) == 0;
}

bool host_is_listed(const char *list, const char *host)
{
	struct list_item item;
	while (list_next(&list, &item)) {
		if (matches(host, &item))
			return true;
	}
	return false;
}
