#include "text/tokenizer.h"

#include "model_files.h"
#include "suite.h"
#include "tokenizer_files.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define DATA "tests/text/data/"

static const char *const names[] = {"bert",      "bert_cased", "clip",  "gpt2",           "llama2", "llama3",
                                    "metaspace", "pieces",     "qwen2", "roberta_prefix", "words"};
#define NAMES (sizeof names / sizeof names[0])

/* ---- the reference's words */

/* The next line of a text, its end taken off. */
static char *next_line(char **rest)
{
	char *line = strsep(rest, "\n");
	ck_assert_ptr_nonnull(line);
	return line;
}

/* Compares what the tokenizer makes of the lines with the rows of a file. */
static void compare_rows(const struct tokenizer *tokenizer, const char *name)
{
	char path[256];
	size_t size;
	snprintf(path, sizeof path, DATA "%s/tokens.txt", name);
	char *lines = file_read(DATA "lines.jsonl", &size), *rest = lines;
	char *rows = file_read(path, &size), *row_rest = rows;
	size_t count = 0;
	for (; rest[0] != '\0'; count++) {
		json_t *line = json_loads(next_line(&rest), JSON_DECODE_ANY, NULL);
		char *wanted = next_line(&row_rest);
		char *found =
		    tokenizer_row(tokenizer, json_string_value(line), json_string_length(line), true);
		ck_assert_msg(strcmp(found, wanted) == 0, "%s, '%s':\nwanted %s\nfound  %s", name,
		              json_string_value(line), wanted, found);
		free(found);
		json_decref(line);
	}
	ck_assert_uint_gt(count, 30);
	free(lines);
	free(rows);
}

START_TEST(ids_and_ranges_are_those_of_the_reference)
{
	for (size_t i = 0; i < NAMES; i++) {
		char path[256];
		snprintf(path, sizeof path, DATA "%s", names[i]);
		struct tokenizer *tokenizer = tokenizer_in(path);
		compare_rows(tokenizer, names[i]);
		tokenizer_free(tokenizer);
	}
}
END_TEST

/* ---- the older forms */

static json_t *tokenizer_json(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, DATA "%s/tokenizer.json", name);
	json_t *root = json_load_file(path, 0, NULL);
	ck_assert_ptr_nonnull(root);
	return root;
}

/* Writes a vocabulary by lines. */
static void write_lines(const char *folder, json_t *vocabulary)
{
	size_t count = json_object_size(vocabulary), size = 0;
	const char **tokens = calloc(count, sizeof *tokens);
	const char *token;
	json_t *id;
	json_object_foreach(vocabulary, token, id)
	{
		tokens[json_integer_value(id)] = token;
		size += strlen(token) + 1;
	}
	char *text = calloc(1, size + 1), *at = text;
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, size + 1 - (size_t)(at - text), "%s\n", tokens[i]);
	folder_write_text(folder, "vocab.txt", text);
	free(text);
	free(tokens);
}

/* Writes vocab.json and merges.txt. */
static void write_pair(const char *folder, const json_t *model)
{
	char *vocabulary = json_dumps(json_object_get(model, "vocab"), 0);
	folder_write_text(folder, "vocab.json", vocabulary);
	free(vocabulary);
	const json_t *merges = json_object_get(model, "merges");
	size_t room = 64 * json_array_size(merges) + 64;
	char *text = calloc(1, room);
	size_t used = (size_t)snprintf(text, room, "#version: 0.2\n");
	for (size_t i = 0; i < json_array_size(merges); i++) {
		const json_t *merge = json_array_get(merges, i);
		used += (size_t)snprintf(text + used, room - used, "%s %s\n",
		                         json_string_value(json_array_get(merge, 0)),
		                         json_string_value(json_array_get(merge, 1)));
	}
	folder_write_text(folder, "merges.txt", text);
	free(text);
}

