#include "codec/safetensors_writer.h"

#include "suite.h"

#include <string.h>

START_TEST(what_is_written_reads_back)
{
	static const float numbers[] = {1.5f, -2, 3};
	static const int64_t integers[] = {INT64_MAX, -1};
	struct safetensors_writer writer;
	attn_safetensors *file = NULL;
	ck_assert(safetensors_writer_open(&writer, SAFETENSORS_FRAME_MAX + 5 * SAFETENSORS_ENTRY_MAX));
	safetensors_writer_metadata(&writer, "shape", "{\"a\":\"\\\\\"}");
	safetensors_writer_entry(&writer, "i", ATTN_INT64, (size_t[]){2}, 1);
	safetensors_writer_entry(&writer, "a.b", ATTN_FLOAT32, (size_t[]){1, 3}, 2);
	safetensors_writer_entry(&writer, "none", ATTN_FLOAT64, (size_t[]){0, 7}, 2);
	safetensors_writer_entry(&writer, "half", ATTN_FLOAT16, (size_t[]){3}, 1);
	safetensors_writer_end_header(&writer);
	ck_assert_uint_eq(writer.length % 8, 0);
	safetensors_writer_integers(&writer, integers, 2);
	safetensors_writer_floats(&writer, ATTN_FLOAT32, numbers, 3);
	safetensors_writer_floats(&writer, ATTN_FLOAT64, numbers, 0);
	safetensors_writer_floats(&writer, ATTN_FLOAT16, numbers, 3);
	ck_assert_int_eq(attn_safetensors_parse(writer.bytes, writer.length, &file, NULL), ATTN_OK);
	ck_assert_uint_eq(attn_safetensors_count(file), 4);
	ck_assert_str_eq(attn_safetensors_metadata(file, "shape"), "{\"a\":\"\\\\\"}");
	ck_assert_mem_eq(attn_safetensors_find(file, "i")->data, integers, sizeof(integers));
	ck_assert_mem_eq(attn_safetensors_find(file, "a.b")->data, numbers, sizeof(numbers));
	ck_assert_uint_eq(attn_safetensors_find(file, "none")->shape[1], 7);
	ck_assert_mem_eq(attn_safetensors_find(file, "half")->data, "\0\x3E\0\xC0\0\x42", 6);
	attn_safetensors_free(file);
	free(writer.bytes);
}
END_TEST

START_TEST(a_text_without_metadata_or_tensors_is_one_too)
{
	struct safetensors_writer writer;
	attn_safetensors *file = NULL;
	ck_assert(safetensors_writer_open(&writer, SAFETENSORS_FRAME_MAX));
	safetensors_writer_end_header(&writer);
	ck_assert_int_eq(attn_safetensors_parse(writer.bytes, writer.length, &file, NULL), ATTN_OK);
	attn_safetensors_free(file);
	free(writer.bytes);
}
END_TEST

START_TEST(the_longest_entry_keeps_to_its_bound)
{
	size_t dims[ATTN_MAX_RANK] = {SIZE_MAX, 1, SIZE_MAX, SIZE_MAX, 1, 1, 1, 1};
	struct safetensors_writer writer;
	ck_assert(safetensors_writer_open(&writer, SAFETENSORS_FRAME_MAX + SAFETENSORS_ENTRY_MAX));
	writer.data = SIZE_MAX;
	safetensors_writer_entry(&writer, "", ATTN_FLOAT64, dims, ATTN_MAX_RANK);
	safetensors_writer_end_header(&writer);
	ck_assert_uint_le(writer.length, SAFETENSORS_FRAME_MAX + SAFETENSORS_ENTRY_MAX);
	free(writer.bytes);
}
END_TEST

SUITE_MAIN("safetensors_writer", what_is_written_reads_back, a_text_without_metadata_or_tensors_is_one_too,
           the_longest_entry_keeps_to_its_bound)
