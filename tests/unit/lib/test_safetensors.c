#include "attn.h"

#include "model_files.h"
#include "suite.h"

#include <endian.h>
#include <glob.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

/* Parses a header before data_size bytes; the caller frees both. */
static attn_status parse(const char *header, size_t data_size, char **bytes, attn_safetensors **file,
                         attn_error *err)
{
	size_t size;
	*bytes = safetensors_bytes(header, data_size, &size);
	return attn_safetensors_parse(*bytes, size, file, err);
}

/* The header is refused, with a message that has both words. */
static void refused(const char *header, size_t data_size, const char *name, const char *reason)
{
	char *bytes;
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(parse(header, data_size, &bytes, &file, &err), ATTN_FORMAT);
	ck_assert_int_eq(err.status, ATTN_FORMAT);
	ck_assert_msg(strstr(err.message, name) && strstr(err.message, reason),
	              "\"%s\" lacks \"%s\" or \"%s\"", err.message, name, reason);
	ck_assert_ptr_null(file);
	free(bytes);
}

static attn_safetensors *accepted(const char *header, size_t data_size, char **bytes)
{
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	attn_status status = parse(header, data_size, bytes, &file, &err);
	ck_assert_msg(status == ATTN_OK, "%s", err.message);
	return file;
}

START_TEST(tensors_come_by_order_of_data_and_by_name)
{
	char *bytes;
	attn_safetensors *file = accepted("{\"z\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
	                                  "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]},"
	                                  "\"m\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
	                                  "\"__metadata__\":{\"format\":\"pt\",\"\":\"empty key\"}}   ",
	                                  19, &bytes);
	ck_assert_uint_eq(attn_safetensors_count(file), 3);
	const char *const order[] = {"z", "m", "b"};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_str_eq(attn_safetensors_at(file, i)->name, order[i]);
		ck_assert_ptr_eq(attn_safetensors_find(file, order[i]), attn_safetensors_at(file, i));
	}
	const attn_stored_tensor *z = attn_safetensors_find(file, "z");
	ck_assert(z->dtype == ATTN_FLOAT32 && z->rank == 2 && z->shape[0] == 2 && z->shape[1] == 1);
	ck_assert(z->bytes == 8 && *(const unsigned char *)z->data == 0);
	const attn_stored_tensor *b = attn_safetensors_find(file, "b");
	ck_assert(b->dtype == ATTN_UINT8 && b->bytes == 3 && *(const unsigned char *)b->data == 16);
	ck_assert_ptr_null(attn_safetensors_find(file, "a"));
	ck_assert_ptr_null(attn_safetensors_find(file, "__metadata__"));
	ck_assert_str_eq(attn_safetensors_metadata(file, "format"), "pt");
	ck_assert_str_eq(attn_safetensors_metadata(file, ""), "empty key");
	ck_assert_ptr_null(attn_safetensors_metadata(file, "other"));
	ck_assert_str_eq(attn_safetensors_metadata_next(file, NULL), "format");
	ck_assert_str_eq(attn_safetensors_metadata_next(file, "format"), "");
	ck_assert_ptr_null(attn_safetensors_metadata_next(file, ""));
	attn_safetensors_free(file);
	free(bytes);
}
END_TEST

START_TEST(every_dtype_of_the_format_that_we_know_is_read)
{
	for (int dtype = ATTN_FLOAT32; dtype <= ATTN_BOOL; dtype++) {
		char header[120], *bytes;
		size_t size = attn_dtype_size((attn_dtype)dtype);
		snprintf(header, sizeof(header),
		         "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
		         attn_dtype_name((attn_dtype)dtype), 3 * size);
		attn_safetensors *file = accepted(header, 3 * size, &bytes);
		ck_assert_int_eq((int)attn_safetensors_at(file, 0)->dtype, dtype);
		attn_safetensors_free(file);
		free(bytes);
	}
}
END_TEST