/* A folder in an older form, with that tokenizer_config.json, does as the tokenizer.json does. */
static void check_older(const char *name, const char *config)
{
	char *folder = folder_make();
	json_t *root = tokenizer_json(name), *model = json_object_get(root, "model");
	if (json_object_get(model, "merges") != NULL)
		write_pair(folder, model);
	else
		write_lines(folder, json_object_get(model, "vocab"));
	folder_write_text(folder, "tokenizer_config.json", config);
	struct tokenizer *tokenizer = tokenizer_in(folder);
	compare_rows(tokenizer, name);
	tokenizer_free(tokenizer);
	json_decref(root);
	folder_remove(folder);
}

START_TEST(older_files_do_as_the_tokenizer_json_of_their_class)
{
	check_older("bert", "{}");
	check_older("bert_cased", "{\"do_lower_case\":false}");
	check_older("gpt2", "{\"tokenizer_class\":\"GPT2Tokenizer\"}");
	check_older("roberta_prefix",
	            "{\"tokenizer_class\":\"BartTokenizerFast\",\"add_prefix_space\":true}");
	check_older("clip", "{\"tokenizer_class\":\"CLIPTokenizer\"}");
}
END_TEST

START_TEST(a_class_that_is_not_known_is_named)
{
	char *folder = folder_make();
	struct tokenizer *tokenizer;
	attn_error err = {.status = ATTN_OK};
	folder_write_text(folder, "vocab.json", "{\"a\":0}");
	folder_write_text(folder, "merges.txt", "");
	folder_write_text(folder, "tokenizer_config.json", "{\"tokenizer_class\":\"XyzTokenizer\"}");
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &err), ATTN_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.message, "XyzTokenizer"));
	folder_write_text(folder, "tokenizer_config.json", "{}");
	folder_write_text(folder, "config.json", "{\"model_type\":\"llama\"}");
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &err), ATTN_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.message, "llama"));
	folder_remove(folder);
}
END_TEST

START_TEST(a_folder_without_tokenizer_files_has_none)
{
	char *folder = folder_make();
	struct tokenizer *tokenizer;
	attn_error err = {.status = ATTN_OK};
	folder_write_text(folder, "config.json", "{}");
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &err), ATTN_OK);
	ck_assert_ptr_null(tokenizer);
	folder_remove(folder);
}
END_TEST

/* ---- characters */

START_TEST(a_vocabulary_of_characters_takes_each_by_itself_and_adds_nothing)
{
	char *folder = folder_make();
	folder_write_text(
	    folder, "vocab.json",
	    "{\"<pad>\":0,\"<s>\":1,\"<unk>\":2,\"7\":3,\"+\":4,\"5\":5,\"=\":6,\"\\u00e9\":7}");
	struct tokenizer *tokenizer = tokenizer_in(folder);
	char *row = tokenizer_row(tokenizer, "7+5=\xC3\xA9x<s>", 10, true);
	ck_assert_str_eq(row, "3:0:1 4:1:2 5:2:3 6:3:4 7:4:6 2:6:7 1:7:10");
	free(row);
	ck_assert_str_eq(tokenizer_token(tokenizer, 7), "\xC3\xA9");
	ck_assert_uint_eq(tokenizer_size(tokenizer), 8);
	ck_assert_ptr_null(tokenizer_token(tokenizer, 8));
	ck_assert_ptr_null(tokenizer_token(tokenizer, -1));
	tokenizer_free(tokenizer);
	folder_remove(folder);
}
END_TEST

START_TEST(a_character_without_a_token_is_named_where_there_is_none_for_the_unknown)
{
	char *folder = folder_make();
	folder_write_text(folder, "vocab.json", "{\"7\":0,\"+\":1}");
	struct tokenizer *tokenizer = tokenizer_in(folder);
	struct problem problem = tokenizer_problem(tokenizer, "7\xE2\x82\xAC", 4);
	ck_assert_int_eq(problem.code, PROBLEM_BAD_VALUE);
	ck_assert_ptr_nonnull(strstr(problem.detail, "'\xE2\x82\xAC'"));
	tokenizer_free(tokenizer);
	folder_remove(folder);
}
END_TEST

