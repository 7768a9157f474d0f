#include "healthcheck.h"
#include "http/unix_socket.h"
#include "observe/clock.h"
#include "suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Takes one connection, sends the answer in two pieces once the request is there, and waits for the end. */
struct peer {
	int listener;
	const char *answer; /* NULL: none */
	char request[256];
	pthread_t thread;
};

static void *serve(void *user)
{
	struct peer *peer = user;
	int fd = accept(peer->listener, NULL, NULL);
	size_t length = 0;
	ssize_t got = 1;
	while (got > 0 && strstr(peer->request, "\r\n\r\n") == NULL) {
		got = recv(fd, peer->request + length, sizeof peer->request - 1 - length, 0);
		length += got > 0 ? (size_t)got : 0;
	}
	if (peer->answer != NULL) {
		size_t half = strlen(peer->answer) / 2;
		send(fd, peer->answer, half, MSG_NOSIGNAL);
		send(fd, peer->answer + half, strlen(peer->answer) - half, MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
	}
	char rest[64];
	while (recv(fd, rest, sizeof rest, 0) > 0)
		;
	close(fd);
	return NULL;
}

/* A socket listening at a free port of the loopback interface; listen is told the port. */
static int open_listener(uint16_t *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static char error[512];

static int check_against(const char *host, const char *answer, uint64_t timeout_ms, struct peer *peer)
{
	*peer = (struct peer){.answer = answer};
	uint16_t port;
	char listen[64];
	peer->listener = open_listener(&port);
	ck_assert_int_eq(pthread_create(&peer->thread, NULL, serve, peer), 0);
	snprintf(listen, sizeof listen, "%s:%u", host, port);
	error[0] = '\0';
	int status = healthcheck_run(listen, timeout_ms, error, sizeof error);
	ck_assert_int_eq(pthread_join(peer->thread, NULL), 0);
	close(peer->listener);
	return status;
}

START_TEST(status_200_is_health)
{
	struct peer peer;
	ck_assert_msg(check_against("127.0.0.1", "HTTP/1.1 200 OK\r\n\r\n{}", 20000, &peer) == 0, "%s",
	              error);
	ck_assert_int_eq(strncmp(peer.request, "GET /healthz HTTP/1.1\r\nHost: ", 29), 0);
}
END_TEST

START_TEST(every_interface_is_asked_through_the_loopback_one)
{
	struct peer peer;
	ck_assert_msg(check_against("0.0.0.0", "HTTP/1.1 200 OK\r\n\r\n{}", 20000, &peer) == 0, "%s", error);
}
END_TEST

START_TEST(another_answer_is_none)
{
	static const struct {
		const char *answer, *words;
	} cases[] = {{"HTTP/1.1 503 Service Unavailable\r\n\r\n", "status 503"},
	             {"SSH-2.0-something\r\n", "not HTTP"},
	             {"HTTP/1.1", "not HTTP"},
	             {"", "not HTTP"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct peer peer;
		ck_assert_int_eq(check_against("127.0.0.1", cases[i].answer, 20000, &peer), 1);
		ck_assert_msg(strstr(error, cases[i].words) != NULL && strstr(error, "127.0.0.1:") != NULL,
		              "%s", error);
	}
}
END_TEST

START_TEST(a_silent_peer_is_left_at_the_deadline)
{
	struct peer peer;
	uint64_t start = clock_now();
	ck_assert_int_eq(check_against("127.0.0.1", NULL, 50, &peer), 1);
	ck_assert_uint_ge(clock_now() - start, 50 * CLOCK_NS_PER_MS);
	ck_assert_msg(strstr(error, "timed out") != NULL, "%s", error);
}
END_TEST

START_TEST(nobody_listening_is_said)
{
	uint16_t port;
	char listen[64];
	close(open_listener(&port));
	snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
	ck_assert_int_eq(healthcheck_run(listen, 20000, error, sizeof error), 1);
	ck_assert_msg(strstr(error, "refused") != NULL, "%s", error);
}
END_TEST

START_TEST(a_unix_socket_is_asked_likewise)
{
	char folder[] = "/tmp/attnd-health-XXXXXX", listen[128];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(listen, sizeof listen, "unix:%s/socket", folder);
	ck_assert_int_eq(healthcheck_run(listen, 20000, error, sizeof error), 1);
	ck_assert_msg(strstr(error, listen) != NULL && strstr(error, "No such file") != NULL, "%s", error);
	struct unix_socket file;
	struct peer peer = {.answer = "HTTP/1.1 200 OK\r\n\r\n{}"};
	peer.listener = unix_socket_listen(&file, listen, 4, error, sizeof error);
	ck_assert_int_ge(peer.listener, 0);
	ck_assert_int_eq(fcntl(peer.listener, F_SETFL, 0), 0);
	ck_assert_int_eq(pthread_create(&peer.thread, NULL, serve, &peer), 0);
	int status = healthcheck_run(listen, 20000, error, sizeof error);
	ck_assert_int_eq(pthread_join(peer.thread, NULL), 0);
	unix_socket_remove(&file);
	close(peer.listener);
	rmdir(folder);
	ck_assert_msg(status == 0, "%s", error);
	ck_assert_int_eq(healthcheck_run("unix:relative", 20000, error, sizeof error), 1);
}
END_TEST

SUITE_MAIN("healthcheck", a_unix_socket_is_asked_likewise, status_200_is_health,
           every_interface_is_asked_through_the_loopback_one, another_answer_is_none,
           a_silent_peer_is_left_at_the_deadline, nobody_listening_is_said)
