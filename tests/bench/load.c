/*
 * load - closed-loop HTTP clients in one thread: each sends its next request when the reply to the last is
 * read.
 *
 *   load PORT PATH BODY_FILE|- CLIENTS SECONDS PAUSE_MS
 *
 * BODY_FILE is posted as JSON; - means GET. With a pause (one client only) the client waits before each
 * request. The first fifth of the time is not counted. Prints one JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 8192
#define MAX_CLIENTS 1024

struct client {
	int socket;
	size_t sent;  /* of the request */
	double begun; /* when its first byte was sent */
	bool busy;    /* a reply is awaited */
	char head[HEAD_MAX + 1];
	size_t head_length;
	bool head_whole;
	size_t body_left;
};

static struct load {
	char *request;
	size_t request_length;
	struct client clients[MAX_CLIENTS];
	size_t count, busy;
	double count_from, until, pause;
	/* of counted replies */
	double *seconds;
	size_t replies, room, errors, timed;
	double batches, compute; /* sums of X-Batch-Size, and of compute seconds over it */
} load;

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The whole file; *length its bytes. */
static char *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
		fail(path);
	*length = (size_t)ftell(file);
	rewind(file);
	char *bytes = malloc(*length + 1);
	if (bytes == NULL || fread(bytes, 1, *length, file) != *length)
		fail(path);
	fclose(file);
	return bytes;
}

static void make_request(int port, const char *path, const char *body_file)
{
	bool post = strcmp(body_file, "-") != 0;
	size_t length = 0;
	char *body = post ? read_file(body_file, &length) : NULL;
	FILE *out = open_memstream(&load.request, &load.request_length);
	if (out == NULL)
		fail("memory");
	fprintf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", post ? "POST" : "GET", path, port);
	if (post)
		fprintf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", length);
	fputs("\r\n", out);
	if (post)
		fwrite(body, 1, length, out);
	fclose(out);
	free(body);
}

static void flush_request(struct client *client)
{
	while (client->busy && client->sent < load.request_length) {
		ssize_t sent = send(client->socket, load.request + client->sent,
		                    load.request_length - client->sent, MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0)
			fail("send");
		client->sent += (size_t)sent;
	}
}

static void begin(struct client *client)
{
	if (load.pause > 0)
		usleep((useconds_t)(load.pause * 1e6));
	client->begun = now();
	if (client->begun >= load.until)
		return;
	client->busy = true;
	client->sent = client->head_length = client->body_left = 0;
	client->head_whole = false;
	load.busy++;
	flush_request(client);
}

/* What the reply says of its computation. */
static void count_timing(const char *head)
{
	const char *batch = strcasestr(head, "\r\nX-Batch-Size:"),
	           *compute = strcasestr(head, "compute;dur=");
	if (batch == NULL || compute == NULL)
		return;
	double sequences = strtod(batch + strlen("\r\nX-Batch-Size:"), NULL);
	load.timed++;
	load.batches += sequences;
	load.compute += 1e-3 * strtod(compute + strlen("compute;dur="), NULL) / sequences;
}

static void end(struct client *client)
{
	double ended = now();
	client->busy = false;
	load.busy--;
	if (ended >= load.count_from && ended < load.until) {
		if (load.replies == load.room) {
			load.room = load.room * 2 + 4096;
			load.seconds = realloc(load.seconds, load.room * sizeof(double));
			if (load.seconds == NULL)
				fail("memory");
		}
		load.seconds[load.replies++] = ended - client->begun;
		load.errors += strncmp(client->head, "HTTP/1.1 200", 12) != 0;
		count_timing(client->head);
	}
	begin(client);
}