START_TEST(words_without_merges_are_refused)
{
	char *folder = folder_make();
	struct tokenizer *tokenizer;
	attn_error err = {.status = ATTN_OK};
	folder_write_text(folder, "vocab.json", "{\"a\":0,\"word\":1}");
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &err), ATTN_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.message, "'word'"));
	folder_remove(folder);
}
END_TEST

/* ---- SentencePiece */

START_TEST(sentencepiece_models_are_opened_and_say_that_they_read_no_text)
{
	char *folder = folder_make();
	folder_write_text(folder, "spiece.model", "not read");
	folder_write_text(folder, "vocab.json", "{\"</s>\":0,\"\\u2581a\":1,\"b\":2}");
	struct tokenizer *tokenizer = tokenizer_in(folder);
	ck_assert_str_eq(tokenizer_token(tokenizer, 1), "\xE2\x96\x81"
	                                                "a");
	struct problem problem = tokenizer_problem(tokenizer, "a", 1);
	ck_assert_int_eq(problem.code, PROBLEM_NO_TOKENIZER);
	ck_assert_ptr_nonnull(strstr(problem.detail, "SentencePiece"));
	tokenizer_free(tokenizer);
	tokenizer = tokenizer_of("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],"
	                         "[\"a\",-1.5]]},\"normalizer\":{\"type\":\"Precompiled\"}}");
	ck_assert_str_eq(tokenizer_token(tokenizer, 1), "a");
	ck_assert_ptr_nonnull(tokenizer_refusal(tokenizer));
	tokenizer_free(tokenizer);
	folder_remove(folder);
}
END_TEST

/* ---- texts */

START_TEST(the_empty_text_has_the_special_tokens_only)
{
	struct tokenizer *tokenizer = tokenizer_in(DATA "bert");
	char *with = tokenizer_row(tokenizer, "", 0, true), *without = tokenizer_row(tokenizer, "", 0, false);
	ck_assert_str_eq(with, "2:0:0 3:0:0");
	ck_assert_str_eq(without, "");
	free(with);
	free(without);
	tokenizer_free(tokenizer);
}
END_TEST

START_TEST(what_is_not_utf8_is_refused_with_its_place)
{
	struct tokenizer *tokenizer = tokenizer_in(DATA "gpt2");
	static const char *const texts[] = {"ab\xFF", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80",
	                                    "ab\xE2\x82"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct problem problem = tokenizer_problem(tokenizer, texts[i], strlen(texts[i]));
		ck_assert_int_eq(problem.code, PROBLEM_BAD_ENCODING);
		ck_assert_ptr_nonnull(strstr(problem.detail, "byte 2"));
	}
	tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_nul_in_a_text_is_a_character_like_others)
{
	struct tokenizer *tokenizer = tokenizer_in(DATA "gpt2");
	char *row = tokenizer_row(tokenizer, "a\0b", 3, true);
	char *other = tokenizer_row(tokenizer, "a\1b", 3, true);
	ck_assert_str_eq(strchr(row, ' ') + strcspn(strchr(row, ' '), ":"),
	                 strchr(other, ' ') + strcspn(strchr(other, ' '), ":"));
	ck_assert_str_ne(row, other);
	free(row);
	free(other);
	tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_text_over_the_limit_is_refused)
{
	struct tokenizer *tokenizer = tokenizer_in(DATA "gpt2");
	char *text = malloc(TOKENIZER_TEXT_MAX + 1);
	memset(text, 'a', TOKENIZER_TEXT_MAX + 1);
	struct problem problem = tokenizer_problem(tokenizer, text, TOKENIZER_TEXT_MAX + 1);
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	free(text);
	tokenizer_free(tokenizer);
}
END_TEST

/* Hostile texts of the largest size, each one word or one run to some step: with work that grows with the
 * square of the length none of them ends within the time of a test. */
