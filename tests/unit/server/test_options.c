#include "options.h"
#include "suite.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static char error[1024];

/* options_read with up to eight flags, and the environment given. */
static enum options_result read_with(struct options *options, char **envp, ...)
{
	char *argv[10] = {(char *)"attnd"};
	int argc = 1;
	va_list arguments;
	va_start(arguments, envp);
	for (char *flag; (flag = va_arg(arguments, char *)) != NULL;)
		argv[argc++] = flag;
	va_end(arguments);
	error[0] = '\0';
	return options_read(options, argc, argv, envp, error, sizeof error);
}

static char *nothing[] = {NULL};
#define read_flags(options, ...) read_with((options), nothing, __VA_ARGS__, NULL)

/* A file with the text, for the life of the test; its path. */
static char *write_file(const char *text)
{
	static char path[64];
	snprintf(path, sizeof path, "/tmp/attnd-options-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static enum options_result read_file(struct options *options, const char *text)
{
	char *path = write_file(text);
	enum options_result result = read_flags(options, "--config", path);
	unlink(path);
	return result;
}

static void expect_refused(enum options_result result, const char *origin, const char *words)
{
	ck_assert_int_eq(result, OPTIONS_BAD);
	ck_assert_msg(strstr(error, origin) != NULL && strstr(error, words) != NULL,
	              "\"%s\" lacks \"%s\" or \"%s\"", error, origin, words);
}

START_TEST(defaults_are_those_of_the_manual)
{
	struct options options;
	ck_assert_int_eq(read_with(&options, nothing, NULL), OPTIONS_OK);
	ck_assert_str_eq(options.listen, "127.0.0.1:8080");
	ck_assert_ptr_null(options.models);
	ck_assert_ptr_null(options.tokens_file);
	ck_assert_ptr_null(options.allowed_origins);
	ck_assert_ptr_null(options.allowed_hosts);
	ck_assert_ptr_null(options.config);
	ck_assert_uint_eq(options.max_connections, 1024);
	ck_assert_uint_eq(options.max_body, 64u << 20);
	ck_assert_uint_eq(options.max_reply, 256u << 20);
	ck_assert_uint_eq(options.max_elements, 16u << 20);
	ck_assert_uint_eq(options.max_inflight, 1u << 30);
	ck_assert_uint_eq(options.max_sequence_length, 16384);
	ck_assert_uint_eq(options.queue_limit, 1024);
	ck_assert_uint_eq(options.header_timeout_ms, 10000);
	ck_assert_uint_eq(options.body_timeout_ms, 60000);
	ck_assert_uint_eq(options.keepalive_timeout_ms, 75000);
	ck_assert_uint_eq(options.request_timeout_ms, 60000);
	ck_assert_uint_eq(options.drain_timeout_ms, 30000);
	ck_assert_uint_eq(options.min_reply_rate, 16384);
	ck_assert_uint_eq(options.workers, 0);
	ck_assert_uint_eq(options.max_batch, 32);
	ck_assert_uint_eq(options.max_batch_tokens, 16384);
	ck_assert_uint_eq(options.max_batch_scores, 64u << 20);
	ck_assert_uint_eq(options.batch_wait_ms, 0);
	ck_assert_uint_eq(options.batch_max_age_ms, 50);
	ck_assert_str_eq(options.kernels, "auto");
	ck_assert_str_eq(options.log_level, "info");
	ck_assert_str_eq(options.log_format, "text");
	ck_assert(!options.check_config && !options.healthcheck && !options.version && !options.help);
	options_clear(&options);
}
END_TEST

START_TEST(a_flag_takes_its_value_behind_an_equals_sign_or_as_the_next_argument)
{
	struct options options;
	ck_assert_int_eq(
	    read_flags(&options, "--max-batch=7", "--listen", "[::1]:0", "--check-config", "--models=a=b"),
	    OPTIONS_OK);
	ck_assert_uint_eq(options.max_batch, 7);
	ck_assert_str_eq(options.listen, "[::1]:0");
	ck_assert_str_eq(options.models, "a=b");
	ck_assert(options.check_config);
	options_clear(&options);
}
END_TEST

START_TEST(lists_of_hosts_and_origins_are_checked_item_by_item)
{
	struct options options;
	ck_assert_int_eq(read_flags(&options, "--allowed-hosts= a.example ,[::1]:80,",
	                            "--allowed-origins=https://a.example, http://localhost:3000",
	                            "--listen=unix:/run/attnd/socket"),
	                 OPTIONS_OK);
	ck_assert_str_eq(options.allowed_origins, "https://a.example, http://localhost:3000");
	options_clear(&options);
	static const char *const bad[] = {
	    "--allowed-hosts=a, http://b", "--allowed-hosts=,",
	    "--allowed-hosts=a b",         "--allowed-hosts=a;b",
	    "--allowed-hosts=*",           "--allowed-origins=https://a.example/",
	    "--allowed-origins=a.example", "--allowed-origins=https://a, null"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		expect_refused(read_flags(&options, bad[i]), "--allowed-", "comma list");
	expect_refused(read_flags(&options, "--listen=unix:socket"), "--listen", "absolute path");
}
END_TEST

START_TEST(the_last_of_a_repeated_flag_holds)
{
	struct options options;
	ck_assert_int_eq(
	    read_flags(&options, "--workers=1", "--workers=2", "--kernels=auto", "--kernels=auto"),
	    OPTIONS_OK);
	ck_assert_uint_eq(options.workers, 2);
	options_clear(&options);
}
END_TEST

START_TEST(sizes_count_in_powers_of_1024)
{
	static const struct {
		const char *text;
		size_t bytes;
	} cases[] = {{"--max-body=1", 1},          {"--max-body=3K", 3072},
	             {"--max-body=2m", 2u << 20},  {"--max-body=1G", 1u << 30},
	             {"--max-body=0001024", 1024}, {"--max-body=1024G", (size_t)1 << 40}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct options options;
		ck_assert_int_eq(read_flags(&options, cases[i].text), OPTIONS_OK);
		ck_assert_uint_eq(options.max_body, cases[i].bytes);
		options_clear(&options);
	}
}
END_TEST

START_TEST(a_flag_wins_over_the_environment_and_that_over_the_file)
{
	struct options options;
	char *path = write_file("max_batch = 1\nworkers = 1\nqueue_limit = 1\nmodels = /file\n");
	char *envp[] = {(char *)"ATTND_WORKERS=2", (char *)"ATTND_QUEUE_LIMIT=2", (char *)"HOME=/", NULL};
	ck_assert_int_eq(read_with(&options, envp, "--config", path, "--queue-limit=3", NULL), OPTIONS_OK);
	ck_assert_uint_eq(options.max_batch, 1);
	ck_assert_uint_eq(options.workers, 2);
	ck_assert_uint_eq(options.queue_limit, 3);
	ck_assert_str_eq(options.models, "/file");
	options_clear(&options);
	unlink(path);
}
END_TEST

START_TEST(the_environment_may_name_the_file_and_a_flag_another)
{
	struct options options;
	char variable[128], *path = write_file("max_batch = 9\n");
	snprintf(variable, sizeof variable, "ATTND_CONFIG=%s", path);
	char *envp[] = {variable, NULL};
	ck_assert_int_eq(read_with(&options, envp, NULL), OPTIONS_OK);
	ck_assert_uint_eq(options.max_batch, 9);
	options_clear(&options);
	expect_refused(read_with(&options, envp, "--config=/nowhere/attnd.conf", NULL),
	               "/nowhere/attnd.conf: ", "No such file");
	unlink(path);
}
END_TEST

START_TEST(a_bad_flag_is_refused_with_what_is_allowed)
{
	static const struct {
		const char *flag, *words;
	} cases[] = {
	    {"--max-batch=0", "from 1 to 65536"},
	    {"--max-batch=65537", "from 1 to 65536"},
	    {"--max-batch=-1", "from 1 to 65536"},
	    {"--max-batch=", "whole number"},
	    {"--max-batch=1x", "whole number"},
	    {"--max-batch=1KB", "whole number"},
	    {"--max-batch=1.5", "whole number"},
	    {"--max-batch= 1", "whole number"},
	    {"--max-body=99999999999999999999", "whole number"},
	    {"--max-body=18014398509481984K", "whole number"},
	    {"--max-sequence-length=65537", "to 65536"},
	    {"--batch-wait=1K", "milliseconds"},
	    {"--request-timeout=0", "from 1"},
	    {"--kernels=fast", "not one of auto"},
	    {"--log-level=loud", "error warning info debug"},
	    {"--log-format=xml", "text json"},
	    {"--listen=127.0.0.1", "HOST:PORT"},
	    {"--listen=:80", "HOST:PORT"},
	    {"--listen=host:65536", "0 to 65535"},
	    {"--listen=host:http", "HOST:PORT"},
	    {"--listen=::1:80", "HOST:PORT"},
	    {"--models=", "empty"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct options options;
		char name[64];
		snprintf(name, sizeof name, "%.*s: ", (int)strcspn(cases[i].flag, "="), cases[i].flag);
		expect_refused(read_flags(&options, cases[i].flag), name, cases[i].words);
	}
}
END_TEST

START_TEST(an_unknown_flag_is_refused_with_the_nearest)
{
	struct options options;
	expect_refused(read_flags(&options, "--max-bach=3"), "--max-bach=3", "--max-batch is the nearest");
	expect_refused(read_flags(&options, "--xyzzy"), "--xyzzy", "--help lists them");
	expect_refused(read_flags(&options, "-v"), "-v", "not a flag");
	expect_refused(read_flags(&options, "--"), "--", "not a flag");
	expect_refused(read_flags(&options, "serve"), "serve", "not a flag");
	expect_refused(read_flags(&options, "--max_batch=1"), "--max_batch", "--max-batch is the nearest");
	expect_refused(read_flags(&options, "--help=yes"), "--help", "takes no value");
	expect_refused(read_flags(&options, "--max-batch"), "--max-batch", "needs a value");
}
END_TEST

START_TEST(a_bad_variable_is_refused_by_its_name_even_where_a_flag_wins)
{
	struct options options;
	char *envp[] = {(char *)"ATTND_MAX_BATCH=many", NULL};
	expect_refused(read_with(&options, envp, "--max-batch=1", NULL), "ATTND_MAX_BATCH", "many");
	char *empty[] = {(char *)"ATTND_LISTEN=", NULL};
	expect_refused(read_with(&options, empty, NULL), "ATTND_LISTEN", "empty");
}
END_TEST

START_TEST(variables_that_are_no_setting_are_left_alone)
{
	struct options options;
	char *envp[] = {(char *)"ATTND_PORT=tcp://10.0.0.1:8080", (char *)"ATTND_HELP=1",
	                (char *)"ATTND_MAX_BATCHES=x", NULL};
	ck_assert_int_eq(read_with(&options, envp, NULL), OPTIONS_OK);
	ck_assert(!options.help);
	options_clear(&options);
}
END_TEST

START_TEST(a_bad_line_of_the_file_is_refused_with_its_number)
{
	static const struct {
		const char *text, *line, *words;
	} cases[] = {
	    {"# a comment\n\nmax_batch = 0\n", ":3: max_batch", "from 1 to 65536"},
	    {"workers = 1\nmax_bach = 2\n", ":2: ", "\"max_batch\" is the nearest"},
	    {"max-batch = 2\n", ":1: ", "\"max_batch\" is the nearest"},
	    {"xyzzy = 2\n", ":1: ", "no key \"xyzzy\""},
	    {"config = /other\n", ":1: ", "no key"},
	    {"help = 1\n", ":1: ", "no key"},
	    {"workers = 1\n[limits]\nmax_batch = 2\n", ":2: ", "section"},
	    {"workers = 1\n\n  [empty]\n", ":3: ", "section"},
	    {"workers = 1\nmax_batch\n", ":2: ", "key = value"},
	    {"workers = 1\nmax_batch = 2\nworkers = 1\n", ":3: ", "second time"},
	    {"workers = 1\n  2\n", ":2: ", "second time"},
	    {"workers =\n", ":1: workers", "whole number"},
	    {"models =\n", ":1: models", "empty"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct options options;
		expect_refused(read_file(&options, cases[i].text), cases[i].line, cases[i].words);
		ck_assert_ptr_nonnull(strstr(error, "/tmp/attnd-options-"));
	}
}
END_TEST

START_TEST(a_line_that_is_too_long_is_refused)
{
	char text[1024] = "workers = 1\nmodels = ";
	memset(text + strlen(text), 'x', 900);
	struct options options;
	expect_refused(read_file(&options, text), ":2: ", "longer than");
}
END_TEST

START_TEST(a_byte_of_value_0_is_refused_wherever_it_stands)
{
	static const char *const texts[] = {"workers = 1\n# \1 2\n", "workers = 1\nmodels = a\1b"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char *path = write_file(texts[i]);
		FILE *file = fopen(path, "r+");
		ck_assert_int_eq(fseek(file, (long)strcspn(texts[i], "\1"), SEEK_SET), 0);
		ck_assert_int_eq(fputc('\0', file), 0);
		fclose(file);
		struct options options;
		expect_refused(read_flags(&options, "--config", path), ":2: ", "a byte of value 0");
		unlink(path);
	}
}
END_TEST

START_TEST(a_directory_is_no_file_of_settings)
{
	struct options options;
	expect_refused(read_flags(&options, "--config=/tmp"), "/tmp: ", "directory");
}
END_TEST

START_TEST(comments_and_space_do_not_count)
{
	struct options options;
	ck_assert_int_eq(read_file(&options, "; one\n# two\n\n  max_batch=5 ; words\n"), OPTIONS_OK);
	ck_assert_uint_eq(options.max_batch, 5);
	options_clear(&options);
}
END_TEST

START_TEST(help_and_version_are_given_whatever_the_environment_holds)
{
	struct options options;
	char *envp[] = {(char *)"ATTND_MAX_BATCH=many", (char *)"ATTND_CONFIG=/nowhere", NULL};
	ck_assert_int_eq(read_with(&options, envp, "--help", NULL), OPTIONS_OK);
	ck_assert(options.help);
	options_clear(&options);
	ck_assert_int_eq(read_with(&options, envp, "--version", NULL), OPTIONS_OK);
	ck_assert(options.version);
	options_clear(&options);
}
END_TEST

/* ---- the sample file, --help and the table say the same */

static char *help_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	ck_assert_ptr_nonnull(out);
	options_print_help(out);
	fclose(out);
	return text;
}

/* One line of --help, in its parts; false for a line of another kind. */
struct help_row {
	char name[64], value[32], help[128], fallback[64];
};

static bool parse_help(const char *line, struct help_row *row)
{
	*row = (struct help_row){0};
	if (sscanf(line, "  --%63[a-z-] %31[A-Z:] %127[^(\n]", row->name, row->value, row->help) != 3)
		return false;
	const char *fallback = strstr(line, "default ");
	if (fallback != NULL)
		snprintf(row->fallback, sizeof row->fallback, "%.*s", (int)strcspn(fallback + 8, ")"),
		         fallback + 8);
	for (size_t end = strlen(row->help); end > 0 && row->help[end - 1] == ' '; end--)
		row->help[end - 1] = '\0';
	for (char *p = row->name; *p != '\0'; p++)
		*p = *p == '-' ? '_' : *p;
	return strcmp(row->name, "config") != 0;
}

static char *sample_text(void)
{
	FILE *file = fopen("config/attnd.conf", "re");
	ck_assert_msg(file != NULL, "config/attnd.conf; tests run in the root of the sources");
	static char text[16384];
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* The comment above a key of the sample says what --help says, with the unit; its value is the default. */
static void expect_sampled(const struct help_row *row, const char *sample)
{
	char key[80], comment[256];
	snprintf(key, sizeof key, "\n#%s = ", row->name);
	const char *found = strstr(sample, key);
	ck_assert_msg(found != NULL, "%s is not in the sample", row->name);
	const char *value = found + strlen(key);
	if (row->fallback[0] != '\0')
		ck_assert_msg(strncmp(value, row->fallback, strlen(row->fallback)) == 0 &&
		                  value[strlen(row->fallback)] == '\n',
		              "%s: not the default %s", row->name, row->fallback);
	snprintf(comment, sizeof comment, "\n# %c%s", toupper((unsigned char)row->help[0]), row->help + 1);
	const char *above = strstr(sample, comment);
	ck_assert_msg(above != NULL && above < found &&
	                  memchr(above + 1, '\n', (size_t)(found - above - 1)) == NULL,
	              "%s: the line above is not%s", row->name, comment);
	const char *unit = strcmp(row->value, "BYTES") == 0 ? "in bytes."
	                   : strcmp(row->value, "MS") == 0  ? "in milliseconds."
	                                                    : ".";
	ck_assert_msg(strncmp(found - strlen(unit), unit, strlen(unit)) == 0, "%s: not %s", row->name, unit);
}

START_TEST(the_sample_file_has_each_setting_with_its_default_and_unit_and_no_other)
{
	char *help = help_text(), *save = NULL;
	const char *sample = sample_text();
	size_t rows = 0, keys = 0;
	for (char *line = strtok_r(help, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		struct help_row row;
		if (!parse_help(line, &row))
			continue;
		rows++;
		expect_sampled(&row, sample);
	}
	for (const char *p = sample; (p = strstr(p, "\n#")) != NULL; p++)
		keys += islower((unsigned char)p[2]) != 0;
	ck_assert_uint_eq(rows, keys);
	ck_assert_uint_eq(rows, 27);
	free(help);
}
END_TEST

START_TEST(the_sample_file_is_accepted_and_changes_nothing_without_its_comment_signs)
{
	char *sample = sample_text();
	for (char *p = sample; (p = strstr(p, "\n#")) != NULL; p++)
		if (islower((unsigned char)p[2]))
			p[1] = '\n';
	struct options plain, sampled;
	ck_assert_int_eq(read_with(&plain, nothing, NULL), OPTIONS_OK);
	ck_assert_msg(read_file(&sampled, sample) == OPTIONS_OK, "%s", error);
	ck_assert_str_eq(plain.listen, sampled.listen);
	ck_assert_str_eq(plain.kernels, sampled.kernels);
	ck_assert_str_eq(plain.log_level, sampled.log_level);
	ck_assert_str_eq(plain.log_format, sampled.log_format);
	size_t from = offsetof(struct options, max_connections), to = offsetof(struct options, kernels);
	ck_assert_mem_eq((char *)&plain + from, (char *)&sampled + from, to - from);
	options_clear(&plain);
	options_clear(&sampled);
}
END_TEST

START_TEST(help_lists_every_flag_that_is_taken)
{
	static const char *const flags[] = {
	    "--config",
	    "--listen",
	    "--models",
	    "--tokens-file",
	    "--allowed-origins",
	    "--allowed-hosts",
	    "--workers",
	    "--max-batch",
	    "--max-batch-tokens",
	    "--batch-wait",
	    "--queue-limit",
	    "--max-body",
	    "--max-reply",
	    "--max-elements",
	    "--max-inflight",
	    "--max-sequence-length",
	    "--request-timeout",
	    "--drain-timeout",
	    "--kernels",
	    "--log-level",
	    "--check-config",
	    "--healthcheck",
	    "--version",
	    "--help",
	    "--log-format",
	    "--max-connections",
	    "--header-timeout",
	    "--body-timeout",
	    "--keepalive-timeout",
	    "--min-reply-rate",
	    "--max-batch-scores",
	    "--batch-max-age",
	};
	char *help = help_text();
	size_t listed = 0;
	for (const char *p = help; (p = strstr(p, "\n  --")) != NULL; p++)
		listed++;
	ck_assert_uint_eq(listed, sizeof flags / sizeof flags[0]);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		char line[64];
		snprintf(line, sizeof line, "\n  %s ", flags[i]);
		ck_assert_msg(strstr(help, line) != NULL, "%s", flags[i]);
	}
	free(help);
}
END_TEST

SUITE_MAIN("options", defaults_are_those_of_the_manual,
           a_flag_takes_its_value_behind_an_equals_sign_or_as_the_next_argument,
           lists_of_hosts_and_origins_are_checked_item_by_item, the_last_of_a_repeated_flag_holds,
           sizes_count_in_powers_of_1024, a_flag_wins_over_the_environment_and_that_over_the_file,
           the_environment_may_name_the_file_and_a_flag_another, a_bad_flag_is_refused_with_what_is_allowed,
           an_unknown_flag_is_refused_with_the_nearest,
           a_bad_variable_is_refused_by_its_name_even_where_a_flag_wins,
           variables_that_are_no_setting_are_left_alone, a_bad_line_of_the_file_is_refused_with_its_number,
           a_line_that_is_too_long_is_refused, a_byte_of_value_0_is_refused_wherever_it_stands,
           a_directory_is_no_file_of_settings, comments_and_space_do_not_count,
           help_and_version_are_given_whatever_the_environment_holds,
           the_sample_file_has_each_setting_with_its_default_and_unit_and_no_other,
           the_sample_file_is_accepted_and_changes_nothing_without_its_comment_signs,
           help_lists_every_flag_that_is_taken)
