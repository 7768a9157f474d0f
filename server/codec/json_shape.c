#include "codec/json_shape.h"

struct json_shape json_shape_of(const size_t *dims, size_t rank)
{
	struct json_shape shape = {.rank = rank};
	shape.size[rank] = 1;
	for (size_t level = rank; level > 0; level--)
		shape.size[level - 1] = shape.size[level] * dims[level - 1];
	return shape;
}

size_t json_shape_edges(const struct json_shape *shape, size_t element)
{
	size_t level = shape->rank;
	while (level > 0 && element % shape->size[level - 1] == 0)
		level--;
	return shape->rank - level;
}

size_t json_shape_run(const struct json_shape *shape, size_t first, size_t last)
{
	size_t row = json_shape_row(shape), run = row - first % row;
	return run < last - first ? run : last - first;
}

size_t json_shape_ended(const struct json_shape *shape, size_t element)
{
	size_t count = 0;
	for (size_t level = 0; level < shape->rank; level++)
		count += element / shape->size[level];
	return count;
}

size_t json_shape_begun(const struct json_shape *shape, size_t element)
{
	size_t count = 0;
	for (size_t level = 0; level < shape->rank; level++)
		count += element / shape->size[level] + (element % shape->size[level] > 0);
	return count;
}
