/* A flame graph in one page: time by call path, drawn by a script in it. */
#include "analysis/recording.h"
#include "analysis/tree/flame.h"
#include "base/html_text.h"
#include "base/mem.h"
#include "base/sort.h"
#include "export/export.h"
#include "export/flamegraph_page.h"

#include <stdio.h>

enum { OPTION_METRIC, OPTION_BY, OPTION_FRAMES };

/* Which frames the page holds: the largest, so that each stands with all around it. */
struct choice {
	const struct flame *f;
	uint32_t *place;      /* node -> number in the page; 0 = merged (and of the root) */
	uint32_t kept, merged, zero; /* zero: frames without any time, left out */
	int64_t merged_ns;    /* total of the outermost merged frames */
};

static void export_flamegraph_choose(struct choice *c, const struct flame *f, uint32_t most)
{
	*c = (struct choice){.f = f};
	struct sort_item *v = NEW_ARRAY_RAW(f->n, struct sort_item);
	for (uint32_t i = 0; i < f->n; i++) /* a parent has no less than its child, and a smaller number where it has as much */
		v[i] = (struct sort_item){~sort_key_i64(f->node[i].total_ns), i, 0};
	sort_items(v, f->n);
	c->place = NEW_ARRAY(f->n, uint32_t);
	for (uint32_t k = 0; k < f->n; k++)
		if (v[k].row && k <= most && f->node[v[k].row].total_ns > 0)
			c->place[v[k].row] = 1;
	mem_free(v);
	for (uint32_t i = 1; i < f->n; i++) {
		uint32_t up = f->node[i].parent;
		if (c->place[i]) {
			c->place[i] = ++c->kept;
		} else if (f->node[i].total_ns <= 0) {
			c->zero++;
		} else {
			c->merged++;
			c->merged_ns += !up || c->place[up] ? f->node[i].total_ns : 0;
		}
	}
}

struct export_flamegraph_rest {
	uint32_t frames;
	int64_t ns;
};

/* Names that only merged frames have are left empty. */
static void export_flamegraph_put_names(struct sink *out, const struct choice *c)
{
	const struct flame *f = c->f;
	bool *used = NEW_ARRAY(f->names.n, bool);
	for (uint32_t i = 1; i < f->n; i++)
		used[f->node[i].name] |= c->place[i] != 0;
	buf_cstr(&out->buf, "const NAMES=[\"\"");
	for (uint32_t i = 1; i < f->names.n && sink_room(out) == 0; i++) {
		buf_cstr(&out->buf, ",\n");
		html_put_script_string(&out->buf, used[i] ? intern_get(&f->names, i) : STR(""));
	}
	buf_cstr(&out->buf, "];\n");
	mem_free(used);
}

static void export_flamegraph_put_node(struct buf *b, uint32_t parent, long name, int64_t self_ns, int64_t total_ns, unsigned kind, uint64_t count)
{
	buf_printf(b, ",\n%u,%ld,%lld,%lld,%u,%llu", parent, name, (long long)self_ns, (long long)total_ns, kind, (unsigned long long)count);
}

/* Six numbers a frame: parent, name, own ns, ns with all inside, kind, how many. What was merged is one frame in its parent, whose
 * name stands behind the others. */
static void export_flamegraph_put_nodes(struct sink *out, const struct choice *c)
{
	const struct flame *f = c->f;
	struct export_flamegraph_rest *rest = NEW_ARRAY(f->n, struct export_flamegraph_rest);
	buf_printf(&out->buf, "const D=[0,0,%lld,%lld,0,%llu", (long long)f->node[0].self_ns, (long long)f->node[0].total_ns,
	           (unsigned long long)f->node[0].count);
	for (uint32_t i = 1; i < f->n && sink_room(out) == 0; i++) {
		const struct flame_node *n = &f->node[i];
		if (c->place[i]) {
			export_flamegraph_put_node(&out->buf, c->place[n->parent], (long)n->name, n->self_ns, n->total_ns, n->kind, n->count);
		} else if (n->total_ns > 0 && (!n->parent || c->place[n->parent])) {
			rest[n->parent].frames++;
			rest[n->parent].ns += n->total_ns;
		}
	}
	for (uint32_t i = 0; i < f->n && sink_room(out) == 0; i++)
		if (rest[i].frames && rest[i].ns)
			export_flamegraph_put_node(&out->buf, c->place[i], -(long)rest[i].frames, rest[i].ns, rest[i].ns, FLAME_NONE, 0);
	buf_cstr(&out->buf, "];\n");
	buf_cstr(&out->buf, "for(let i=0;i<D.length;i+=6)if(D[i+1]<0){NAMES.push('('+-D[i+1]+' smaller frames and what is in them)');D[i+1]=NAMES.length-1}\n");
	mem_free(rest);
}

static void put_legend(struct buf *b, const struct flame *f)
{
	static const struct {
		enum flame_kind kind;
		const char *name;
	} kinds[] = {{FLAME_PYTHON, "Python"}, {FLAME_NN_MODULE, "module"}, {FLAME_USER, "annotation"}, {FLAME_FRAMEWORK, "op"},
	             {FLAME_WORK, "kernel, copy, set"}, {FLAME_NONE, "no place, or merged"}};
	bool seen[FLAME_KINDS] = {false};
	for (uint32_t i = 1; i < f->n; i++)
		seen[f->node[i].kind] = true;
	seen[FLAME_NONE] = true;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (seen[kinds[i].kind])
			buf_printf(b, "<span class=key><i class=k%d></i>%s</span>\n", kinds[i].kind, kinds[i].name);
}

