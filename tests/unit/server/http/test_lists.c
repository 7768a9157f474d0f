#include "http/lists.h"
#include "suite.h"

#include <string.h>

START_TEST(items_come_without_space_parameters_and_empty_ones)
{
	const char *rest = " , a ,b;q=0.5;x=1,, c d ;Q=0 ,e; x=2 ;q=nonsense";
	static const struct {
		const char *text;
		double quality;
	} wanted[] = {{"a", 1}, {"b", 0.5}, {"c", 0}, {"e", 0}};
	struct list_item item;
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		ck_assert(list_next(&rest, &item));
		ck_assert(list_item_is(&item, wanted[i].text));
		ck_assert(item.quality == wanted[i].quality);
	}
	ck_assert(!list_next(&rest, &item));
	rest = " ,, ";
	ck_assert(!list_next(&rest, &item));
}
END_TEST

START_TEST(a_word_is_held_whole_and_in_any_case)
{
	ck_assert(list_holds("https://a.example, https://b.example", "https://B.example"));
	ck_assert(!list_holds("https://a.example", "https://a.exampl"));
	ck_assert(!list_holds("https://a.example", "https://a.example.evil"));
	ck_assert(!list_holds("", ""));
}
END_TEST

SUITE_MAIN("lists", items_come_without_space_parameters_and_empty_ones, a_word_is_held_whole_and_in_any_case)
