#include "http/admin.h"

#include "attn.h"
#include "codec/problem.h"
#include "http/context.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char index_html[] =
    "<!doctype html>\n"
    "<html lang=\"en\"><head><meta charset=\"utf-8\"><title>attnd</title></head><body>\n"
    "<h1>attnd</h1>\n"
    "<p>Attention over HTTP: sequences in, context vectors and attention weights out.</p>\n"
    "<pre>curl --json '{\"query\":[[1,0],[0,1]]}' http://127.0.0.1:8080/v1/attention</pre>\n"
    "<pre>curl --json '{\"text\":\"Alice was very tired\",\"outputs\":\"weights\",\"precision\":3}' "
    "http://127.0.0.1:8080/v1/models/alice/forward</pre>\n"
    "<dl>\n"
    "<dt>POST /v1/attention</dt><dd>attention on the tensors of the request</dd>\n"
    "<dt>POST /v1/models/{model}/attention</dt><dd>through a layer of a loaded model</dd>\n"
    "<dt>POST /v1/models/{model}/forward</dt><dd>through all layers of a loaded model</dd>\n"
    "<dt>GET <a href=\"/v1/models\">/v1/models</a>, /v1/models/{model}</dt><dd>the loaded models</dd>\n"
    "<dt>GET <a href=\"/v1/latency\">/v1/latency</a></dt><dd>latency against sequence length</dd>\n"
    "<dt>GET <a href=\"/metrics\">/metrics</a></dt><dd>for Prometheus</dd>\n"
    "<dt>GET <a href=\"/healthz\">/healthz</a></dt><dd>whether requests are served</dd>\n"
    "</dl></body></html>\n";

/* Finishes a page with malloc'd text; NULL is refused memory. */
static bool page_take(struct page *page, char *body, size_t length, const char *type, struct problem *problem)
{
	if (!body)
		return problem_set(problem, PROBLEM_MEMORY, "", "the system refused memory for the reply");
	*page = (struct page){.body = body, .length = length, .content_type = type};
	return true;
}

static bool page_take_json(struct page *page, json_t *json, struct problem *problem)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	return page_take(page, text, text ? strlen(text) : 0, "application/json", problem);
}

static json_t *size_json(size_t size)
{
	return json_integer((json_int_t)size);
}

/* null for 0, which is none. */
static json_t *size_or_null(size_t size)
{
	return size > 0 ? size_json(size) : json_null();
}

