#include "codec/reply_path.h"

#include "suite.h"

#include <stdlib.h>
#include <string.h>

/* Writes each path with a 0 behind it, up to NULL. */
static void writes(const char *const *paths, const char *wanted)
{
	struct json_writer writer;
	const char *before = "";
	ck_assert(json_writer_open(&writer, 1024, 0, NULL));
	for (; *paths != NULL; paths++) {
		reply_path_write(&writer, before, *paths);
		json_writer_text(&writer, "0");
		before = *paths;
	}
	reply_path_leave(&writer, before);
	ck_assert_uint_eq(writer.length, strlen(wanted));
	ck_assert_mem_eq(writer.text, wanted, writer.length);
	free(writer.text);
}

START_TEST(names_make_objects)
{
	writes((const char *const[]){"a", "b.c", "b.d", "e", NULL},
	       "\"a\":0,\"b\":{\"c\":0,\"d\":0},\"e\":0");
}
END_TEST

START_TEST(numbers_make_lists_whatever_they_are)
{
	writes((const char *const[]){"w.0", "w.1", "w.12", NULL}, "\"w\":[0,0,0]");
	writes((const char *const[]){"w.7", "w.2", "x", NULL}, "\"w\":[0,0],\"x\":0");
	writes((const char *const[]){"w.a.3.i", "w.a.3.v", "w.a.4.i", "w.b.0.i", NULL},
	       "\"w\":{\"a\":[{\"i\":0,\"v\":0},{\"i\":0}],\"b\":[{\"i\":0}]}");
	writes((const char *const[]){"h.0.0", "h.0.1", "h.1.0", NULL}, "\"h\":[[0,0],[0]]");
}
END_TEST

START_TEST(a_pointer_has_the_names_and_the_indices)
{
	char pointer[JSON_POINTER_MAX];
	reply_path_pointer("weights.cross.3", (const size_t[]){1, 22}, 2, pointer);
	ck_assert_str_eq(pointer, "/weights/cross/3/1/22");
}
END_TEST

SUITE_MAIN("reply_path", names_make_objects, numbers_make_lists_whatever_they_are,
           a_pointer_has_the_names_and_the_indices)