START_TEST(a_word_of_a_megabyte_takes_no_quadratic_time)
{
	static const char *const units[] = {"a", " ", "\n", "\xCC\x81", "\xE4\xB8\x80"};
	static const char *const some[] = {"bert", "clip", "llama2", "llama3"};
	char *text = malloc(TOKENIZER_TEXT_MAX);
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		char path[256];
		snprintf(path, sizeof path, DATA "%s", some[i]);
		struct tokenizer *tokenizer = tokenizer_in(path);
		for (size_t j = 0; j < sizeof units / sizeof units[0]; j++) {
			size_t unit = strlen(units[j]), length = TOKENIZER_TEXT_MAX / unit * unit;
			struct text_tokens tokens;
			struct problem problem = {.code = PROBLEM_NONE};
			for (size_t at = 0; at < length; at += unit)
				memcpy(text + at, units[j], unit);
			bool good = tokenizer_encode(tokenizer, text, length, true, "", &tokens, &problem);
			ck_assert_msg(good, "%s: %s", some[i], problem.detail);
			text_tokens_clear(&tokens);
		}
		tokenizer_free(tokenizer);
	}
	free(text);
}
END_TEST

START_TEST(what_grows_without_bound_is_refused)
{
	struct tokenizer *tokenizer =
	    tokenizer_of("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},"
	                 "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":"
	                 "\"yyyyyyyyyyyyyyyyyyyy\"}}");
	char text[4096];
	memset(text, 'x', sizeof text);
	struct problem problem = tokenizer_problem(tokenizer, text, sizeof text);
	ck_assert_int_eq(problem.code, PROBLEM_TOO_MANY_ELEMENTS);
	tokenizer_free(tokenizer);
}
END_TEST

START_TEST(an_expression_that_takes_too_many_steps_ends)
{
	struct tokenizer *tokenizer =
	    tokenizer_of("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},"
	                 "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:a+)+[bc]\"},"
	                 "\"behavior\":\"Isolated\",\"invert\":false}}");
	char text[64];
	memset(text, 'a', sizeof text);
	struct problem problem = tokenizer_problem(tokenizer, text, sizeof text);
	ck_assert_int_eq(problem.code, PROBLEM_BAD_VALUE);
	ck_assert_ptr_nonnull(strstr(problem.detail, "steps"));
	tokenizer_free(tokenizer);
}
END_TEST

/* ---- decoding */

static void check_decoded(const struct tokenizer *tokenizer, const char *text, const char *wanted)
{
	struct text_tokens tokens;
	struct problem problem = {.code = PROBLEM_NONE};
	char *back;
	size_t length;
	ck_assert(tokenizer_encode(tokenizer, text, strlen(text), true, "", &tokens, &problem));
	ck_assert(tokenizer_decode(tokenizer, tokens.ids, tokens.count, true, &back, &length, &problem));
	ck_assert_str_eq(back, wanted);
	ck_assert_uint_eq(length, strlen(wanted));
	free(back);
	text_tokens_clear(&tokens);
}

START_TEST(byte_level_tokens_decode_to_the_text_they_came_from)
{
	static const char text[] = "It's na\xC3\xAFve \xF0\x9F\x98\x80\n  \t x";
	static const char *const lossless[] = {"gpt2", "llama3", "qwen2"};
	for (size_t i = 0; i < 3; i++) {
		char path[256];
		snprintf(path, sizeof path, DATA "%s", lossless[i]);
		struct tokenizer *tokenizer = tokenizer_in(path);
		check_decoded(tokenizer, text, text);
		tokenizer_free(tokenizer);
	}
}
END_TEST

