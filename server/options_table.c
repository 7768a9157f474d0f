#include "options_table.h"

#include "attn.h"
#include "http/address.h"
#include "http/hosts.h"
#include "http/lists.h"
#include "http/unix_socket.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILO UINT64_C(1024)
#define MEGA (1024 * KILO)
#define GIGA (1024 * MEGA)
#define TERA (1024 * GIGA)
#define HOUR_MS UINT64_C(3600000)

static const char *kernels_choice(size_t index)
{
	return index == 0 ? "auto" : attn_kernels_list(index - 1);
}

static const char *level_choice(size_t index)
{
	static const char *const names[] = {"error", "warning", "info", "debug", NULL};
	return names[index];
}

static const char *format_choice(size_t index)
{
	static const char *const names[] = {"text", "json", NULL};
	return names[index];
}

/* clang-format off */
#define AT(member) offsetof(struct options, member)
const struct option_row option_rows[OPTION_COUNT] = {
	{"config", OPTION_TEXT, OPTION_OUTSIDE, AT(config), NULL, 0, 0, "FILE", "file of settings, one `key = value` a line", NULL},
	{"listen", OPTION_LISTEN, OPTION_EVERYWHERE, AT(listen), "127.0.0.1:8080", 0, 0, "ADDRESS", "where to listen, HOST:PORT or unix:PATH; port 0 picks a free one", NULL},
	{"models", OPTION_TEXT, OPTION_EVERYWHERE, AT(models), NULL, 0, 0, "DIR", "directory of models; without it the embedded model is served", NULL},
	{"tokens-file", OPTION_TEXT, OPTION_EVERYWHERE, AT(tokens_file), NULL, 0, 0, "FILE", "file of bearer tokens, one a line; without it none is needed", NULL},
	{"allowed-origins", OPTION_ORIGINS, OPTION_EVERYWHERE, AT(allowed_origins), NULL, 0, 0, "LIST", "origins whose web pages may read replies; without it none may", NULL},
	{"allowed-hosts", OPTION_HOSTS, OPTION_EVERYWHERE, AT(allowed_hosts), NULL, 0, 0, "LIST", "hosts that requests may name; without it any", NULL},
	{"max-connections", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_connections), "1024", 1, MEGA, "COUNT", "open connections", NULL},
	{"max-body", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_body), "64M", 1, TERA, "BYTES", "largest request body", NULL},
	{"max-reply", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_reply), "256M", 1, TERA, "BYTES", "largest reply", NULL},
	{"max-elements", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_elements), "16M", 1, TERA, "COUNT", "numbers in the tensors of one request", NULL},
	{"max-inflight", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_inflight), "1G", 1, 1024 * TERA, "BYTES", "memory of all requests that are being served", NULL},
	{"max-sequence-length", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_sequence_length), "16384", 1, 65536, "COUNT", "longest sequence, of queries and of keys", NULL},
	{"queue-limit", OPTION_SIZE, OPTION_EVERYWHERE, AT(queue_limit), "1024", 1, MEGA, "COUNT", "requests that may wait; those being computed do not count", NULL},
	{"header-timeout", OPTION_MS, OPTION_EVERYWHERE, AT(header_timeout_ms), "10000", 1, HOUR_MS, "MS", "time for a request's header to arrive", NULL},
	{"body-timeout", OPTION_MS, OPTION_EVERYWHERE, AT(body_timeout_ms), "60000", 1, HOUR_MS, "MS", "time for a request's body to arrive", NULL},
	{"keepalive-timeout", OPTION_MS, OPTION_EVERYWHERE, AT(keepalive_timeout_ms), "75000", 1, HOUR_MS, "MS", "time a connection may stay idle between requests", NULL},
	{"request-timeout", OPTION_MS, OPTION_EVERYWHERE, AT(request_timeout_ms), "60000", 1, 24 * HOUR_MS, "MS", "longest time to answer a request, which may ask for less", NULL},
	{"drain-timeout", OPTION_MS, OPTION_EVERYWHERE, AT(drain_timeout_ms), "30000", 0, HOUR_MS, "MS", "time that admitted requests have to finish after SIGTERM", NULL},
	{"min-reply-rate", OPTION_SIZE, OPTION_EVERYWHERE, AT(min_reply_rate), "16K", 1, GIGA, "BYTES", "what a client must read of its reply each second", NULL},
	{"workers", OPTION_SIZE, OPTION_EVERYWHERE, AT(workers), "0", 0, 1024, "COUNT", "computing threads; 0: one for each CPU allowed", NULL},
	{"max-batch", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_batch), "32", 1, 65536, "COUNT", "sequences computed in one call", NULL},
	{"max-batch-tokens", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_batch_tokens), "16384", 1, GIGA, "COUNT", "positions of all sequences in one call", NULL},
	{"max-batch-scores", OPTION_SIZE, OPTION_EVERYWHERE, AT(max_batch_scores), "64M", 1, TERA, "COUNT", "scores (heads x queries x keys) of all sequences in one call", NULL},
	{"batch-wait", OPTION_MS, OPTION_EVERYWHERE, AT(batch_wait_ms), "0", 0, 60000, "MS", "time a batch is held open for more sequences", NULL},
	{"batch-max-age", OPTION_MS, OPTION_EVERYWHERE, AT(batch_max_age_ms), "50", 0, 60000, "MS", "age at which a waiting batch goes before other work", NULL},
	{"kernels", OPTION_CHOICE, OPTION_EVERYWHERE, AT(kernels), "auto", 0, 0, "NAME", "arithmetic kernels; auto: the fastest set", kernels_choice},
	{"log-level", OPTION_CHOICE, OPTION_EVERYWHERE, AT(log_level), "info", 0, 0, "NAME", "least grave events that are logged", level_choice},
	{"log-format", OPTION_CHOICE, OPTION_EVERYWHERE, AT(log_format), "text", 0, 0, "NAME", "form of a line of the log", format_choice},
	{"check-config", OPTION_SWITCH, OPTION_FLAG, AT(check_config), NULL, 0, 0, NULL, "check the settings and exit", NULL},
	{"healthcheck", OPTION_SWITCH, OPTION_FLAG, AT(healthcheck), NULL, 0, 0, NULL, "ask the daemon at --listen whether it serves, and exit", NULL},
	{"version", OPTION_SWITCH, OPTION_FLAG, AT(version), NULL, 0, 0, NULL, "print version, kernels and BLAS, and exit", NULL},
	{"help", OPTION_SWITCH, OPTION_FLAG, AT(help), NULL, 0, 0, NULL, "print this and exit", NULL},
};
/* clang-format on */