/* Takes bytes of a reply; the head is kept, the body counted. */
static void take(struct client *client, const char *bytes, size_t length)
{
	if (!client->head_whole) {
		size_t had = client->head_length, fits = HEAD_MAX - had;
		size_t copied = length < fits ? length : fits;
		memcpy(client->head + had, bytes, copied);
		client->head_length += copied;
		client->head[client->head_length] = '\0';
		char *end_of_head = strstr(client->head, "\r\n\r\n");
		if (end_of_head == NULL && copied < length)
			fail("a reply's head is too long");
		if (end_of_head == NULL)
			return;
		end_of_head[2] = '\0';
		const char *size = strcasestr(client->head, "\r\nContent-Length:");
		client->head_whole = true;
		client->body_left =
		    size != NULL ? strtoul(size + strlen("\r\nContent-Length:"), NULL, 10) : 0;
		length -= (size_t)(end_of_head + 4 - client->head) - had;
	}
	client->body_left -= length < client->body_left ? length : client->body_left;
	if (client->body_left == 0)
		end(client);
}

static void receive(struct client *client)
{
	static char bytes[256 * 1024];
	for (;;) {
		ssize_t length = recv(client->socket, bytes, sizeof(bytes), 0);
		if (length < 0 && errno == EAGAIN)
			return;
		if (length <= 0)
			fail("the daemon closed a connection");
		take(client, bytes, (size_t)length);
	}
}

static void connect_clients(int port, int epoll)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)port),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	for (size_t i = 0; i < load.count; i++) {
		struct client *client = &load.clients[i];
		struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
		int one = 1;
		client->socket = socket(AF_INET, SOCK_STREAM, 0);
		if (client->socket < 0 ||
		    connect(client->socket, (struct sockaddr *)&address, sizeof(address)) != 0)
			fail("connect");
		setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		fcntl(client->socket, F_SETFL, O_NONBLOCK);
		epoll_ctl(epoll, EPOLL_CTL_ADD, client->socket, &event);
	}
}

static void drive(int epoll)
{
	for (size_t i = 0; i < load.count; i++)
		begin(&load.clients[i]);
	while (load.busy > 0) {
		struct epoll_event events[64];
		int ready = epoll_wait(epoll, events, 64, 30000);
		if (ready == 0)
			errno = ETIMEDOUT;
		if (ready <= 0)
			fail("waiting for replies");
		for (int i = 0; i < ready; i++) {
			flush_request(events[i].data.ptr);
			receive(events[i].data.ptr);
		}
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(double seconds, double passed)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	             1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	if (load.replies == 0)
		fail("no reply was counted");
	qsort(load.seconds, load.replies, sizeof(double), ascending);
	printf("{\"replies\": %zu, \"errors\": %zu, \"per_second\": %.6g, ", load.replies, load.errors,
	       (double)load.replies / seconds);
	printf("\"p50\": %.6g, \"p99\": %.6g, \"max\": %.6g, ", load.seconds[load.replies / 2],
	       load.seconds[load.replies * 99 / 100], load.seconds[load.replies - 1]);
	if (load.timed > 0)
		printf("\"batch\": %.6g, \"compute\": %.6g, ", load.batches / (double)load.timed,
		       load.compute / (double)load.timed);
	printf("\"cpu_share\": %.4g}\n", cpu / passed);
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: load PORT PATH BODY_FILE|- CLIENTS SECONDS PAUSE_MS\n");
		return 2;
	}
	int port = (int)strtol(argv[1], NULL, 10), epoll = epoll_create1(EPOLL_CLOEXEC);
	double seconds = strtod(argv[5], NULL);
	load.count = strtoul(argv[4], NULL, 10);
	load.pause = 1e-3 * strtod(argv[6], NULL);
	if (epoll < 0 || load.count > MAX_CLIENTS || (load.pause > 0 && load.count > 1))
		fail("clients");
	make_request(port, argv[2], argv[3]);
	connect_clients(port, epoll);
	double begun = now();
	load.until = begun + seconds;
	load.count_from = begun + seconds / 5;
	drive(epoll);
	report(load.until - load.count_from, now() - begun);
	free(load.request);
	free(load.seconds);
	return 0;
}
