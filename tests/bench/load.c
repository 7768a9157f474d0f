/*
 * load - HTTP clients in one thread, closed loop or open loop.
 *
 *   load [-p PAUSE_MS] [-r RATE] [-t TYPE] [-a TYPE] PORT PATH BODY_FILE|- CLIENTS SECONDS
 *
 * Closed loop: each client sends its next request when the reply to the last is read. With -p (one client
 * only) it waits before each request. Open loop, with -r: RATE requests a second are due at equal distances,
 * whatever the replies do; each goes to a free client, or waits for one, and its time counts from when it was
 * due. BODY_FILE is posted with the Content-Type of -t, JSON unless given; - means GET; -a is the Accept. The
 * first fifth of the time is not counted. Prints one JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 8192
#define MAX_CLIENTS 1024

struct client {
	int socket;   /* 0: not connected yet */
	size_t sent;  /* of the request */
	double begun; /* when its first byte was sent, or in open loop was due */
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
	int port, epoll;
	double count_from, until, pause;
	/* open loop */
	double rate, first_due;
	size_t due, sent; /* requests so far */
	int ticks;        /* a timer that expires once for each request */
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

struct request_kind {
	const char *path, *body_file, *type, *accept;
};

static void make_request(struct request_kind kind)
{
	bool post = strcmp(kind.body_file, "-") != 0;
	size_t length = 0;
	char *body = post ? read_file(kind.body_file, &length) : NULL;
	FILE *out = open_memstream(&load.request, &load.request_length);
	if (out == NULL)
		fail("memory");
	fprintf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", post ? "POST" : "GET", kind.path, load.port);
	if (kind.accept != NULL)
		fprintf(out, "Accept: %s\r\n", kind.accept);
	if (post)
		fprintf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", kind.type, length);
	fputs("\r\n", out);
	if (post)
		fwrite(body, 1, length, out);
	fclose(out);
	free(body);
}

static void client_connect(struct client *client)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)load.port),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
	int one = 1;
	client->socket = socket(AF_INET, SOCK_STREAM, 0);
	if (client->socket < 0 || connect(client->socket, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("connect");
	setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(client->socket, F_SETFL, O_NONBLOCK);
	epoll_ctl(load.epoll, EPOLL_CTL_ADD, client->socket, &event);
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

static bool open_loop(void)
{
	return load.rate > 0;
}

/* The next request of a free client, if one is due. */
static void begin(struct client *client)
{
	if (load.pause > 0)
		usleep((useconds_t)(load.pause * 1e6));
	if (open_loop() && load.sent == load.due)
		return;
	client->begun = open_loop() ? load.first_due + (double)load.sent / load.rate : now();
	if (client->begun >= load.until)
		return;
	if (client->socket == 0)
		client_connect(client);
	load.sent++;
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
	double ended = now(), when = open_loop() ? client->begun : ended;
	client->busy = false;
	load.busy--;
	if (when >= load.count_from && when < load.until) {
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

/* Requests that came due go to free clients. */
static void take_ticks(void)
{
	uint64_t expired = 0;
	if (read(load.ticks, &expired, sizeof(expired)) != sizeof(expired))
		return;
	load.due += expired;
	for (size_t i = 0; i < load.count && load.sent < load.due; i++) {
		if (!load.clients[i].busy)
			begin(&load.clients[i]);
	}
}

/* The first request is due in one period from now. */
static void start_ticks(void)
{
	double period = 1 / load.rate;
	struct timespec step = {.tv_sec = (time_t)period,
	                        .tv_nsec = (long)(1e9 * (period - (double)(time_t)period))};
	struct itimerspec times = {.it_interval = step, .it_value = step};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	load.rate = 1 / ((double)step.tv_sec + 1e-9 * (double)step.tv_nsec);
	load.ticks = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	load.first_due = now() + 1 / load.rate;
	if (load.ticks < 0 || timerfd_settime(load.ticks, 0, &times, NULL) != 0 ||
	    epoll_ctl(load.epoll, EPOLL_CTL_ADD, load.ticks, &event) != 0)
		fail("timer");
}

static bool unfinished(void)
{
	return load.busy > 0 || (open_loop() && now() < load.until);
}

static void drive(void)
{
	if (open_loop())
		start_ticks();
	for (size_t i = 0; i < load.count; i++)
		begin(&load.clients[i]);
	while (unfinished()) {
		struct epoll_event events[64];
		int ready = epoll_wait(load.epoll, events, 64, 30000);
		if (ready == 0)
			errno = ETIMEDOUT;
		if (ready <= 0)
			fail("waiting for replies");
		for (int i = 0; i < ready; i++) {
			if (events[i].data.ptr == NULL) {
				take_ticks();
				continue;
			}
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

static const char usage[] =
    "usage: load [-p PAUSE_MS] [-r RATE] [-t TYPE] [-a TYPE] PORT PATH BODY_FILE|- CLIENTS SECONDS\n";

static bool read_options(int argc, char **argv, struct request_kind *kind)
{
	int option;
	while ((option = getopt(argc, argv, "p:r:t:a:")) != -1) {
		if (option == 'p')
			load.pause = 1e-3 * strtod(optarg, NULL);
		else if (option == 'r')
			load.rate = strtod(optarg, NULL);
		else if (option == 't')
			kind->type = optarg;
		else if (option == 'a')
			kind->accept = optarg;
		else
			return false;
	}
	return argc - optind == 5;
}

int main(int argc, char **argv)
{
	struct request_kind kind = {.type = "application/json"};
	if (!read_options(argc, argv, &kind)) {
		fputs(usage, stderr);
		return 2;
	}
	argv += optind;
	load.port = (int)strtol(argv[0], NULL, 10);
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	double seconds = strtod(argv[4], NULL);
	kind.path = argv[1];
	kind.body_file = argv[2];
	load.count = strtoul(argv[3], NULL, 10);
	if (load.epoll < 0 || load.count > MAX_CLIENTS || (load.pause > 0 && load.count > 1))
		fail("clients");
	make_request(kind);
	double begun = now();
	load.until = begun + seconds;
	load.count_from = begun + seconds / 5;
	drive();
	report(load.until - load.count_from, now() - begun);
	free(load.request);
	free(load.seconds);
	return 0;
}
