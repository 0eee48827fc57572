/* Another aggregation into an .opscope file, as `opscope aggregate` adds it. The one thing that the server writes. */
#include "query/aggregate.h"

#include "base/now.h"
#include "base/utf8.h"
#include "io/json.h"
#include "serve/tables.h"

struct wish {
	struct str name, key_op, steps; /* p = NULL: not given */
};

static struct str *serve_aggregate_place_of(struct wish *w, struct str key)
{
	struct { const char *name; struct str *place; } all[] = {{"name", &w->name}, {"key_op", &w->key_op}, {"steps", &w->steps}};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
		if (str_eqc(key, all[i].name))
			return all[i].place;
	return NULL;
}

static int serve_aggregate_take(const struct request *r, struct wish *w, struct str key, const struct json_value *v, struct err *e)
{
	struct str *place = serve_aggregate_place_of(w, key);
	unsigned repairs = 0;
	if (!place)
		return err_set(e, ERR_USAGE, "body: no member '" STR_FMT "'; there are: name, key_op, steps", STR_ARG(key));
	if (v->type == JSON_NULL)
		return 0;
	if (place->p)
		return err_set(e, ERR_USAGE, "body: '" STR_FMT "' is given twice", STR_ARG(key));
	struct buf text = {0};
	if (v->type == JSON_STRING)
		json_unescape(v->raw, &text, &repairs);
	*place = arena_str(r->arena, buf_view(&text));
	buf_release(&text);
	if (v->type != JSON_STRING || repairs || !utf8_valid(*place) || memchr(place->p, 0, place->n))
		return err_set(e, ERR_USAGE, "body: a string was expected for '" STR_FMT "'", STR_ARG(key));
	return 0;
}

/* {"steps": "3..5", "key_op": "mm", "name": "warm"}, each of them if wanted; strings or null. */
static int read_body(const struct request *r, struct wish *w, struct err *e)
{
	char *text = arena_alloc(r->arena, r->body.n + JSON_PADDING);
	memcpy(text, r->body.p, r->body.n);
	struct json j = {.end = text + r->body.n};
	const char *p = json_space(text);
	bool first = true;
	if (*p++ != '{')
		return err_set(e, ERR_USAGE, "body: a JSON object was expected");
	for (;;) {
		struct json_value key, value;
		p = json_member(&j, p, &first, &key);
		if (p && !key.raw.p)
			break;
		p = p ? json_value(&j, p, &value) : NULL;
		if (!p || j.repairs)
			return err_set(e, ERR_USAGE, "body: %s was expected", j.expected ? j.expected : "valid JSON");
		if (serve_aggregate_take(r, w, key.raw, &value, e) < 0)
			return -1;
	}
	return json_space(p) == j.end && !j.repairs ? 0 : err_set(e, ERR_USAGE, "body: one JSON object was expected");
}

static int read_wish(const struct request *r, struct wish *w, struct err *e)
{
	*w = (struct wish){request_value(r, "name"), request_value(r, "key_op"), request_value(r, "steps")};
	return r->body.n ? read_body(r, w, e) : 0;
}

static int serve_aggregate_add(const struct request *r, const struct aggregate_spec *spec, struct response *out, struct err *e)
{
	const struct aggregation *same;
	struct aggregation made = {0};
	if (aggregate_once(r->entry->profile, r->entry->path.p, spec, &same, &made, e) < 0) {
		out->status = e->code == ERR_FORMAT ? 422 : 0;
		return -1;
	}
	if (!same)
		library_changed(r->library, r->entry);
	buf_printf(&out->body, "{\"aggregation\":%lld,\"added\":%s}\n", (long long)(same ? same->id : made.id), same ? "false" : "true");
	return 0;
}

static int serve_aggregate_run(const struct request *r, struct response *out, struct err *e)
{
	struct wish w;
	char now[NOW_BYTES];
	if (r->read_only) {
		out->status = 403;
		return err_set(e, ERR_USAGE, "the server was started with --read-only: it writes nothing");
	}
	if (read_wish(r, &w, e) < 0)
		return -1;
	struct aggregate_spec spec = {.name = w.name.p ? w.name : STR(""), .created = now_text(now), .args.key_op = w.key_op.n ? w.key_op.p : NULL};
	if (w.steps.n && report_args_steps(&spec.args, w.steps, e) < 0)
		return -1;
	return serve_aggregate_add(r, &spec, out, e);
}

static const struct endpoint_param params[] = {
	STEP_PARAMS,
	{"name", "what to call it", NULL, false},
	{0},
};

const struct endpoint endpoint_aggregate = {
	.path = "/api/aggregate",
	.help = "adds an aggregation to an .opscope file, as `opscope aggregate` does; steps, key_op and name as arguments or as members of a JSON object; "
	        "gives its number, and whether it is new",
	.flags = ENDPOINT_INPUT | ENDPOINT_POST | ENDPOINT_TURN,
	.queue = QUEUE_WRITES,
	.params = params,
	.run = serve_aggregate_run,
};
