/* From a request to its answer: which endpoint, are the arguments ones that it has, is the input there, is the answer known. */
#include "serve/exchange.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "serve/assets.h"
#include "serve/child.h"

#include <stdarg.h>
#include <stdio.h>

/* Makes *answer by make(context), or takes the one that needs no memory. */
static struct answer *try_answer(void (*make)(void *context), void *context, struct answer **answer)
{
	struct mem_pool blocks = {0};
	if (mem_try(&blocks, make, context) < 0) {
		mem_pool_release(&blocks);
		*answer = answer_no_memory();
	}
	mem_pool_drop(&blocks);
	return *answer;
}

struct short_answer {
	unsigned status;
	char text[1200];
	struct answer *made;
};

static void make_error(void *context)
{
	struct short_answer *k = context;
	struct buf b = {0};
	buf_char(&b, '{');
	json_put_text(&b, "error", str_from(k->text));
	buf_cstr(&b, "}\n");
	k->made = answer_new(k->status, "application/json; charset=utf-8", &b, false);
}

struct answer *answer_error(unsigned status, const char *fmt, ...)
{
	struct short_answer k = {.status = status};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(k.text, sizeof k.text, fmt, ap);
	va_end(ap);
	return try_answer(make_error, &k, &k.made);
}

struct str request_value(const struct request *r, const char *name)
{
	for (unsigned i = 0; i < r->n_args; i++)
		if (str_eqc(r->arg[i].name, name))
			return r->arg[i].value;
	return (struct str){NULL, 0};
}

int request_number(const struct request *r, const char *name, int64_t min, int64_t max, int64_t absent, int64_t *out, struct err *e)
{
	struct str v = request_value(r, name);
	*out = absent;
	if (!v.p)
		return 0;
	if (!str_to_i64(v, out) || *out < min || *out > max)
		return err_set(e, ERR_USAGE, "%s=" STR_FMT ": a whole number from %lld to %lld was expected", name, STR_ARG(v), (long long)min,
		               (long long)max);
	return 0;
}

static const struct endpoint *find_endpoint(struct str path, struct str *rest)
{
	const struct endpoint *found = NULL;
	for (const struct endpoint *const *file = endpoint_registry; *file; file++)
		for (const struct endpoint *k = *file; k; k = k->also) {
			struct str own = str_from(k->path);
			bool open = own.n && own.p[own.n - 1] == '/';
			if (open ? !str_starts(path, own) : !str_eq(path, own))
				continue;
			if (found && strlen(found->path) > own.n)
				continue;
			found = k;
			*rest = (struct str){path.p + own.n, path.n - own.n};
		}
	return found;
}

static const struct endpoint_param *find_param(const struct endpoint *k, struct str name)
{
	for (const struct endpoint_param *p = k->params; p && p->name; p++)
		if (str_eqc(name, p->name))
			return p;
	return NULL;
}

static struct answer *check_value(const struct endpoint_param *p, struct str value)
{
	struct buf list = {0};
	for (unsigned i = 0; p->values && p->values[i]; i++) {
		if (str_eqc(value, p->values[i])) {
			buf_release(&list);
			return NULL;
		}
		buf_printf(&list, "%s%s", i ? ", " : "", p->values[i]);
	}
	if (!p->values)
		return NULL;
	struct answer *a = answer_error(400, "%s=" STR_FMT ": one of " STR_FMT " was expected", p->name, STR_ARG(value), STR_ARG(buf_view(&list)));
	buf_release(&list);
	return a;
}

static struct answer *unknown_argument(const struct endpoint *k, struct str name)
{
	struct buf list = {0};
	if (k->flags & ENDPOINT_INPUT)
		buf_cstr(&list, "input, wait");
	for (const struct endpoint_param *p = k->params; p && p->name; p++)
		buf_printf(&list, "%s%s", list.n ? ", " : "", p->name);
	struct answer *a = answer_error(400, "%s: no argument '" STR_FMT "'; %s" STR_FMT, k->path, STR_ARG(name), list.n ? "there are: " : "it takes none",
	                                STR_ARG(buf_view(&list)));
	buf_release(&list);
	return a;
}

