/* Runs a program without Nsight Systems: with our own library in it, as `opscope record` does. */
#include "predecessors/dlprof/cli_dlprof.h"

#include <unistd.h>

#include "base/program.h"
#include "cli/record.h"
#include "record/own.h"

static const char *cli_own_fail(int *status, const struct err *e)
{
	*status = cli_fail(e, EXIT_INPUT);
	return NULL;
}

static const char *run_own(struct dlprof_options *o, struct record_options *r, const char *library, int *status)
{
	struct run_dir d = {0};
	struct record_job job;
	struct record_result done = {0};
	struct err e;
	const char *profile = NULL;
	record_job(&job);
	if (run_dir_open(&d, r, "own", &job, &e) < 0) {
		err_prefix(&e, "dlprof");
		cli_own_fail(status, &e);
	} else {
		r->spec.dir = d.path.p;
		dlprof_say(o, DLPROF_NORMAL, "nsys is not on the PATH: recording by opscope itself, in %s", r->output);
		if (own_run(&r->spec, library, &done, &e) < 0) {
			err_prefix(&e, "dlprof");
			cli_own_fail(status, &e);
			*status = launch_status(done.wait_status);
		} else {
			*status = launch_status(done.wait_status);
			if (run_dir_end(&d, r, "own", &job, done.wait_status, &e) < 0)
				cli_fail(&e, 0);
			profile = run_dir_segments(d.path.p) ? r->output : NULL;
		}
		if (!profile && !launch_status(done.wait_status)) {
			err_set(&e, ERR_DATA, "dlprof: nothing was recorded: no process of the program called CUDA, NVTX or ITT");
			cli_own_fail(status, &e);
		}
		run_dir_forget(&d);
	}
	run_dir_release(&d);
	record_release(&done);
	return profile;
}

/* `dlprof train.py`: what is no program but a script of Python is run by python. */
static void by_python(struct dlprof_options *o)
{
	static const char *const pythons[] = {"python", "python3"};
	struct str name = str_from(o->app[0]);
	if (!str_ends(name, STR(".py")) || access(o->app[0], R_OK) < 0 || program_find(o->app[0], NULL) == 0)
		return;
	for (size_t i = 0; i < sizeof pythons / sizeof pythons[0]; i++) {
		if (program_find(pythons[i], NULL) != 0)
			continue;
		char **app = (char **)arena_zalloc_array(&o->arena, (size_t)o->app_n + 2, sizeof *app);
		app[0] = (char *)(uintptr_t)arena_str(&o->arena, str_from(pythons[i])).p;
		memcpy(app + 1, o->app, (size_t)o->app_n * sizeof *app);
		o->app = app;
		o->app_n++;
		return;
	}
}

const char *dlprof_run(struct dlprof_options *o, int *status)
{
	by_python(o);
	struct record_options r = {
		.spec = {.argv = o->app, .argc = o->app_n, .delay_ns = o->delay_ns, .duration_ns = o->duration_ns, .kill = o->duration_ns > 0 && !o->profile_range,
		         .range = o->profile_range ? RECORD_API_RANGE : NULL},
		.output = dlprof_path(o, "%s.run", o->nsys_base),
		.force = o->force,
	};
	struct buf library = {0};
	struct err e;
	const char *profile = NULL;
	if (program_find("nsys", NULL) == 0)
		return dlprof_run_nsys(o, status);
	if (o->nsys_args || own_find_library(&library, &e) < 0) {
		err_set(&e, ERR_IO, "dlprof: nsys was not found on the PATH: Nsight Systems has to be installed to profile a program%s; --database=FILE reads a "
		        "profile that is there", o->nsys_args ? " with --nsys_options" : ", or " OWN_LIBRARY " of opscope");
		cli_own_fail(status, &e);
	} else if (own_check_environment(NULL, &e) < 0) {
		err_prefix(&e, "dlprof");
		cli_own_fail(status, &e);
	} else {
		profile = run_own(o, &r, library.p, status);
	}
	buf_release(&library);
	return profile;
}