START_TEST(bytes_that_make_no_character_decode_to_a_replacement)
{
	struct tokenizer *tokenizer = tokenizer_of(
	    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\xC3\xA2\":1,\"\xC4\xA4\":2},\"merges\":[]},"
	    "\"decoder\":{\"type\":\"ByteLevel\"}}");
	const int64_t ids[] = {0, 1, 2, 0, 1};
	struct problem problem = {.code = PROBLEM_NONE};
	char *text;
	size_t length;
	ck_assert(tokenizer_decode(tokenizer, ids, 5, true, &text, &length, &problem));
	ck_assert_str_eq(text, "a\xEF\xBF\xBD"
	                       "a\xEF\xBF\xBD");
	free(text);
	tokenizer_free(tokenizer);
}
END_TEST

/* ---- what is refused */

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

START_TEST(what_a_file_asks_that_is_not_done_is_named)
{
	static const char *const cases[][2] = {
	    {"{}", "model"},
	    {"[]", "not a JSON object"},
	    {"{\"model\":{\"type\":\"Magic\"}}", "Magic"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "merge 0"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 0"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "both"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "'a'"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}", "dropout"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"?\"}}", "'?'"},
	    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"fuse_unk\":3}}", "fuse_unk"},
	    {"{" MODEL ",\"normalizer\":{\"type\":\"Nmt\"}}", "Nmt"},
	    {"{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Xy\"}]}}", "Xy"},
	    {"{" MODEL ",\"normalizer\":{}}", "type"},
	    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "UnicodeScripts"},
	    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\\\\b\"},"
	     "\"behavior\":\"Isolated\"}}",
	     "\\b"},
	    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},"
	     "\"behavior\":\"Isolated\"}}",
	     "(a"},
	    {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
	     "\"behavior\":\"Sideways\"}}",
	     "Sideways"},
	    {"{" MODEL ",\"post_processor\":{\"type\":\"Odd\"}}", "Odd"},
	    {"{" MODEL
	     ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",7],\"sep\":[\"a\",0]}}",
	     "7"},
	    {"{" MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],"
	     "\"special_tokens\":{}}}",
	     "template"},
	    {"{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", "CTC"},
	    {"{" MODEL ",\"added_tokens\":[{\"id\":9,\"content\":\"<x>\"}]}", "<x>"},
	    {"{" MODEL ",\"added_tokens\":[{\"id\":0,\"content\":\"\"}]}", "added token"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *message = tokenizer_refused(cases[i][0]);
		ck_assert_msg(strstr(message, cases[i][1]) != NULL, "%s: %s", cases[i][0], message);
		free(message);
	}
}
END_TEST

START_TEST(a_message_names_the_file)
{
	char *folder = folder_make();
	struct tokenizer *tokenizer;
	attn_error err = {.status = ATTN_OK};
	folder_write_text(folder, "tokenizer.json", "{\"model\": \xFF}");
	ck_assert_int_eq(tokenizer_open(folder, &tokenizer, &err), ATTN_FORMAT);
	ck_assert_ptr_nonnull(strstr(err.message, "tokenizer.json"));
	folder_remove(folder);
}
END_TEST

SUITE_MAIN("tokenizer", ids_and_ranges_are_those_of_the_reference,
           older_files_do_as_the_tokenizer_json_of_their_class, a_class_that_is_not_known_is_named,
           a_folder_without_tokenizer_files_has_none,
           a_vocabulary_of_characters_takes_each_by_itself_and_adds_nothing,
           a_character_without_a_token_is_named_where_there_is_none_for_the_unknown,
           words_without_merges_are_refused, sentencepiece_models_are_opened_and_say_that_they_read_no_text,
           the_empty_text_has_the_special_tokens_only, what_is_not_utf8_is_refused_with_its_place,
           a_nul_in_a_text_is_a_character_like_others, a_text_over_the_limit_is_refused,
           a_word_of_a_megabyte_takes_no_quadratic_time, what_grows_without_bound_is_refused,
           an_expression_that_takes_too_many_steps_ends, byte_level_tokens_decode_to_the_text_they_came_from,
           bytes_that_make_no_character_decode_to_a_replacement, what_a_file_asks_that_is_not_done_is_named,
           a_message_names_the_file)
