#include "serve/export.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "serve/api/state.h"
#include "serve/exchange.h"
#include "serve/export_asks.h"
#include "serve/export_write.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { ANSWER_MAX = 16 << 20, QUERY_SECONDS = 600 };

struct maker {
	const struct export_options *o;
	struct library *library;
	struct library_entry **entry;
	unsigned n, cap;
	struct export_pack pack;
	struct buf states, answers;   /* the index: a state for each input, and where their answers are */
	struct export_result *result;
	/* Of the input at hand. */
	struct library_entry *held;
	bool any, found;              /* an answer was entered; the last was there */
	bool no_memory;               /* for an input: a report without it would be another one */
};

static void note_entry(void *context, const struct library_entry *x)
{
	struct maker *m = context;
	MEM_PUSH(m->entry, m->n, m->cap, (struct library_entry *)(uintptr_t)x);
}

/* Somebody who waits for an input. */
struct wait {
	struct library_waiter waiter;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool done, held;
};

static void on_ready(struct library_waiter *w, struct library_entry *x, bool held)
{
	struct wait *k = (struct wait *)(void *)((char *)w - offsetof(struct wait, waiter));
	pthread_mutex_lock(&k->lock);
	k->done = true;
	k->held = held;
	pthread_cond_signal(&k->told);
	pthread_mutex_unlock(&k->lock);
}

static void tell_progress(struct maker *m, struct library_entry *x)
{
	struct library_news n;
	library_news(m->library, x, &n);
	if (m->o->progress && n.state == ENTRY_LOADING)
		m->o->progress(m->o->context, x->path.p, n.done_bytes, n.total_bytes);
}

/* Whether the entry is now held. */
static bool hold(struct maker *m, struct library_entry *x)
{
	struct wait w = {.waiter.ready = on_ready};
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.told, NULL);
	enum library_hold is = library_hold(m->library, x, &w.waiter, true);
	pthread_mutex_lock(&w.lock);
	while (is == HOLD_WAITS && !w.done) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&w.told, &w.lock, &until);
		pthread_mutex_unlock(&w.lock);
		tell_progress(m, x);
		pthread_mutex_lock(&w.lock);
	}
	pthread_mutex_unlock(&w.lock);
	pthread_mutex_destroy(&w.lock);
	pthread_cond_destroy(&w.told);
	return is == HOLD_READY || w.held;
}

static void serve_export_report_put_missing(struct buf *b, unsigned status, struct str json)
{
	buf_printf(b, "{\"status\":%u,\"answer\":", status);
	buf_str(b, json);
	buf_char(b, '}');
}

/* An answer in the index, and itself in a block. */
static void serve_export_report_enter(struct maker *m, const struct answer *a)
{
	struct str body = a->body;
	while (body.n && body.p[body.n - 1] == '\n')
		body.n--;
	m->found = a->status == 200 && body.n <= ANSWER_MAX;
	if (m->found) {
		struct export_place p = export_pack_add(&m->pack, body);
		buf_printf(&m->answers, "[%u,%u]", p.block, p.at);
		m->result->answers++;
	} else if (a->status == 200) {
		char text[200];
		snprintf(text, sizeof text, "{\"error\":\"%.1f MB: exported reports leave out what is longer than %d MB; `opscope serve` and `opscope report` show it\"}",
		         (double)body.n / 1e6, ANSWER_MAX >> 20);
		serve_export_report_put_missing(&m->answers, 413, str_from(text));
	} else {
		serve_export_report_put_missing(&m->answers, a->status, body);
	}
}

static bool serve_export_report_ask(void *context, const struct export_ask *k)
{
	struct maker *m = context;
	struct arena arena = {0};
	struct request_arg arg[ASK_ARGS_MAX + 1];
	struct request r = {.path = str_from(k->path), .arg = arg, .library = m->library, .entry = m->held, .arena = &arena, .read_only = true,
	                    .query_seconds = QUERY_SECONDS};
	struct buf key = {0};
	if (k->otherwise && m->found)
		return true;
	memcpy(arg, k->arg, k->n_args * sizeof *arg);
	r.n_args = k->n_args;
	if (m->held)
		arg[r.n_args++] = (struct request_arg){STR("input"), m->held->key};
	export_ask_key(k, &key);
	buf_cstr(&m->answers, m->any ? ",\n" : "\n");
	json_put_string(&m->answers, buf_view(&key));
	buf_char(&m->answers, ':');
	struct answer *a = dispatch_now(&r);
	if (a->status == 503)
		mem_fail(0);
	serve_export_report_enter(m, a);
	answer_free(a);
	m->any = true;
	buf_release(&key);
	arena_release(&arena);
	return true;
}

/* The key of an input in the index; "" = what is about none. */
static void begin_input(struct maker *m, struct str key)
{
	buf_cstr(&m->answers, m->answers.n ? ",\n" : "");
	json_put_string(&m->answers, key);
	buf_cstr(&m->answers, ":{");
	m->any = m->found = false;
}