const struct option_row *option_find(const char *name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (strcmp(option_rows[i].name, name) == 0)
			return &option_rows[i];
	return NULL;
}

void option_variable(const struct option_row *row, char out[static OPTION_NAME_MAX])
{
	snprintf(out, OPTION_NAME_MAX, "ATTND_%s", row->name);
	for (char *p = out; *p != '\0'; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

void option_key(const struct option_row *row, char out[static OPTION_NAME_MAX])
{
	snprintf(out, OPTION_NAME_MAX, "%s", row->name);
	for (char *p = out; *p != '\0'; p++)
		*p = *p == '-' ? '_' : *p;
}

/* A whole number with its suffix, if the type has suffixes; false also when it is beyond uint64_t. */
static bool parse_number(const char *text, bool suffixes, uint64_t *out)
{
	uint64_t value = 0, factor = 1;
	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	if (suffixes && *text != '\0') {
		char unit = (char)toupper((unsigned char)*text++);
		factor = unit == 'K' ? KILO : unit == 'M' ? MEGA : unit == 'G' ? GIGA : 0;
	}
	return factor != 0 && *text == '\0' && !__builtin_mul_overflow(value, factor, out);
}

static bool take_number(const struct option_row *row, const char *text, const char *origin, bool store,
                        void *target, char *error, size_t error_size)
{
	uint64_t value;
	bool size = row->type == OPTION_SIZE;
	if (!parse_number(text, size, &value) || value < row->least || value > row->most) {
		snprintf(error, error_size, "%s: \"%s\" is not a whole number%s from %llu to %llu", origin,
		         text, size ? " (K, M or G may follow)" : " of milliseconds",
		         (unsigned long long)row->least, (unsigned long long)row->most);
		return false;
	}
	if (store && size)
		*(size_t *)target = (size_t)value;
	else if (store)
		*(uint64_t *)target = value;
	return true;
}

/* false with the names that there are in error. */
static bool is_choice(const struct option_row *row, const char *text, const char *origin, char *error,
                      size_t error_size)
{
	const char *name;
	for (size_t i = 0; (name = row->choices(i)) != NULL; i++)
		if (strcmp(name, text) == 0)
			return true;
	int length = snprintf(error, error_size, "%s: \"%s\" is not one of", origin, text);
	for (size_t i = 0; (name = row->choices(i)) != NULL && (size_t)length < error_size; i++)
		length += snprintf(error + length, error_size - (size_t)length, " %s", name);
	return false;
}

/* Whether text is host:port with a port that exists, or the place of a unix socket. */
static bool is_listen_address(const char *text)
{
	char host[256], port[256];
	uint64_t number;
	struct sockaddr_un address;
	if (unix_socket_is(text))
		return unix_socket_address(text, &address);
	return address_split(text, host, port, sizeof host) && parse_number(port, false, &number) &&
	       number <= 65535;
}

/* Whether each item of a comma list is one, and there is one at all. */
static bool is_list_of(bool (*is_one)(const char *text, size_t length), const char *text)
{
	struct list_item item;
	size_t count = 0;
	for (; list_next(&text, &item); count++) {
		const char *behind = item.text + item.length;
		behind += strspn(behind, " \t");
		if (behind != text || !is_one(item.text, item.length))
			return false;
	}
	return count > 0;
}

/* What a text of this type must be; NULL when it is. */
static const char *wanted_of(const struct option_row *row, const char *text)
{
	if (row->type == OPTION_LISTEN && !is_listen_address(text))
		return "HOST:PORT or [V6]:PORT, port 0 to 65535, or unix: and an absolute path of at most "
		       "107 "
		       "characters";
	if (row->type == OPTION_HOSTS && !is_list_of(host_is_one, text))
		return "a comma list of hosts: NAME, NAME:PORT or [V6]";
	if (row->type == OPTION_ORIGINS && !is_list_of(host_is_origin, text))
		return "a comma list of origins: SCHEME://NAME, SCHEME://NAME:PORT or *";
	return NULL;
}

static bool take_text(const struct option_row *row, const char *text, const char *origin, bool store,
                      char **target, char *error, size_t error_size)
{
	if (*text == '\0') {
		snprintf(error, error_size, "%s: the value is empty", origin);
		return false;
	}
	if (row->type == OPTION_CHOICE && !is_choice(row, text, origin, error, error_size))
		return false;
	const char *wanted = wanted_of(row, text);
	if (wanted != NULL) {
		snprintf(error, error_size, "%s: \"%s\" is not %s", origin, text, wanted);
		return false;
	}
	if (!store)
		return true;
	char *copy = strdup(text);
	if (copy == NULL) {
		snprintf(error, error_size, "%s: out of memory", origin);
		return false;
	}
	free(*target);
	*target = copy;
	return true;
}

bool option_take(const struct option_row *row, const char *text, const char *origin, bool store,
                 struct options *options, char *error, size_t error_size)
{
	void *target = (char *)options + row->offset;
	switch (row->type) {
	case OPTION_SIZE:
	case OPTION_MS:
		return take_number(row, text, origin, store, target, error, error_size);
	case OPTION_SWITCH:
		*(bool *)target = true;
		return true;
	case OPTION_TEXT:
	case OPTION_LISTEN:
	case OPTION_HOSTS:
	case OPTION_ORIGINS:
	case OPTION_CHOICE:
		break;
	}
	return take_text(row, text, origin, store, target, error, error_size);
}
