#include "observe/latency.h"
#include "observe/latency_table.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the numbers written: quantiles are no finer than three digits. */
#define DIGITS 6

/* The functions here give NULL on refused memory, and jansson's setters then fail in turn ("o" takes the
 * reference even so). */

static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *quantiles_json(const struct quantiles *quantiles)
{
	return json_pack("{s:f, s:f, s:f}", "p50", quantiles_at(quantiles, 0.5), "p90",
	                 quantiles_at(quantiles, 0.9), "p99", quantiles_at(quantiles, 0.99));
}

/* length 0 with `known` false: the entry of all that did not fit the table. */
static json_t *length_json(const struct latency_length *entry, bool known)
{
	return json_pack("{s:o, s:I, s:o, s:o}", "length",
	                 known ? json_integer((json_int_t)entry->length) : json_null(), "count",
	                 (json_int_t)entry->total.count, "total", quantiles_json(&entry->total), "compute",
	                 quantiles_json(&entry->compute));
}

static json_t *fit_json(const struct latency_series *series)
{
	struct latency_point points[LATENCY_MAX_LENGTHS];
	for (size_t i = 0; i < series->count; i++) {
		points[i].length = (double)series->lengths[i]->length;
		points[i].seconds = quantiles_at(&series->lengths[i]->compute, 0.5);
	}
	struct latency_fit fit;
	if (!latency_fit_points(points, series->count, &fit))
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:o, s:I, s:I}", "a", fit.a, "b", fit.b, "c", fit.c, "exponent",
	                 real_or_null(fit.exponent), "from", (json_int_t)fit.from, "to", (json_int_t)fit.to);
}

static json_t *series_json(const struct latency_series *series)
{
	json_t *lengths = json_array();
	for (size_t i = 0; i < series->count; i++) {
		if (json_array_append_new(lengths, length_json(series->lengths[i], true)) != 0) {
			json_decref(lengths);
			return NULL;
		}
	}
	return json_pack("{s:s, s:o, s:I, s:I, s:o, s:o}", "operation",
	                 metrics_operation_label(series->operation), "model",
	                 series->has_model ? json_string(series->model) : json_null(), "heads",
	                 (json_int_t)series->heads, "width", (json_int_t)series->width, "lengths", lengths,
	                 "fit", fit_json(series));
}

static json_t *other_json(const struct latency_length *other)
{
	return json_pack("{s:s, s:n, s:n, s:n, s:[o], s:n}", "operation", "other", "model", "heads", "width",
	                 "lengths", length_json(other, false), "fit");
}

char *latency_to_json(const struct latency *latency, size_t *length)
{
	char *text = NULL;
	json_t *data = json_array();
	json_t *root = json_pack("{s:O}", "data", data);
	bool whole = root != NULL;
	for (size_t i = 0; whole && i < latency->series_count; i++)
		whole = json_array_append_new(data, series_json(&latency->series[i])) == 0;
	if (whole && latency->other.total.count > 0)
		whole = json_array_append_new(data, other_json(&latency->other)) == 0;
	if (whole)
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	json_decref(data);
	json_decref(root);
	if (text != NULL)
		*length = strlen(text);
	return text;
}