/* NULL = fine. */
static struct answer *check_arguments(const struct endpoint *k, const struct request *r)
{
	struct answer *bad;
	for (unsigned i = 0; i < r->n_args; i++) {
		struct str name = r->arg[i].name;
		const struct endpoint_param *p = find_param(k, name);
		bool general = (k->flags & (ENDPOINT_INPUT | ENDPOINT_SPAN)) && (str_eqc(name, "input") || str_eqc(name, "wait"));
		if (!p && !general && !(k->flags & ENDPOINT_LOOSE))
			return unknown_argument(k, name);
		if (p && (bad = check_value(p, r->arg[i].value)))
			return bad;
		for (unsigned j = 0; j < i; j++)
			if (str_eq(r->arg[j].name, name))
				return answer_error(400, "%s: the argument '" STR_FMT "' is given twice", k->path, STR_ARG(name));
	}
	for (const struct endpoint_param *p = k->params; p && p->name; p++)
		if (p->required && !request_value(r, p->name).p)
			return answer_error(400, "%s: the argument '%s' was expected: %s", k->path, p->name, p->help);
	return NULL;
}

/* What an answer is kept by: everything it depends on. */
static void find_key(void *exchange)
{
	struct exchange *x = exchange;
	const struct request *r = &x->request;
	struct buf *b = &x->key;
	buf_clear(b);
	uint64_t content = r->entry ? r->entry->generation : x->endpoint->flags & ENDPOINT_RUN ? library_run_content(r->library, request_value(r, "run")) : 0;
	buf_printf(b, "%c%llu " STR_FMT, x->packs ? 'z' : ' ', (unsigned long long)content, STR_ARG(r->path));
	for (unsigned i = 0; i < r->n_args; i++) {
		if (str_eqc(r->arg[i].name, "wait"))
			continue;
		buf_char(b, '&');
		buf_str(b, r->arg[i].name);
		buf_char(b, 0);
		buf_str(b, r->arg[i].value);
	}
}

static struct answer *error_answer(unsigned status, const struct err *e)
{
	static const unsigned of_code[] = {[ERR_NONE] = 500, [ERR_IO] = 500, [ERR_FORMAT] = 500, [ERR_USAGE] = 400, [ERR_DATA] = 422, [ERR_LIMIT] = 422, [ERR_NOMEM] = 503};
	return answer_error(status >= 400 ? status : of_code[e->code], "%s", e->msg);
}

/* `apart`: what is the user's own runs in a child. */
static int run_endpoint(const struct endpoint *k, const struct request *r, bool apart, struct response *out, struct err *e)
{
	struct library_turn turn;
	if (apart && k->queue == QUEUE_QUERIES)
		return child_run(k, r, out, e);
	if (!(k->flags & ENDPOINT_TURN))
		return k->run(r, out, e);
	if (library_turn_begin(&turn, r->entry, e) < 0)
		return -1;
	int rc = k->run(r, out, e);
	library_turn_end(&turn);
	return rc;
}

static struct answer *answer_of(const struct endpoint *k, const struct request *r, bool apart)
{
	struct response out = {.status = 200, .type = "application/json; charset=utf-8"};
	struct err e = {0};
	if (run_endpoint(k, r, apart, &out, &e) < 0) {
		buf_release(&out.body);
		return error_answer(out.status, &e);
	}
	if (out.packed)
		return answer_of_packed(out.status, out.type, &out.body);
	struct answer *a = answer_new(out.status, out.type, &out.body, !(k->flags & (ENDPOINT_FRESH | ENDPOINT_POST)));
	if (out.file_name) {
		size_t n = strlen(out.file_name) + 1;
		a->file_name = memcpy(mem_alloc(n, 1), out.file_name, n);
	}
	return a;
}

struct serve_dispatch_call {
	const struct endpoint *endpoint;
	const struct request *request;
	bool packs;
	struct answer *made;
};

/* What it allocates in the request's arena ends with the call, however that ends. */
static void run_call(void *context)
{
	struct serve_dispatch_call *c = context;
	struct request r = *c->request;
	struct arena texts = {0};
	r.arena = &texts;
	c->made = answer_of(c->endpoint, &r, true);
	if (c->packs)
		answer_pack(c->made);
	arena_release(&texts);
	answer_disown(c->made);
}

static struct answer *serve_dispatch_ask(const struct exchange *x)
{
	struct serve_dispatch_call c = {.endpoint = x->endpoint, .request = &x->request, .packs = x->packs};
	return try_answer(run_call, &c, &c.made);
}

