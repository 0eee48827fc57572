/* DLProf's database: here an .opscope file, dlprof_dldb.opscope, which any other command reads. */
#include "cli/dlprof.h"

#include <sys/stat.h>
#include <unistd.h>

#include "report/aggregate.h"

enum { MOST_FILES = 10000 };

/* dlprof_dldb.opscope; when that is there and to be kept, dlprof_dldb_1.opscope, _2, ... NULL: there are too many. */
static const char *free_path(struct dlprof_options *o)
{
	const char *path = dlprof_path(o, "dlprof_dldb.opscope");
	for (int i = 1; !o->force && access(path, F_OK) == 0; i++) {
		if (i > MOST_FILES)
			return NULL;
		path = dlprof_path(o, "dlprof_dldb_%d.opscope", i);
	}
	return path;
}

static struct aggregate_spec spec_of(const struct dlprof_options *o, const struct report_args *args, char now[CLI_NOW_BYTES])
{
	return (struct aggregate_spec){
		.name = str_from(o->profile_name ? o->profile_name : ""),
		.created = cli_now(now),
		.args = {.key_op = args->key_op, .has_steps = args->has_steps, .step_first = args->step_first, .step_last = args->step_last},
	};
}

/* The part before the first call of the key op is an iteration of DLProf and no step of ours: then the whole recording is kept. */
static int write_new(struct profile *p, const char *path, struct aggregate_spec *spec, const struct dlprof_options *o, struct err *e)
{
	int rc = aggregate_import(p, path, spec, e);
	if (rc == 0 || (e->code != ERR_USAGE && e->code != ERR_DATA) || (!spec->args.key_op && !spec->args.has_steps))
		return rc;
	dlprof_say(o, DLPROF_MINIMAL, "Warning: %s holds all iterations: %s", path, e->msg);
	spec->args = (struct report_args){0};
	return aggregate_import(p, path, spec, e);
}

int dlprof_write_database(struct dlprof_options *o, struct profile *p, const char *from, const struct report_args *args, struct err *e)
{
	char now[CLI_NOW_BYTES];
	struct aggregate_spec spec = spec_of(o, args, now);
	if (p->reopened) {
		if (!args->key_op && !args->has_steps)
			return 0; /* it is its own database */
		dlprof_say(o, DLPROF_NORMAL, "Adding an aggregation to %s", from);
		return aggregate_add(p, from, &spec, NULL, e);
	}
	const char *path = free_path(o);
	if (!path)
		return err_set(e, ERR_LIMIT, "dlprof: %s/dlprof_dldb.opscope and %d others are there: --force=true replaces the first", o->output_path,
		               MOST_FILES);
	dlprof_say(o, DLPROF_NORMAL, "Creating dlprof database at %s", path);
	return write_new(p, path, &spec, o, e);
}
