#include "t5_buckets.h"

#include <math.h>

size_t attn_t5_bucket(const attn_t5_buckets *buckets, int64_t distance)
{
	const size_t count = buckets->both_sides ? buckets->count / 2 : buckets->count;
	const size_t near = count / 2; /* classes of one distance each */
	const size_t side = buckets->both_sides && distance > 0 ? count : 0;
	size_t away = distance < 0 ? (size_t)-distance : buckets->both_sides ? (size_t)distance : 0;
	if (away < near)
		return side + away;
	float octaves = (float)log((double)buckets->max_distance / (double)near);
	float part = logf((float)away / (float)near) / octaves * (float)(count - near);
	size_t far = near + (size_t)part;
	return side + (far < count ? far : count - 1);
}