struct answer *dispatch_now(struct request *r)
{
	const struct endpoint *k = find_endpoint(r->path, &r->rest);
	struct answer *bad = k ? check_arguments(k, r) : answer_error(404, "no page '" STR_FMT "'", STR_ARG(r->path));
	return bad ? bad : answer_of(k, r, false);
}

static void serve_dispatch_keep(void *exchange)
{
	struct exchange *x = exchange;
	answers_put(x->to->answers, buf_view(&x->key), x->answer);
}

/* x->answer, if it is kept. Whether one that is made now may be. */
static bool serve_dispatch_find_kept(struct exchange *x)
{
	bool kept = !(x->endpoint->flags & (ENDPOINT_FRESH | ENDPOINT_POST)) && mem_try(NULL, find_key, x) == 0;
	mem_disown(x->key.p); /* another thread may go on with it */
	x->answer = kept ? answers_get(x->to->answers, buf_view(&x->key)) : NULL;
	return kept;
}

/* On a thread that answers; the input, if one is needed, is held. */
static void answer_now(struct serve_task *j)
{
	struct exchange *x = (struct exchange *)(void *)((char *)j - offsetof(struct exchange, job));
	bool kept = serve_dispatch_find_kept(x);
	if (!x->answer) {
		x->answer = serve_dispatch_ask(x);
		if (kept)
			mem_try(NULL, serve_dispatch_keep, x); /* else it is not kept */
	}
	if (x->request.entry)
		library_release(x->to->library, x->request.entry);
	x->done(x);
}

static struct answer *answer_busy(void)
{
	return answer_error(503, "too many requests are waiting for their answers; ask again in a second");
}

static struct answer *answer_failed(struct library *l, struct library_entry *x)
{
	struct library_news n;
	library_news(l, x, &n);
	return n.error[0] ? answer_error(n.no_memory ? 503 : 422, "%s", n.error) : answer_error(503, "the server is about to end");
}

enum awaited { AWAITED_READY, AWAITED_ANSWERED, AWAITED_LATER };

static void run_ready(struct library_waiter *w, struct library_entry *entry, bool held);

static bool add_job(struct exchange *x)
{
	return jobs_add(x->to->jobs[x->endpoint->queue], &x->job);
}

/* Those of the run that were never read, one after the other. AWAITED_LATER: *x belongs to another thread already. */
static enum awaited await_run(struct exchange *x)
{
	struct request *r = &x->request;
	struct str run = request_value(r, "run");
	struct library_entry *entry;
	if (!library_has_run(r->library, run)) {
		x->answer = answer_error(404, "no run '" STR_FMT "'", STR_ARG(run));
		return AWAITED_ANSWERED;
	}
	x->waiter.ready = run_ready;
	while ((entry = library_unread(r->library, run))) {
		enum library_hold hold = library_hold(r->library, entry, &x->waiter, true);
		if (hold == HOLD_WAITS)
			return AWAITED_LATER;
		if (hold == HOLD_READY)
			library_release(r->library, entry);
		if (hold == HOLD_FULL || library_ends(r->library)) {
			x->answer = answer_busy();
			return AWAITED_ANSWERED;
		}
	}
	return AWAITED_READY;
}

static void run_ready(struct library_waiter *w, struct library_entry *entry, bool held)
{
	struct exchange *x = (struct exchange *)(void *)((char *)w - offsetof(struct exchange, waiter));
	struct library_news news;
	library_news(x->to->library, entry, &news);
	if (held)
		library_release(x->to->library, entry);
	if (!held && news.no_memory) {
		x->answer = answer_failed(x->to->library, entry);
		x->done(x);
		return;
	}
	enum awaited is = await_run(x);
	if (is == AWAITED_LATER || (is == AWAITED_READY && add_job(x)))
		return;
	if (is == AWAITED_READY)
		x->answer = answer_busy();
	x->done(x);
}

static void entry_ready(struct library_waiter *w, struct library_entry *entry, bool held)
{
	struct exchange *x = (struct exchange *)(void *)((char *)w - offsetof(struct exchange, waiter));
	if (held && add_job(x))
		return;
	if (held)
		library_release(x->to->library, entry);
	x->answer = held ? answer_busy() : answer_failed(x->to->library, entry);
	x->done(x);
}

struct loading_answer {
	struct library_news news;
	struct answer *made;
};

