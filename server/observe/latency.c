#include "observe/latency.h"
#include "observe/latency_table.h"

#include <stdlib.h>
#include <string.h>

struct latency *latency_new(void)
{
	return calloc(1, sizeof(struct latency));
}

void latency_free(struct latency *latency)
{
	if (latency == NULL)
		return;
	for (size_t i = 0; i < latency->series_count; i++) {
		for (size_t j = 0; j < latency->series[i].count; j++)
			free(latency->series[i].lengths[j]);
		free(latency->series[i].lengths);
	}
	free(latency);
}

static bool series_is(const struct latency_series *series, const struct latency_sample *sample)
{
	return series->operation == sample->operation && series->heads == sample->heads &&
	       series->width == sample->width && series->has_model == (sample->model != NULL) &&
	       (sample->model == NULL || strncmp(series->model, sample->model, LATENCY_MODEL_MAX) == 0);
}

/* NULL when the table is full. */
static struct latency_series *find_series(struct latency *latency, const struct latency_sample *sample)
{
	for (size_t i = 0; i < latency->series_count; i++) {
		if (series_is(&latency->series[i], sample))
			return &latency->series[i];
	}
	if (latency->series_count == LATENCY_MAX_SERIES || latency->lengths_count == LATENCY_MAX_LENGTHS)
		return NULL;
	struct latency_series *series = &latency->series[latency->series_count++];
	series->operation = sample->operation;
	series->heads = sample->heads;
	series->width = sample->width;
	series->has_model = sample->model != NULL;
	if (series->has_model)
		strncpy(series->model, sample->model, LATENCY_MODEL_MAX);
	return series;
}

static bool make_room(struct latency_series *series)
{
	if (series->count < series->room)
		return true;
	size_t room = series->room == 0 ? 16 : series->room * 2;
	struct latency_length **lengths = realloc(series->lengths, room * sizeof(struct latency_length *));
	if (lengths == NULL)
		return false;
	series->lengths = lengths;
	series->room = room;
	return true;
}

/* Index of the first length not below the given one. */
static size_t lower_bound(const struct latency_series *series, size_t length)
{
	size_t low = 0, high = series->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (series->lengths[middle]->length < length)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* NULL when the table is full or memory is refused. */
static struct latency_length *find_length(struct latency *latency, struct latency_series *series,
                                          size_t length)
{
	size_t at = lower_bound(series, length);
	if (at < series->count && series->lengths[at]->length == length)
		return series->lengths[at];
	if (latency->lengths_count == LATENCY_MAX_LENGTHS || !make_room(series))
		return NULL;
	struct latency_length *made = calloc(1, sizeof(*made));
	if (made == NULL)
		return NULL;
	made->length = length;
	memmove(&series->lengths[at + 1], &series->lengths[at],
	        (series->count - at) * sizeof(struct latency_length *));
	series->lengths[at] = made;
	series->count++;
	latency->lengths_count++;
	return made;
}

void latency_record(struct latency *latency, const struct latency_sample *sample)
{
	struct latency_series *series = find_series(latency, sample);
	struct latency_length *entry = series != NULL ? find_length(latency, series, sample->length) : NULL;
	if (entry == NULL)
		entry = &latency->other;
	quantiles_add(&entry->total, sample->total);
	quantiles_add(&entry->compute, sample->compute);
}
