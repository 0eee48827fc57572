/* DLProf's database: here an .opscope file, dlprof_dldb.opscope, which any other command reads. What will be kept is settled before the first
 * report is written. */
#include "predecessors/dlprof/cli_dlprof.h"

#include <sys/stat.h>
#include <unistd.h>

#include "predecessors/dlprof/dldb_write.h"
#include "predecessors/dlprof/iterations.h"

enum { MOST_FILES = 10000 };

static bool is_input(const struct dlprof_options *o, const char *path)
{
	struct stat in, out;
	return o->database && stat(o->database, &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

/* dlprof_dldb.opscope (or .sqlite); when that is there and to be kept, as what is read always is, dlprof_dldb_1.opscope, _2, ... NULL: there are too many. */
static const char *cli_database_free_path(struct dlprof_options *o, const char *ending)
{
	const char *path = dlprof_path(o, "dlprof_dldb.%s", ending);
	for (int i = 1; o->force ? is_input(o, path) : access(path, F_OK) == 0; i++) {
		if (i > MOST_FILES)
			return NULL;
		path = dlprof_path(o, "dlprof_dldb_%d.%s", i, ending);
	}
	return path;
}

static int too_many(const struct dlprof_options *o, const char *ending, struct err *e)
{
	return err_set(e, ERR_LIMIT, "dlprof: %s/dlprof_dldb.%s and %d others are there: --force=true replaces the first", o->output_path, ending, MOST_FILES);
}

/* The steps whose middle is in the window, as first and last number: opscope's steps begin or end at calls of the key op, or are its calls,
 * while DLProf's iterations end where the calls do. False: none. */
static bool steps_within(const struct steps *s, int64_t start_ns, int64_t end_ns, struct report_args *args)
{
	args->has_steps = false;
	for (unsigned i = 0; i < s->n && !s->whole_trace; i++) {
		const struct step *v = &s->v[i];
		int64_t middle = v->host_start_ns + (v->host_end_ns - v->host_start_ns) / 2;
		if (middle < start_ns || middle >= end_ns)
			continue;
		args->step_first = args->has_steps ? args->step_first : v->number;
		args->step_last = v->number;
		args->has_steps = true;
	}
	return args->has_steps;
}

/* What an aggregation can hold of the iterations asked for: whole steps by the same key op. ERR_DATA: none. */
static int cli_database_choose_steps(struct dlprof_options *o, struct profile *p, const struct report_args *args, struct report_args *to, struct err *e)
{
	struct dlprof_iterations d;
	struct err none;
	dlprof_iterations_of(p, p->key_op, &d);
	int64_t most = (int64_t)d.n - 1, first = args->has_steps ? args->step_first : 0, last = args->has_steps ? args->step_last : most;
	int64_t start_ns = d.start_ns[first], end_ns = last < most ? d.start_ns[last + 1] : INT64_MAX;
	bool all = first == 0 && last == most, found = d.calls > 0;
	const char *key = arena_str(&o->arena, d.key).p;
	dlprof_iterations_release(&d);
	if (args->key_op && !found)
		return err_set(e, ERR_DATA, "--key_op=%s was not found", args->key_op);
	to->key_op = args->key_op ? args->key_op : all ? NULL : key;
	if (all)
		return 0;
	if (steps_choose(p, to->key_op, &none) < 0 || !steps_within(p->steps, start_ns, end_ns, to))
		return err_set(e, ERR_DATA, "--iter_start=%lld --iter_stop=%lld: there is no whole step in that: what is before the first and after the last call "
		               "of key_op \"%s\" is none", (long long)first, (long long)last, to->key_op);
	if (to->step_first != first || to->step_last != last)
		dlprof_say(o, DLPROF_NORMAL, "Note: of iterations %lld to %lld the database keeps what is whole steps, in its numbers %lld to %lld",
		           (long long)first, (long long)last, (long long)to->step_first, (long long)to->step_last);
	return 0;
}

static int plan_new(struct dlprof_options *o, struct profile *p, const struct report_args *args, struct dlprof_plan *plan, struct err *e)
{
	struct aggregate_spec *spec = &plan->spec;
	plan->path = cli_database_free_path(o, "opscope");
	if (!plan->path)
		return too_many(o, "opscope", e);
	if (cli_database_choose_steps(o, p, args, &spec->args, e) == 0 && aggregate_check(p, spec, e) == 0)
		return 0;
	if (e->code != ERR_DATA && e->code != ERR_USAGE)
		return -1;
	dlprof_say(o, DLPROF_MINIMAL, "Warning: %s will hold all iterations: %s", plan->path, e->msg);
	spec->args = (struct report_args){0};
	return aggregate_check(p, spec, e);
}

static int plan_addition(struct dlprof_options *o, struct profile *p, const struct report_args *args, struct dlprof_plan *plan, struct err *e)
{
	struct aggregate_spec *spec = &plan->spec;
	if (cli_database_choose_steps(o, p, args, &spec->args, e) < 0 || aggregate_check(p, spec, e) < 0) {
		err_prefix(e, "dlprof: %s: no aggregation can be added, and nothing was written", plan->from);
		return -1;
	}
	const struct aggregation *same = aggregate_find(p, spec);
	if (same) {
		dlprof_say(o, DLPROF_MINIMAL, "Aggregation %lld of %s is this one: nothing is added", (long long)same->id, plan->from);
		return 0;
	}
	if (access(plan->from, W_OK) < 0)
		return err_set(e, ERR_IO, "dlprof: %s: no aggregation can be added to it, and nothing was written: the file is not to be written to", plan->from);
	plan->path = plan->from;
	return 0;
}

int dlprof_plan_database(struct dlprof_options *o, struct profile *p, const char *from, const struct report_args *args, struct dlprof_plan *plan,
                         struct err *e)
{
	struct err again;
	*plan = (struct dlprof_plan){.from = from};
	plan->spec = (struct aggregate_spec){.name = str_from(o->profile_name ? o->profile_name : ""), .created = now_text(plan->now), .rules = {"", 0}};
	int rc = 0;
	if (o->dldb != DLDB_NO && !(plan->dldb_path = cli_database_free_path(o, "sqlite")))
		return too_many(o, "sqlite", e);
	if (o->dldb == DLDB_INSTEAD)
		return 0;
	if (!p->reopened)
		rc = plan_new(o, p, args, plan, e);
	else if (args->key_op || args->has_steps) /* else it is its own database */
		rc = plan_addition(o, p, args, plan, e);
	return dlprof_set_key(p, args->key_op, rc ? &again : e) < 0 ? -1 : rc; /* as the reports want it */
}

/* The program that was recorded, as DLProf keeps the command. */
static struct str command_of(struct dlprof_options *o)
{
	struct buf b = {0};
	for (int i = 0; !o->database && i < o->app_n; i++)
		buf_printf(&b, "%s%s", i ? " " : "dlprof ", o->app[i]);
	struct str out = b.n ? arena_str(&o->arena, buf_view(&b)) : (struct str){0};
	buf_release(&b);
	return out;
}

static int write_dldb(struct dlprof_options *o, struct profile *p, const struct report_args *args, const struct dlprof_plan *plan, struct err *e)
{
	const struct dldb_content content = {
		.p = p, .args = args, .profile_name = o->profile_name ? str_from(o->profile_name) : (struct str){0}, .mode = dlprof_mode_name(o->mode),
		.command = command_of(o), .now = str_from(plan->now),
	};
	dlprof_say(o, DLPROF_NORMAL, "Creating dlprof database at %s", plan->dldb_path);
	return dldb_write(&content, plan->dldb_path, e) < 0 ? err_prefix(e, "dlprof: database") : 0;
}

int dlprof_write_database(struct dlprof_options *o, struct profile *p, const struct report_args *args, const struct dlprof_plan *plan, struct err *e)
{
	if (plan->dldb_path && write_dldb(o, p, args, plan, e) < 0)
		return -1;
	if (!plan->path)
		return 0;
	if (p->reopened) {
		dlprof_say(o, DLPROF_NORMAL, "Adding an aggregation to %s", plan->from);
		return aggregate_add(p, plan->from, &plan->spec, NULL, e) < 0 ? -1 : 0;
	}
	dlprof_say(o, DLPROF_NORMAL, "Creating dlprof database at %s", plan->path);
	return aggregate_import(p, plan->path, &plan->spec, e);
}