static void make_loading(void *context)
{
	struct loading_answer *k = context;
	struct buf b = {0};
	buf_printf(&b, "{\"state\":\"loading\",\"done_bytes\":%llu,\"total_bytes\":%llu}\n", (unsigned long long)k->news.done_bytes,
	           (unsigned long long)k->news.total_bytes);
	k->made = answer_new(202, "application/json; charset=utf-8", &b, false);
}

static struct answer *answer_loading(struct library *l, struct library_entry *entry)
{
	struct loading_answer k = {0};
	library_news(l, entry, &k.news);
	return try_answer(make_loading, &k, &k.made);
}

/* Both: NULL and r->entry, or why not. */
static struct answer *find_input(struct exchange *x)
{
	struct request *r = &x->request;
	struct str key = request_value(r, "input");
	r->entry = library_find(r->library, key);
	if (r->entry)
		return NULL;
	return key.n ? answer_error(404, "no input '" STR_FMT "'; /api/state lists them", STR_ARG(key))
	             : answer_error(400, "%s: the argument 'input' was expected; /api/state lists what there is", x->endpoint->path);
}

static struct answer *serve_dispatch_find_span(struct exchange *x)
{
	static const char *const names[] = {"run", "worker", "span"};
	struct request *r = &x->request;
	struct str v[3];
	for (unsigned i = 0; i < 3; i++) {
		v[i] = request_value(r, names[i]);
		if (!v[i].p)
			return answer_error(400, "%s: the argument '%s' was expected", x->endpoint->path, names[i]);
	}
	r->entry = library_find_span(r->library, v[0], v[1], v[2]);
	return r->entry ? NULL : answer_error(404, "no profile " STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(v[0]), STR_ARG(v[1]), STR_ARG(v[2]));
}

/* AWAITED_LATER: *x belongs to another thread already. */
static enum awaited await_entry(struct exchange *x)
{
	struct request *r = &x->request;
	x->answer = x->endpoint->flags & ENDPOINT_SPAN ? serve_dispatch_find_span(x) : find_input(x);
	if (x->answer)
		return AWAITED_ANSWERED;
	/* What is written must rest on what the file holds now. */
	if (x->post)
		library_renew(r->library, r->entry);
	bool waits = !str_eqc(request_value(r, "wait"), "0");
	x->waiter.ready = entry_ready;
	enum library_hold hold = library_hold(r->library, r->entry, &x->waiter, waits);
	if (hold == HOLD_READY)
		return AWAITED_READY;
	if (hold == HOLD_WAITS && waits)
		return AWAITED_LATER;
	x->answer = hold == HOLD_FAILED ? answer_failed(r->library, r->entry) : hold == HOLD_FULL ? answer_busy() : answer_loading(r->library, r->entry);
	return AWAITED_ANSWERED;
}

/* NULL = it may be asked. */
static struct answer *serve_dispatch_refuse(const struct exchange *x)
{
	const struct endpoint *k = x->endpoint;
	if (x->post != !!(k->flags & ENDPOINT_POST))
		return answer_error(405, "%s: %s was expected", k->path, x->post ? "GET" : "POST");
	return check_arguments(k, &x->request);
}

bool dispatch(struct dispatcher *d, struct exchange *x)
{
	struct request *r = &x->request;
	x->to = d;
	x->job.run = answer_now;
	r->library = d->library;
	r->shelf = d->shelf;
	r->arena = &x->arena;
	r->read_only = d->read_only;
	r->editor = d->editor;
	r->query_seconds = d->query_seconds;
	x->endpoint = find_endpoint(r->path, &r->rest);
	if (!x->endpoint) {
		x->answer = x->post ? NULL : asset_find(r->path);
		if (!x->answer)
			x->answer = answer_error(404, "no page '" STR_FMT "'", STR_ARG(r->path));
		return true;
	}
	x->answer = serve_dispatch_refuse(x);
	if (x->answer)
		return true;
	if (x->endpoint->flags & (ENDPOINT_INPUT | ENDPOINT_SPAN | ENDPOINT_RUN)) {
		enum awaited is = x->endpoint->flags & ENDPOINT_RUN ? await_run(x) : await_entry(x);
		if (is != AWAITED_READY)
			return is == AWAITED_ANSWERED;
	}
	struct library_entry *held = r->entry;
	serve_dispatch_find_kept(x);
	if (!x->answer && add_job(x))
		return false;
	if (held)
		library_release(d->library, held);
	if (!x->answer)
		x->answer = answer_busy();
	return true;
}