static void export_flamegraph_put_notes(struct buf *b, const struct export_run *x, const struct choice *c, enum flame_metric metric, enum flame_by by)
{
	const struct flame *f = c->f;
	char left_out[80] = "";
	if (c->zero)
		snprintf(left_out, sizeof left_out, ", and %u with 0 ns, which are left out", c->zero);
	buf_printf(b, "<footer><p>%lld ns of %s in %u frames%s; the width of a frame is its time with all inside it.</p>\n",
	           (long long)f->node[0].total_ns, metric == FLAME_DEVICE ? "device work" : "host time in ops, annotations and Python frames", f->n - 1 - c->zero,
	           left_out);
	if (c->merged)
		buf_printf(b, "<p>%u frames, the smallest ones, with %lld ns in all, are merged into grey ones of their own beside the others: "
		           "--frames=N keeps more.</p>\n", c->merged, (long long)c->merged_ns);
	if (by != FLAME_OP && !f->has_stacks) {
		buf_cstr(b, "<p>No Python stacks were recorded: the graph holds ops alone. To record them: ");
		html_put_text(b, str_from(recording_how(x->p, RECORD_STACKS)));
		buf_cstr(b, ".</p>\n");
	}
	if (f->too_deep)
		buf_printf(b, "<p>Frames nested deeper than %d stand with that at this depth.</p>\n", FLAME_DEPTH);
	buf_cstr(b, "</footer>\n");
}

static void export_flamegraph_put_page(const struct export_run *x, const struct choice *c, enum flame_metric metric, enum flame_by by)
{
	static const char *const by_name[] = {[FLAME_STACK] = "Python stack", [FLAME_MODULE] = "module", [FLAME_OP] = "op"};
	struct buf *b = &x->out->buf;
	struct buf title = {0};
	buf_printf(&title, "%s time by %s", metric == FLAME_DEVICE ? "Device" : "Host", by_name[by]);
	buf_cstr(b, flamegraph_head);
	buf_cstr(b, "</style><title>");
	html_put_text(b, buf_view(&title));
	buf_cstr(b, "</title></head><body>\n<header><h1>");
	html_put_text(b, buf_view(&title));
	buf_cstr(b, "</h1><span class=dim>");
	html_put_text(b, x->p->input_path);
	buf_cstr(b, "</span>\n");
	put_legend(b, c->f);
	buf_cstr(b, "</header>\n");
	buf_cstr(b, flamegraph_body);
	export_flamegraph_put_notes(b, x, c, metric, by);
	buf_printf(b, "<script>\n'use strict';\nconst DEVICE=%s;\n", metric == FLAME_DEVICE ? "true" : "false");
	export_flamegraph_put_names(x->out, c);
	export_flamegraph_put_nodes(x->out, c);
	buf_cstr(b, flamegraph_script);
	buf_cstr(b, "</script></body></html>\n");
	buf_release(&title);
}

static int write_flamegraph(const struct export_run *x, struct err *e)
{
	int64_t most;
	const char *m = x->value[OPTION_METRIC], *v = x->value[OPTION_BY], *frames = x->value[OPTION_FRAMES];
	enum flame_metric metric = strcmp(m, "auto") == 0 ? flame_default(x->p) : strcmp(m, "cpu") == 0 ? FLAME_CPU : FLAME_DEVICE;
	enum flame_by by = strcmp(v, "op") == 0 ? FLAME_OP : strcmp(v, "module") == 0 ? FLAME_MODULE : FLAME_STACK;
	if (!str_to_i64(str_from(frames ? frames : "20000"), &most) || most < 1 || most > UINT32_MAX)
		return err_set(e, ERR_USAGE, "export flamegraph: --frames=%s: a number of frames was expected", frames);
	struct flame *f = flame_new(x->p, by, metric);
	struct choice c;
	int rc = 0;
	if (f->node[0].total_ns) {
		export_flamegraph_choose(&c, f, (uint32_t)most);
		export_flamegraph_put_page(x, &c, metric, by);
		mem_free(c.place);
	} else {
		rc = err_set(e, ERR_DATA, "export flamegraph: there is no %s in the input; to record it: %s",
		             metric == FLAME_DEVICE ? "device work" : "op, annotation or Python frame",
		             recording_how(x->p, metric == FLAME_DEVICE ? RECORD_DEVICE_WORK : RECORD_OPS));
	}
	flame_free(f);
	return rc;
}

static const char *const metrics[] = {"auto", "device", "cpu", NULL};
static const char *const views[] = {"stack", "module", "op", NULL};
static const struct export_option options[] = {
	[OPTION_METRIC] = {"metric", "METRIC", "device: durations of kernels, copies and sets; cpu: time of the host's threads; auto (default): device "
	                   "where there is device work", metrics},
	[OPTION_BY] = {"by", "WHAT", "stack (default): Python frames, then ops; module: nn.Modules, then ops; op: annotations and ops", views},
	[OPTION_FRAMES] = {"frames", "N", "the page holds the N largest frames (default 20000); smaller ones are merged, and a note says how many", NULL},
	{0},
};

const struct export_format export_format_flamegraph = {
	.name = "flamegraph",
	.title = "a flame graph in one HTML page",
	.help = "Time by call path, from Python through ops to kernels, or by module, or by op; frames are enlarged by a click and found by their name. "
	        "One file without anything to fetch, for any browser, light or dark. The times are those of export stacks.",
	.suffix = "html",
	.needs = PASS_NEST | PASS_CORRELATE,
	.options = EXPORT_OPTIONS(options),
	.write = write_flamegraph,
};
