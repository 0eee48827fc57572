/* What is served: runs, workers, spans and how far each is. */
#include "serve/api/state.h"

#include "serve/endpoint.h"

#include "analysis/tree/layers.h"
#include "base/json_text.h"

static void serve_state_put(struct buf *b, const char *name, struct str value)
{
	json_put_text(b, name, value);
	buf_char(b, ',');
}

/* Beside the bits of the plugin's addresses (plugin.h). */
enum { STATE_TELLS_LAYERS = 1u << 30 };

unsigned state_look(const struct profile *p)
{
	return layers_may_be_told(p) ? STATE_TELLS_LAYERS : 0;
}

static void put_profile(struct buf *b, const struct library_entry *x)
{
	const struct profile *p = x->profile;
	buf_char(b, ',');
	serve_state_put(b, "format", p->format);
	buf_printf(b, "\"events\":%llu,\"gpu_ops\":%u,\"spans\":%u,\"problems\":%u,\"met\":[" STR_FMT "],\"aggregates\":%s,\"aggregations\":[", (unsigned long long)profile_events(p),
	           p->gpu_op.rows.n, p->span.rows.n, x->problems, STR_ARG(x->met), p->reopened ? "true" : "false");
	for (unsigned i = 0; i < p->n_aggregations; i++) {
		const struct aggregation *a = &p->aggregation[i];
		buf_printf(b, "%s{\"id\":%lld,", i ? "," : "", (long long)a->id);
		serve_state_put(b, "name", a->name);
		serve_state_put(b, "key_op", a->key_op);
		json_put_text(b, "steps", a->steps);
		buf_char(b, '}');
	}
	bool memory = p->memory.rows.n > 0, modules = x->marks & STATE_TELLS_LAYERS;
	buf_printf(b, "],\"lacks\":[%s%s%s]", memory ? "" : "\"memory\"", memory || modules ? "" : ",", modules ? "" : "\"modules\"");
}

void state_put_entry(struct buf *b, const struct library_entry *x)
{
	buf_char(b, '{');
	serve_state_put(b, "input", x->key);
	serve_state_put(b, "run", x->run);
	serve_state_put(b, "worker", x->worker);
	serve_state_put(b, "span", x->span);
	serve_state_put(b, "path", x->path);
	buf_printf(b, "\"content\":%llu,\"state\":\"%s\"", (unsigned long long)x->content, entry_state_name[x->state]);
	if (x->absent)
		buf_cstr(b, ",\"absent\":true");
	if (x->state == ENTRY_LOADING)
		buf_printf(b, ",\"done_bytes\":%llu,\"total_bytes\":%llu", (unsigned long long)x->done_bytes, (unsigned long long)x->total_bytes);
	if (x->state == ENTRY_FAILED) {
		buf_char(b, ',');
		json_put_text(b, "error", str_from(x->error));
	}
	if (x->state == ENTRY_READY)
		put_profile(b, x);
	buf_char(b, '}');
}

static void put_entry(void *context, const struct library_entry *x)
{
	struct buf *b = context;
	buf_cstr(b, b->p[b->n - 1] == '[' ? "\n" : ",\n");
	state_put_entry(b, x);
}

static void serve_state_put_left_out(void *context, struct str path)
{
	struct buf *b = context;
	buf_cstr(b, b->p[b->n - 1] == '[' ? "\n" : ",\n");
	json_put_string(b, path);
}

static int serve_state_run(const struct request *r, struct response *out, struct err *e)
{
	buf_printf(&out->body, "{\"opscope\":\"%s\",\"version\":%llu,\"read_only\":%s,", OPSCOPE_VERSION, (unsigned long long)library_version(r->library),
	           r->read_only ? "true" : "false");
	if (r->editor)
		serve_state_put(&out->body, "editor", str_from(r->editor));
	buf_cstr(&out->body, "\"inputs\":[");
	library_look(r->library, put_entry, &out->body);
	buf_cstr(&out->body, "],\"left_out\":[");
	library_left_out(r->library, serve_state_put_left_out, &out->body);
	buf_cstr(&out->body, "]}\n");
	return 0;
}

const struct endpoint endpoint_state = {
	.path = "/api/state",
	.help = "the inputs: run, worker, span, and whether each is found, queued, loading, ready or failed; `content` grows when "
	        "the file becomes another, `version` with every change; `met`: what was odd while one that is ready was read; `lacks`: which of `memory` and `modules` a ready input holds nothing of; `absent`: the file is gone; "
	        "`left_out`: links that lead out of the directories",
	.flags = ENDPOINT_FRESH,
	.queue = QUEUE_QUICK,
	.run = serve_state_run,
	.look = state_look,
};
