#include "http/unix_socket.h"

#include "http/address.h"
#include "suite.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], place[128], error[512];

static void make_place(void)
{
	snprintf(folder, sizeof folder, "/tmp/attnd-unix-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(place, sizeof place, "unix:%s/socket", folder);
}

static const char *path(void)
{
	return place + strlen("unix:");
}

static void remove_place(void)
{
	unlink(path());
	ck_assert_int_eq(rmdir(folder), 0);
}

static int listen_here(struct unix_socket *file)
{
	error[0] = '\0';
	return unix_socket_listen(file, place, 4, error, sizeof error);
}

static bool answers(void)
{
	struct sockaddr_un address;
	ck_assert(unix_socket_address(place, &address));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool good = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
	close(fd);
	return good;
}

START_TEST(a_place_is_an_absolute_path_that_fits)
{
	struct sockaddr_un address;
	char text[256] = "unix:/";
	ck_assert(unix_socket_address("unix:/run/attnd/socket", &address));
	ck_assert_str_eq(address.sun_path, "/run/attnd/socket");
	ck_assert(!unix_socket_address("unix:", &address));
	ck_assert(!unix_socket_address("unix:socket", &address));
	ck_assert(!unix_socket_address("/run/socket", &address));
	memset(text + 6, 'x', 106);
	ck_assert(unix_socket_address(text, &address));
	text[112] = 'x';
	ck_assert(!unix_socket_address(text, &address));
}
END_TEST

START_TEST(the_socket_answers_is_for_owner_and_group_and_goes_away)
{
	make_place();
	struct unix_socket file;
	mode_t before = umask(0);
	int fd = listen_here(&file);
	umask(before);
	ck_assert_msg(fd >= 0, "%s", error);
	struct stat facts;
	ck_assert_int_eq(lstat(path(), &facts), 0);
	ck_assert_int_eq(facts.st_mode & 07777, 0660);
	char text[ADDRESS_TEXT_MAX];
	address_of_socket(fd, text);
	ck_assert_str_eq(text, place);
	ck_assert(answers());
	unix_socket_remove(&file);
	ck_assert_int_ne(lstat(path(), &facts), 0);
	unix_socket_remove(&file);
	close(fd);
	remove_place();
}
END_TEST

START_TEST(the_umask_takes_its_part_of_the_mode)
{
	make_place();
	struct unix_socket file;
	mode_t before = umask(0077);
	int fd = listen_here(&file);
	umask(before);
	struct stat facts;
	ck_assert_int_eq(lstat(path(), &facts), 0);
	ck_assert_int_eq(facts.st_mode & 07777, 0600);
	close(fd);
	remove_place();
}
END_TEST

START_TEST(a_socket_left_behind_is_replaced)
{
	make_place();
	struct unix_socket left, file;
	close(listen_here(&left));
	ck_assert(!answers());
	int fd = listen_here(&file);
	ck_assert_msg(fd >= 0, "%s", error);
	ck_assert(answers());
	close(fd);
	remove_place();
}
END_TEST

START_TEST(only_the_file_it_made_is_removed)
{
	make_place();
	struct unix_socket first, second;
	int old = listen_here(&first);
	unlink(path());
	int fd = listen_here(&second);
	unix_socket_remove(&first);
	ck_assert(answers());
	close(old);
	close(fd);
	remove_place();
}
END_TEST

START_TEST(a_socket_that_somebody_answers_on_is_left_alone)
{
	make_place();
	struct unix_socket first, second;
	int fd = listen_here(&first);
	ck_assert_int_lt(listen_here(&second), 0);
	ck_assert_ptr_nonnull(strstr(error, place));
	ck_assert_ptr_nonnull(strstr(error, "in use"));
	unix_socket_remove(&second);
	ck_assert(answers());
	close(fd);
	remove_place();
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
	make_place();
	FILE *other = fopen(path(), "w");
	fputs("mine", other);
	fclose(other);
	struct unix_socket file;
	ck_assert_int_lt(listen_here(&file), 0);
	ck_assert_ptr_nonnull(strstr(error, "exists"));
	ck_assert_int_eq(access(path(), F_OK), 0);
	remove_place();
}
END_TEST

START_TEST(a_place_that_cannot_be_is_told)
{
	struct unix_socket file;
	ck_assert_int_lt(unix_socket_listen(&file, "unix:/nowhere/socket", 4, error, sizeof error), 0);
	ck_assert_ptr_nonnull(strstr(error, "/nowhere/socket: No such file"));
	ck_assert_int_lt(unix_socket_listen(&file, "unix:here", 4, error, sizeof error), 0);
	ck_assert_ptr_nonnull(strstr(error, "absolute path"));
}
END_TEST

SUITE_MAIN("unix_socket", a_place_is_an_absolute_path_that_fits,
           the_socket_answers_is_for_owner_and_group_and_goes_away, the_umask_takes_its_part_of_the_mode,
           a_socket_left_behind_is_replaced, only_the_file_it_made_is_removed,
           a_socket_that_somebody_answers_on_is_left_alone, a_file_that_is_no_socket_is_left_alone,
           a_place_that_cannot_be_is_told)