START_TEST(rank_0_and_zero_size_tensors_are_legal)
{
	char *bytes;
	attn_safetensors *file =
	    accepted("{\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
	             "\"first\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
	             "\"between\":{\"dtype\":\"F32\",\"shape\":[3,0,5],\"data_offsets\":[4,4]},"
	             "\"byte\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[4,5]},"
	             "\"last\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[5,5]}}",
	             5, &bytes);
	ck_assert_uint_eq(attn_safetensors_count(file), 5);
	ck_assert_uint_eq(attn_safetensors_find(file, "scalar")->rank, 0);
	ck_assert_uint_eq(attn_safetensors_find(file, "scalar")->bytes, 4);
	ck_assert_uint_eq(attn_safetensors_find(file, "between")->bytes, 0);
	attn_safetensors_free(file);
	free(bytes);
}
END_TEST

START_TEST(a_file_without_tensors_is_legal)
{
	char *bytes;
	attn_safetensors *file = accepted("{}", 0, &bytes);
	ck_assert_uint_eq(attn_safetensors_count(file), 0);
	ck_assert_ptr_null(attn_safetensors_find(file, "x"));
	ck_assert_ptr_null(attn_safetensors_metadata(file, "x"));
	ck_assert_ptr_null(attn_safetensors_metadata_next(file, NULL));
	attn_safetensors_free(file);
	free(bytes);
}
END_TEST

/* ------------------------------------------------------------------ the header's length */

static void length_refused(uint64_t length, size_t size, const char *reason)
{
	char bytes[64] = "";
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	length = htole64(length);
	memcpy(bytes, &length, sizeof(length));
	memcpy(bytes + sizeof(length), "{}", 2);
	ck_assert_int_eq(attn_safetensors_parse(bytes, size, &file, &err), ATTN_FORMAT);
	ck_assert_msg(strstr(err.message, reason) != NULL, "%s", err.message);
}

START_TEST(a_header_over_100_million_bytes_is_refused)
{
	length_refused(100000001, 10, "limit");
	length_refused(UINT64_MAX, 10, "limit");
	length_refused(UINT64_MAX - 7, 10, "limit"); /* 8 + N would be 0 */
}
END_TEST

START_TEST(a_header_that_ends_after_the_file_is_refused)
{
	length_refused(100000000, 10, "over the 2 bytes");
	length_refused(3, 10, "over the 2 bytes");
	for (size_t size = 0; size < 8; size++)
		length_refused(2, size, "too few");
}
END_TEST

START_TEST(a_header_starts_with_a_brace)
{
	length_refused(0, 10, "'{'");
	refused(" {}", 0, "", "'{'");
	refused("[]", 0, "", "'{'");
	refused("\xEF\xBB\xBF{}", 0, "", "'{'");
}
END_TEST

START_TEST(a_header_may_be_padded_with_spaces_only)
{
	char *bytes;
	attn_safetensors_free(accepted("{}      ", 0, &bytes));
	free(bytes);
	refused("{}  x", 0, "", "not valid JSON");
	refused("{} {}", 0, "", "not valid JSON");
}
END_TEST

START_TEST(a_header_that_is_not_json_is_refused)
{
	refused("{", 0, "", "not valid JSON");
	refused("{\"a\":}", 0, "\"a\"", "not valid JSON");
	refused(
	    "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"y\":{\"dtype\":\"F\xFF\"}}", 4,
	    "\"y\"", "not valid JSON");
	refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
	        "\"a\"", "too big");
	refused("{\"a\":{\"dtype\":\"F32\"", 0, "\"a\"", "at byte 19: the text ends too early");
	refused("{} {}", 0, "", "not valid JSON");
	refused("{},{}", 0, "", "more follows");
	refused("{}]", 0, "", "not valid JSON");
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	size_t depth = 100000;
	char *header = malloc(depth + 16);
	ck_assert_ptr_nonnull(header);
	memcpy(header, "{\"deep\":", 8);
	memset(header + 8, '[', depth);
	header[8 + depth] = '\0';
	refused(header, 0, "\"deep\"", "not valid JSON");
	free(header);
}
END_TEST