/* What each of its stacks is, in the order in which they run. */
static json_t *stacks_json(const attn_model_info *info)
{
	bool two = info->stacks[ATTN_SECOND_STACK].layers > 0;
	json_t *list = json_array();
	for (size_t i = 0; i < ATTN_STACKS; i++) {
		const attn_stack_info *stack = &info->stacks[i];
		bool decodes = two ? i == ATTN_SECOND_STACK : stack->causal;
		if (stack->layers == 0)
			continue;
		json_t *entry =
		    json_pack("{ss so so so so sb}", "name", decodes ? "decoder" : "encoder", "layers",
		              size_json(stack->layers), "heads", size_json(stack->heads), "width",
		              size_json(stack->width), "positions", size_or_null(stack->positions), "causal",
		              (int)stack->causal);
		if (json_array_append_new(list, entry) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* What the daemon can be asked of it. */
static json_t *abilities_json(const struct model_instance *instance, const attn_model_info *info)
{
	const struct tokenizer *tokenizer = model_instance_tokenizer(instance);
	bool text = tokenizer != NULL && tokenizer_refusal(tokenizer) == NULL;
	json_t *kinds = json_array();
	if ((info->layers > 0 && json_array_append_new(kinds, json_string("self")) != 0) ||
	    (info->cross_layers > 0 && json_array_append_new(kinds, json_string("cross")) != 0)) {
		json_decref(kinds);
		kinds = NULL;
	}
	return json_pack("{so sb sb sb}", "attention", kinds, "forward",
	                 (int)(info->stacks[ATTN_FIRST_STACK].layers > 0), "logits", (int)info->logits,
	                 "text", (int)text);
}

static json_t *limits_json(const struct options *options, const attn_model_info *info)
{
	return json_pack("{so so so so so}", "sequence_length", size_json(options->max_sequence_length),
	                 "positions", size_or_null(info->stacks[ATTN_FIRST_STACK].positions), "elements",
	                 size_json(options->max_elements), "body_bytes", size_json(options->max_body),
	                 "reply_bytes", size_json(options->max_reply));
}

/* One entry of /v1/models; NULL when memory is refused. */
static json_t *model_json(const struct http_context *context, const struct model_instance *instance)
{
	attn_model_info info = attn_model_info_of(model_instance_model(instance));
	return json_pack("{ss ss ss so so so so s{so so so so} so so so so so so}", "id",
	                 model_instance_name(instance), "object", "model", "architecture", info.architecture,
	                 "layers", size_json(info.layers), "cross_layers", size_json(info.cross_layers),
	                 "heads", size_json(info.heads), "kv_heads", size_json(info.kv_heads), "widths",
	                 "query", size_json(info.width), "key", size_json(info.key_width), "value",
	                 size_json(info.value_width), "output", size_json(info.output_width), "stacks",
	                 stacks_json(&info), "abilities", abilities_json(instance, &info), "limits",
	                 limits_json(context->options, &info), "vocabulary", size_or_null(info.vocabulary),
	                 "parameters", size_json(info.parameters), "bytes", size_json(info.bytes));
}

bool admin_models(const struct http_context *context, const char *model, struct page *page,
                  struct problem *problem)
{
	(void)model;
	json_t *list = json_array();
	for (size_t i = 0; i < registry_count(context->registry); i++) {
		if (json_array_append_new(list, model_json(context, registry_at(context->registry, i))) !=
		    0) {
			json_decref(list);
			return page_take_json(page, NULL, problem);
		}
	}
	return page_take_json(page, json_pack("{ss so}", "object", "list", "data", list), problem);
}

bool admin_model(const struct http_context *context, const char *model, struct page *page,
                 struct problem *problem)
{
	const struct model_instance *instance = registry_find(context->registry, model);
	if (!instance)
		return problem_set(problem, PROBLEM_NO_SUCH_MODEL, "", "there is no model %s", model);
	return page_take_json(page, model_json(context, instance), problem);
}

bool admin_latency(const struct http_context *context, const char *model, struct page *page,
                   struct problem *problem)
{
	(void)model;
	size_t length = 0;
	char *text = latency_to_json(context->latency, &length);
	return page_take(page, text, length, "application/json", problem);
}

bool admin_metrics(const struct http_context *context, const char *model, struct page *page,
                   struct problem *problem)
{
	(void)model;
	struct pipeline_state state = pipeline_state_of(context->pipeline);
	struct metrics_gauges gauges = context->facts;
	gauges.queue_depth = state.waiting;
	gauges.inflight_bytes = budget_used(context->budget);
	gauges.workers_busy = state.workers_busy;
	gauges.workers = state.workers;
	gauges.connections = context->connections.count;
	size_t length = 0;
	char *text = metrics_render(&gauges, &length);
	return page_take(page, text, length, "text/plain; version=0.0.4; charset=utf-8", problem);
}

bool admin_health(const struct http_context *context, const char *model, struct page *page,
                  struct problem *problem)
{
	(void)context;
	(void)model;
	static const char ok[] = "{\"status\":\"ok\"}";
	return page_take(page, strdup(ok), strlen(ok), "application/json", problem);
}

bool admin_index(const struct http_context *context, const char *model, struct page *page,
                 struct problem *problem)
{
	(void)context;
	(void)model;
	return page_take(page, strdup(index_html), strlen(index_html), "text/html; charset=utf-8", problem);
}
