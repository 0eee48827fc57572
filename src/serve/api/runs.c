/* Which runs there are, and which inputs each has, as far as the file system and the heads of files tell. */
#include "base/hash.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "input/discover.h"
#include "open/job_list.h"
#include "serve/endpoint.h"
#include "store/load_job.h"

/* An entry as it was when the library was looked at. */
struct runs_item {
	struct library_entry *entry;
	uint64_t content, bytes;
	int64_t changed_ns;
	enum entry_state state;
	struct str error;        /* of ENTRY_FAILED */
};

struct runs_list {
	struct runs_item *v;
	unsigned n, cap;
	struct arena *arena;
};

static void serve_runs_see(void *context, const struct library_entry *x)
{
	struct runs_list *l = context;
	if (!x->absent)
		MEM_PUSH(l->v, l->n, l->cap, (struct runs_item){(struct library_entry *)(uintptr_t)x, x->content, x->bytes, x->changed_ns, x->state,
		         x->state == ENTRY_FAILED ? arena_str(l->arena, str_from(x->error)) : STR("")});
}

static bool serve_runs_keeps_job(const struct library_entry *x)
{
	return str_ends(x->path, STR(".opscope")) && load_job_is(x->path.p);
}

/* As the command line takes the folder (open/job_list.h), but without a job's own file, which is a copy of the recordings beside it. */
static bool serve_runs_look_for_job(const struct runs_item *v, unsigned n)
{
	struct trace_list l = {.v = NEW_ARRAY(n, struct trace_file), .cap = n};
	for (unsigned i = 0; i < n; i++) {
		const struct library_entry *x = v[i].entry;
		if (!serve_runs_keeps_job(x))
			l.v[l.n++] = (struct trace_file){.path = x->path, .run = x->run, .worker = x->worker, .span = x->span, .found = true};
	}
	bool is = job_list_is(&l);
	mem_free(l.v);
	mem_free(l.empty);
	return is;
}

/* Whether these n inputs of one run are the ranks of a job. The answer is kept as long as the files hold the same. */
static bool serve_runs_is_job(struct library *l, const struct runs_item *v, unsigned n)
{
	struct buf known = {0};
	uint64_t contents = n;
	for (unsigned i = 0; i < n; i++)
		contents = hash_bytes(&(const uint64_t[]){contents, (uintptr_t)v[i].entry, v[i].content}, 3 * sizeof contents);
	if (!library_note_get(l, v[0].entry, NOTE_IS_JOB, contents, &known)) {
		buf_char(&known, n > 1 && serve_runs_look_for_job(v, n) ? '1' : '0');
		library_note_put(l, v[0].entry, NOTE_IS_JOB, contents, buf_view(&known));
	}
	bool is = known.p[0] == '1';
	buf_release(&known);
	return is;
}

static void serve_runs_put_input(const struct runs_item *i, struct buf *b)
{
	const struct library_entry *x = i->entry;
	buf_cstr(b, "{");
	JSON_PUT_TEXTS(b, {"input", x->key}, {"worker", x->worker}, {"span", x->span}, {"path", x->path});
	buf_printf(b, ",\"content\":%llu,\"bytes\":%llu,\"changed_ns\":", (unsigned long long)i->content, (unsigned long long)i->bytes);
	if (i->changed_ns)
		buf_i64(b, i->changed_ns);
	else
		buf_cstr(b, "null");
	buf_printf(b, ",\"keeps_job\":%s", serve_runs_keeps_job(x) ? "true" : "false");
	if (i->state == ENTRY_FAILED) {
		buf_char(b, ',');
		json_put_text(b, "error", i->error);
	}
	buf_char(b, '}');
}

static void serve_runs_put_paths(const struct library *l, struct buf *b)
{
	unsigned n;
	const char *const *paths = library_paths(l, &n);
	buf_cstr(b, "\"looked_at\":[");
	for (unsigned i = 0; i < n; i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, str_from(paths[i]));
	}
	struct buf names = {0};
	discover_put_names(&names);
	buf_cstr(b, "],");
	json_put_text(b, "looked_for", buf_view(&names));
	buf_release(&names);
}

static int serve_runs_run(const struct request *r, struct response *out, struct err *e)
{
	struct runs_list l = {.arena = r->arena};
	struct buf *b = &out->body;
	library_look(r->library, serve_runs_see, &l);
	buf_char(b, '{');
	serve_runs_put_paths(r->library, b);
	buf_cstr(b, ",\"runs\":[");
	for (unsigned i = 0, end; i < l.n; i = end) {
		for (end = i + 1; end < l.n && str_eq(l.v[end].entry->run, l.v[i].entry->run); end++)
			;
		buf_cstr(b, i ? ",\n{" : "\n{");
		json_put_text(b, "run", l.v[i].entry->run);
		buf_printf(b, ",\"job\":%s,\"inputs\":[", serve_runs_is_job(r->library, l.v + i, end - i) ? "true" : "false");
		for (unsigned k = i; k < end; k++) {
			buf_cstr(b, k > i ? ",\n" : "\n");
			serve_runs_put_input(&l.v[k], b);
		}
		buf_cstr(b, "]}");
	}
	buf_cstr(b, "]}\n");
	mem_free(l.v);
	return 0;
}

const struct endpoint endpoint_runs = {
	.path = "/api/runs",
	.help = "what is there now, by run: size and date of each file, whether the inputs of a run are the ranks of one job, and whether a file keeps a job; no trace is read. `looked_at`, `looked_for`: where, and for which files",
	.flags = ENDPOINT_FRESH,
	.queue = QUEUE_QUICK,
	.run = serve_runs_run,
};