/* ------------------------------------------------------------------ entries */

#define ONE "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
#define TWO "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}"

START_TEST(duplicate_names_are_refused)
{
	refused("{\"first\":" ONE ",\"twice\":" TWO ",\"twice\":" TWO "}", 8, "\"twice\"", "duplicate");
	refused("{\"a\":" ONE ",\"\\u0061\":" TWO "}", 8, "u0061", "duplicate"); /* the same once unescaped */
	refused("{\"culprit\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
	        "\"culprit\"", "duplicate");
	refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__", "duplicate");
}
END_TEST

START_TEST(an_entry_must_be_an_object)
{
	refused("{\"odd\":[]}", 0, "\"odd\"", "not an object");
	refused("{\"odd\":null}", 0, "\"odd\"", "not an object");
}
END_TEST

START_TEST(unknown_dtypes_are_refused)
{
	static const char *const dtypes[] = {"\"F8_E4M3\"", "\"f32\"", "\"\"", "32", "null"};
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		char header[120];
		snprintf(header, sizeof(header),
		         "{\"odd\":{\"dtype\":%s,\"shape\":[1],\"data_offsets\":[0,4]}}", dtypes[i]);
		refused(header, 4, "\"odd\"", "dtype");
	}
	refused("{\"odd\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"odd\"", "dtype");
}
END_TEST

START_TEST(a_shape_must_be_an_array_of_sizes)
{
	static const char *const shapes[] = {"1",     "null",    "{}",    "[-1]",
	                                     "[1.0]", "[\"1\"]", "[[1]]", "[true]"};
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		char header[120];
		snprintf(header, sizeof(header),
		         "{\"odd\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,4]}}", shapes[i]);
		refused(header, 4, "\"odd\"", i < 3 ? "not an array" : "not a size");
	}
	refused("{\"odd\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"odd\"", "shape");
}
END_TEST

START_TEST(a_rank_over_the_limit_is_refused)
{
	char *bytes;
	attn_safetensors *file = accepted(
	    "{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, &bytes);
	ck_assert_uint_eq(attn_safetensors_at(file, 0)->rank, ATTN_MAX_RANK);
	attn_safetensors_free(file);
	free(bytes);
	refused("{\"odd\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
	        "\"odd\"", "rank 9");
}
END_TEST

START_TEST(a_shape_product_that_overflows_is_refused)
{
	refused("{\"odd\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
	        "\"odd\"", "overflow");
	refused("{\"odd\":{\"dtype\":\"F64\",\"shape\":[9223372036854775807],\"data_offsets\":[0,0]}}", 0,
	        "\"odd\"", "overflow"); /* only times its dtype */
	refused("{\"odd\":{\"dtype\":\"U8\",\"shape\":[0,4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
	        "\"odd\"", "overflow"); /* whatever the order */
}
END_TEST

START_TEST(a_size_that_is_not_shape_times_dtype_is_refused)
{
	refused("{\"odd\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "\"odd\"", "need 8");
	refused("{\"odd\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4, "\"odd\"", "need 0");
	refused("{\"odd\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "\"odd\"",
	        "need 4");
}
END_TEST

/* ------------------------------------------------------------------ offsets */

START_TEST(offsets_must_be_two_sizes_in_order)
{
	static const char *const offsets[] = {"[0]",       "[0,4,4]",  "[-4,0]", "[0,4.0]", "[0,\"4\"]",
	                                      "{\"0\":4}", "[null,4]", "4",      "[]"};
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		char header[120];
		snprintf(header, sizeof(header),
		         "{\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":%s}}", offsets[i]);
		refused(header, 4, "\"odd\"", "not an array of two sizes");
	}
	refused("{\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "\"odd\"",
	        "before they begin");
	refused("{\"odd\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"odd\"", "data_offsets");
}
END_TEST

