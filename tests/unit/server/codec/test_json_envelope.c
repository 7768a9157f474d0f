#include "codec/json_envelope.h"

#include "suite.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Processor time to make a tree of an envelope with a list of count numbers, the best of three. */
static double seconds_for(size_t count)
{
	const struct json_limits limits = {.elements = 0, .envelope = JSON_ENVELOPE_MAX};
	char *text = malloc(2 * count + 32);
	double best = INFINITY;
	size_t length = (size_t)sprintf(text, "{\"key_lengths\":[");
	for (size_t i = 0; i < count; i++, length += 2)
		memcpy(text + length, i + 1 < count ? "7," : "7]", 2);
	text[length++] = '}';
	for (int run = 0; run < 3; run++) {
		struct problem problem = {.code = PROBLEM_NONE};
		struct json_scan scan = {0};
		ck_assert(json_scan(text, length, NULL, 0, &limits, NULL, &scan, &problem));
		clock_t begun = clock();
		json_t *envelope = json_envelope_read(&scan, &problem);
		best = fmin(best, (double)(clock() - begun) / CLOCKS_PER_SEC);
		ck_assert_uint_eq(json_array_size(json_object_get(envelope, "key_lengths")), count);
		json_decref(envelope);
		json_scan_clear(&scan);
	}
	free(text);
	return best;
}

START_TEST(the_time_of_an_envelope_grows_as_its_length)
{
	double shorter = seconds_for(20000), longer = seconds_for(200000);
	/* ten times the numbers: a hundred times the time where each is looked for in all that follow */
	ck_assert_msg(longer < 40 * fmax(shorter, 1e-4), "%g s, then %g s", shorter, longer);
}
END_TEST

SUITE_MAIN("json_envelope", the_time_of_an_envelope_grows_as_its_length)
