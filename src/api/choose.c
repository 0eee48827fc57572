/* The one trace that a path and the options stand for, as the command line chooses it (cli/open.c). */
#include "api/api.h"

#include "base/buf.h"
#include "gpu/gpu_state.h"
#include "input/discover.h"
#include "op/user_rules.h"
#include "open/trace_open.h"

static int choose_fail_none(const char *path, unsigned before, struct err *e)
{
	if (before)
		return err_set(e, ERR_USAGE, "%s: none of %u traces has this run, worker, span and rank", path, before);
	return err_set(e, ERR_DATA, "%s: no traces in this directory; *.pt.trace.json, other trace *.json (.gz) or *.opscope were expected", path);
}

static int choose_fail_ambiguous(const char *path, const struct trace_list *l, struct err *e)
{
	enum { SHOWN = 4 };
	struct buf list = {0};
	for (unsigned i = 0; i < l->n && i < SHOWN; i++)
		buf_printf(&list, "%s" STR_FMT, i ? ", " : "", STR_ARG(l->v[i].path));
	err_set(e, ERR_USAGE, "%s: %u traces where one was expected; choose with run, worker, span or rank, or give one's path: " STR_FMT "%s", path, l->n,
	        STR_ARG(buf_view(&list)), l->n > SHOWN ? ", ..." : "");
	buf_release(&list);
	return -1;
}

static int choose(const char *path, const struct opscope_options *o, struct trace_list *l, struct err *e)
{
	if (discover_add(l, path, e) < 0)
		return -1;
	discover_finish(l);
	unsigned before = l->n;
	if (o)
		discover_select(l, o->run, o->worker, o->span);
	if (o && o->rank && api_number(o->rank) < 0)
		return err_set(e, ERR_USAGE, "%s: rank=%s is for reports of a job: the number of one was expected", path, o->rank);
	if (o && o->rank)
		discover_select_rank(l, api_number(o->rank));
	if (!l->n)
		return choose_fail_none(path, before, e);
	return l->n == 1 ? 0 : choose_fail_ambiguous(path, l, e);
}

/* The rules are the profile's own, so that it outlives the options. */
static int choose_rules(struct profile *p, const struct opscope_options *o, struct err *e)
{
	if (!o->rules && !o->kernel_rules)
		return 0;
	struct user_rules *u = user_rules_new(&p->arena);
	p->user_rules = u;
	if (o->rules && user_rules_add_costs(u, o->rules, e) < 0)
		return err_prefix(e, "rules");
	return o->kernel_rules && user_rules_add_kernels(u, o->kernel_rules, e) < 0 ? err_prefix(e, "kernel-rules") : 0;
}

struct profile *api_open_found(const struct trace_file *f, const struct opscope_options *o, struct err *e)
{
	struct input_options input = o ? o->input : (struct input_options){0};
	input.found = f->found;
	struct profile *p = trace_open(f->path.p, &input, e);
	if (p && o && (choose_rules(p, o, e) < 0 || (o->gpu && gpu_state(p, str_from(o->gpu), e) < 0))) {
		profile_free(p);
		p = NULL;
	}
	return p;
}

struct profile *api_open(const char *path, const struct opscope_options *o, struct err *e)
{
	struct trace_list l = {0};
	struct profile *p = choose(path, o, &l, e) == 0 ? api_open_found(&l.v[0], o, e) : NULL;
	discover_release(&l);
	return p;
}