START_TEST(data_past_the_end_of_the_file_is_refused)
{
	refused("{\"odd\":" ONE "}", 3, "\"odd\"", "3 bytes of data");
	refused("{\"odd\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807],"
	        "\"data_offsets\":[0,9223372036854775807]}}",
	        4, "\"odd\"", "4 bytes of data");
}
END_TEST

START_TEST(data_must_start_at_0)
{
	refused("{\"odd\":" TWO "}", 8, "\"odd\"", "begins at 4");
}
END_TEST

START_TEST(overlapping_tensors_are_refused)
{
	refused("{\"a\":" ONE ",\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6,
	        "\"odd\"", "overlap");
	refused("{\"a\":" ONE ",\"b\":" ONE "}", 4, "\"b\"", "overlap");
	refused("{\"a\":" ONE ",\"odd\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4,
	        "\"odd\"", "overlap"); /* empty, but within another */
}
END_TEST

START_TEST(a_hole_between_tensors_is_refused)
{
	refused("{\"a\":" ONE ",\"odd\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}", 9,
	        "\"odd\"", "hole");
}
END_TEST

START_TEST(data_must_end_at_the_end_of_the_file)
{
	refused("{\"a\":" ONE ",\"last\":" TWO "}", 9, "\"last\"", "ends at 8 of 9");
	refused("{}", 1, "", "1 bytes of data");
}
END_TEST

/* ------------------------------------------------------------------ metadata */

START_TEST(metadata_must_be_strings_to_strings)
{
	refused("{\"__metadata__\":{\"good\":\"1\",\"bad\":1}}", 0, "__metadata__", "\"bad\"");
	refused("{\"__metadata__\":{\"bad\":{\"a\":\"b\"}}}", 0, "__metadata__", "\"bad\"");
	refused("{\"__metadata__\":[\"a\"]}", 0, "__metadata__", "object");
	refused("{\"__metadata__\":null}", 0, "__metadata__", "object");
	refused("{\"__metadata__\":" ONE "}", 4, "__metadata__", "not a string");
}
END_TEST

/* ------------------------------------------------------------------ messages */

START_TEST(a_long_name_is_cut_between_characters)
{
	char name[900] = "", header[1000];
	for (size_t i = 0; i < 399; i++)
		memcpy(name + 2 * i, "\xC3\xA4", 2);
	for (size_t shift = 0; shift < 2; shift++) {
		snprintf(header, sizeof(header), "{\"%s%s\":[]}", shift ? "x" : "", name);
		char *bytes;
		attn_safetensors *file = NULL;
		attn_error err = {ATTN_OK, ""};
		ck_assert_int_eq(parse(header, 0, &bytes, &file, &err), ATTN_FORMAT);
		const char *end = strrchr(err.message, '"');
		ck_assert(strlen(err.message) < 250 && strstr(err.message, "not an object"));
		ck_assert(end && end[-1] == '\xA4' && end[-2] == '\xC3');
		free(bytes);
	}
}
END_TEST

/* ------------------------------------------------------------------ files */

START_TEST(unaligned_data_is_read_by_its_bytes)
{
	char *bytes;
	attn_safetensors *file = accepted("{\"pad\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	                                  "\"odd\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[1,9]}}",
	                                  9, &bytes);
	const attn_stored_tensor *odd = attn_safetensors_find(file, "odd");
	float out[2];
	ck_assert_int_eq(attn_to_float32(odd->dtype, odd->data, 2, out), ATTN_OK);
	ck_assert(out[0] == (float)0x04030201 && out[1] == (float)0x08070605);
	attn_safetensors_free(file);
	free(bytes);
}
END_TEST

START_TEST(a_file_is_read_as_its_bytes_are)
{
	char *folder = folder_make();
	size_t size;
	char *bytes = safetensors_bytes("{\"a\":" ONE "}", 4, &size);
	folder_write(folder, "x.safetensors", bytes, size);
	char *path = folder_path(folder, "x.safetensors");
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_safetensors_open(path, &file, &err), ATTN_OK);
	ck_assert_mem_eq(attn_safetensors_find(file, "a")->data, "\0\1\2\3", 4);
	attn_safetensors_free(file);
	free(path);
	free(bytes);
	folder_remove(folder);
}
END_TEST