static void end_input(struct maker *m)
{
	buf_char(&m->answers, '}');
	export_pack_end(&m->pack);
}

static void put_state(void *context, const struct library_entry *x)
{
	struct maker *m = context;
	if (x == m->held)
		state_put_entry(&m->states, x);
}

static void say_failed(struct maker *m, struct library_entry *x)
{
	struct library_news n;
	library_news(m->library, x, &n);
	m->result->failed++;
	m->no_memory |= n.no_memory;
	if (m->o->failed)
		m->o->failed(m->o->context, n.error);
}

static void serve_export_report_say_left_out(void *context, struct str path)
{
	struct maker *m = context;
	struct err why;
	err_set(&why, ERR_IO, STR_FMT ": it leads out of its directory; --follow-links puts it in", STR_ARG(path));
	if (m->o->failed)
		m->o->failed(m->o->context, why.msg);
}

static void add_input(struct maker *m, struct library_entry *x)
{
	bool held = hold(m, x);
	m->held = x;
	buf_cstr(&m->states, m->states.n ? ",\n" : "");
	library_look(m->library, put_state, m);
	if (held) {
		begin_input(m, x->key);
		export_asks(x->profile, m->o->steps, serve_export_report_ask, m);
		end_input(m);
		library_release(m->library, x);
	} else {
		say_failed(m, x);
	}
	m->held = NULL;
}

/* {"version":1,"state":{...},"blocks":["data-....js",...],"answers":{"":{...},"run/worker/span":{"report/kernels":[block,place],...},...}} */
static void put_index(struct maker *m, bool directory, struct buf *out)
{
	struct buf b = {0};
	buf_printf(&b, "{\"version\":1,\"state\":{\"opscope\":\"%s\",\"version\":1,\"read_only\":true,", OPSCOPE_VERSION);
	if (m->o->steps) {
		json_put_text(&b, "steps", str_from(m->o->steps));
		buf_char(&b, ',');
	}
	buf_cstr(&b, "\"inputs\":[\n");
	buf_str(&b, buf_view(&m->states));
	buf_cstr(&b, "]},\n\"blocks\":[");
	for (unsigned i = 0; i < m->pack.n; i++) {
		buf_cstr(&b, i ? "," : "");
		buf_char(&b, '"');
		if (directory)
			export_block_name(&m->pack.block[i], &b);
		else
			buf_printf(&b, "%u", i);
		buf_char(&b, '"');
	}
	buf_cstr(&b, "],\n\"answers\":{");
	buf_str(&b, buf_view(&m->answers));
	buf_cstr(&b, "}}");
	export_pack_text(buf_view(&b), out);
	buf_release(&b);
}

/* ERR_USAGE. */
static int check_inputs(const struct maker *m, bool directory, struct err *e)
{
	struct stat in;
	for (unsigned i = 0; i < m->n; i++)
		if (stat(m->entry[i]->path.p, &in) == 0 && export_replaces(m->o->out, directory, &in))
			return err_set(e, ERR_USAGE, "%s: %s: the report must be another file", m->o->out, directory ? "holds an input that it would replace" : "is the input");
	return 0;
}

/* All that the report consists of but the index. */
static int serve_export_report_gather(struct maker *m, bool directory, struct err *e)
{
	library_look(m->library, note_entry, m);
	library_left_out(m->library, serve_export_report_say_left_out, m);
	m->result->inputs = m->n;
	if (!m->n)
		return err_set(e, ERR_IO, "no traces there");
	if (check_inputs(m, directory, e) < 0)
		return -1;
	begin_input(m, STR(""));
	export_asks_general(serve_export_report_ask, m);
	end_input(m);
	for (unsigned i = 0; i < m->n && !m->no_memory; i++)
		add_input(m, m->entry[i]);
	if (m->no_memory)
		return err_nomem(e);
	return m->result->failed == m->n ? err_set(e, ERR_IO, "none of the inputs can be read") : 0;
}

int export_report(const struct export_options *o, struct export_result *result, struct err *e)
{
	struct maker m = {.o = o, .result = result};
	bool directory;
	*result = (struct export_result){0};
	if (export_check(o->out, o->force, &directory, e) < 0)
		return -1;
	m.library = library_open(&(struct library_options){o->paths, o->n_paths, o->memory_bytes, o->follow_links, state_look}, e);
	if (!m.library)
		return -1;
	int rc = serve_export_report_gather(&m, directory, e);
	library_close(m.library, NULL); /* its threads would take the signals that wait while files are written */
	if (rc == 0) {
		struct buf index = {0};
		put_index(&m, directory, &index);
		rc = export_write(o->out, directory, &m.pack, buf_view(&index), &result->bytes, e);
		buf_release(&index);
	}
	export_pack_release(&m.pack);
	buf_release(&m.states);
	buf_release(&m.answers);
	mem_free(m.entry);
	return rc;
}
