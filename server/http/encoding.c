#include "http/encoding.h"

#include "codec/deflate.h"
#include "http/admin.h"
#include "http/lists.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PAGE_MOST ((size_t)256 * 1024) /* a millisecond or two */

bool encoding_of_body(const struct request_headers *headers, enum coding *coding, struct problem *problem)
{
	static const struct {
		const char *name;
		enum coding coding;
	} known[] = {{"identity", CODING_IDENTITY},
	             {"gzip", CODING_GZIP},
	             {"x-gzip", CODING_GZIP},
	             {"deflate", CODING_DEFLATE}};
	const char *value = headers->content_encoding;
	*coding = CODING_IDENTITY;
	if (!value)
		return true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && headers->content_encodings == 1; i++) {
		if (strcasecmp(value, known[i].name) != 0)
			continue;
		*coding = known[i].coding;
		return true;
	}
	return problem_set(problem, PROBLEM_CONTENT_ENCODING, "",
	                   "Content-Encoding %.100s%s is not known; send gzip, deflate or the body as it is",
	                   value, headers->content_encodings > 1 ? " and another" : "");
}

/* ---- Accept-Encoding (RFC 9110 section 12.5.3) */

#define UNSAID (-1.0)

struct wishes {
	double gzip, deflate, identity, any; /* q, or UNSAID */
};

static void note_wish(struct wishes *wishes, const struct list_item *item)
{
	if (list_item_is(item, "gzip") || list_item_is(item, "x-gzip"))
		wishes->gzip = item->quality;
	else if (list_item_is(item, "deflate"))
		wishes->deflate = item->quality;
	else if (list_item_is(item, "identity"))
		wishes->identity = item->quality;
	else if (list_item_is(item, "*"))
		wishes->any = item->quality;
}

static double quality_or(double quality, double otherwise)
{
	return quality == UNSAID ? otherwise : quality;
}

bool encoding_of_reply(const struct request_headers *headers, struct reply_coding *wanted,
                       struct problem *problem)
{
	*wanted = (struct reply_coding){.coding = CODING_IDENTITY};
	const struct header_lines *lines = &headers->accept_encoding;
	if (lines->count > HEADER_LINES_MAX)
		return problem_set(problem, PROBLEM_BAD_HEADER, "",
		                   "%zu Accept-Encoding lines are more than %d", lines->count,
		                   HEADER_LINES_MAX);
	struct wishes wishes = {UNSAID, UNSAID, UNSAID, UNSAID};
	struct list_item item;
	for (size_t i = 0; i < lines->count; i++) {
		for (const char *rest = lines->text[i]; list_next(&rest, &item);)
			note_wish(&wishes, &item);
	}
	double gzip = quality_or(quality_or(wishes.gzip, wishes.any), 0);
	double deflate = quality_or(quality_or(wishes.deflate, wishes.any), 0);
	double best = gzip >= deflate ? gzip : deflate;
	/* Without a word about it, identity is acceptable, after all that was named. */
	bool as_it_is = wishes.identity > 0 || (wishes.identity == UNSAID && wishes.any != 0);
	if (best > 0 && best >= wishes.identity) {
		wanted->coding = gzip >= deflate ? CODING_GZIP : CODING_DEFLATE;
		wanted->least = as_it_is ? ENCODING_LEAST : 0;
		return true;
	}
	return as_it_is ||
	       problem_set(problem, PROBLEM_NOT_ACCEPTABLE, "",
	                   "Accept-Encoding: %.100s rules out gzip, deflate and the reply as it is",
	                   lines->text[0]);
}

enum coding encoding_of_page(const struct reply_coding *wanted, struct page *page)
{
	if (wanted->coding == CODING_IDENTITY || page->length < wanted->least || page->length > PAGE_MOST)
		return CODING_IDENTITY;
	size_t room = deflate_room(page->length), length;
	char *body = malloc(room);
	if (!body || !deflate_whole(wanted->coding, page->body, page->length, body, room, &length, NULL)) {
		free(body);
		return CODING_IDENTITY;
	}
	free(page->body);
	page->body = body;
	page->length = length;
	return wanted->coding;
}