static void open_fails(const char *folder, const char *name, attn_status wanted, const char *reason)
{
	char *path = folder_path(folder, name);
	attn_safetensors *file = NULL;
	attn_error err = {ATTN_OK, ""};
	ck_assert_int_eq(attn_safetensors_open(path, &file, &err), wanted);
	ck_assert_msg(strncmp(err.message, path, strlen(path)) == 0 && strstr(err.message, reason), "%s",
	              err.message);
	free(path);
}

START_TEST(a_file_that_cannot_be_read_is_named)
{
	char *folder = folder_make();
	open_fails(folder, "missing", ATTN_FILE, "No such file");
	open_fails(folder, ".", ATTN_FILE, "not a regular file");
	folder_write_text(folder, "empty", "");
	open_fails(folder, "empty", ATTN_FORMAT, "empty");
	folder_write_text(folder, "text", "this is not a safetensors file");
	open_fails(folder, "text", ATTN_FORMAT, "limit");
	char *fifo = folder_path(folder, "fifo");
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	open_fails(folder, "fifo", ATTN_FILE, "not a regular file"); /* at once, without a writer */
	free(fifo);
	folder_remove(folder);
}
END_TEST

/* Opens every file of the pattern and looks up every tensor it holds. */
static size_t open_all(const char *pattern)
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		attn_safetensors *file = NULL;
		attn_error err = {ATTN_OK, ""};
		attn_status status = attn_safetensors_open(found.gl_pathv[i], &file, &err);
		ck_assert_msg(status == ATTN_OK, "%s", err.message);
		for (size_t k = 0; k < attn_safetensors_count(file); k++) {
			const attn_stored_tensor *tensor = attn_safetensors_at(file, k);
			ck_assert_ptr_eq(attn_safetensors_find(file, tensor->name), tensor);
		}
		ck_assert_uint_gt(attn_safetensors_count(file), 0);
		attn_safetensors_free(file);
	}
	size_t count = found.gl_pathc;
	globfree(&found);
	return count;
}

START_TEST(files_that_others_wrote_are_read)
{
	size_t cases = open_all("../shared/data/onnx-attention/*.safetensors");
	size_t models = open_all("../shared/data/models/*/*.safetensors");
	if (cases == 0 || models == 0)
		suite_skip("no ../shared/data/onnx-attention or ../shared/data/models");
}
END_TEST

SUITE_MAIN("safetensors", tensors_come_by_order_of_data_and_by_name,
           every_dtype_of_the_format_that_we_know_is_read, rank_0_and_zero_size_tensors_are_legal,
           a_file_without_tensors_is_legal, a_header_over_100_million_bytes_is_refused,
           a_header_that_ends_after_the_file_is_refused, a_header_starts_with_a_brace,
           a_header_may_be_padded_with_spaces_only, a_header_that_is_not_json_is_refused,
           deep_nesting_is_refused, duplicate_names_are_refused, an_entry_must_be_an_object,
           unknown_dtypes_are_refused, a_shape_must_be_an_array_of_sizes, a_rank_over_the_limit_is_refused,
           a_shape_product_that_overflows_is_refused, a_size_that_is_not_shape_times_dtype_is_refused,
           offsets_must_be_two_sizes_in_order, data_past_the_end_of_the_file_is_refused, data_must_start_at_0,
           overlapping_tensors_are_refused, a_hole_between_tensors_is_refused,
           data_must_end_at_the_end_of_the_file, metadata_must_be_strings_to_strings,
           a_long_name_is_cut_between_characters, unaligned_data_is_read_by_its_bytes,
           a_file_is_read_as_its_bytes_are, a_file_that_cannot_be_read_is_named,
           files_that_others_wrote_are_read)
