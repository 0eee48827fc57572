/* opscope record [options] -- COMMAND */
#include "cli/record.h"

#include "base/program.h"
#include "record/nsys.h"
#include "record/own.h"

#include <errno.h>

static const char *const backend_name[] = {[RECORD_OWN] = "own", [RECORD_NSYS] = "nsys"};

/* Ours where there is a library; else nsys where it is. -1 with the reason. */
static int choose_backend(struct record_options *o, struct buf *library, struct record_result *r, struct err *e)
{
	struct err missing;
	if (o->backend == RECORD_NSYS)
		return 0;
	if (own_find_library(library, &missing) == 0) {
		o->backend = RECORD_OWN;
		return own_check_environment(o->spec.env.v, e);
	}
	if (o->backend == RECORD_OWN || program_find("nsys", NULL))
		return err_set(e, ERR_IO, "%s%s", missing.msg, o->backend == RECORD_OWN ? "" : "; nor is there an nsys on the PATH");
	words_printf(&r->notes, "%s: nsys was used instead", missing.msg);
	o->backend = RECORD_NSYS;
	return 0;
}

/* As a shell says it, before anything is made; a PATH that --env sets is for execvp to look at. */
static int check_program(const struct record_options *o, struct record_result *r, struct err *e)
{
	for (int i = 0; i < o->spec.env.n; i++)
		if (strncmp(o->spec.env.v[i], "PATH=", 5) == 0)
			return 0;
	int why = program_find(o->spec.argv[0], NULL);
	if (!why)
		return 0;
	r->wait_status = (why == ENOENT ? 127 : 126) << 8;
	return err_set(e, ERR_IO, "%s: cannot be run: %s", o->spec.argv[0], why == ENOENT ? "no such program" : strerror(why));
}

/* Where the program can be asked to record. */
static int choose_sockets(struct record_options *o, struct buf *sockets, struct err *e)
{
	if (!o->on_demand)
		return 0;
	o->backend = RECORD_OWN;
	if (ask_folder(sockets, e) < 0)
		return -1;
	o->spec.ask_folder = sockets->p;
	return 0;
}

static int run_program(struct record_options *o, const struct buf *library, struct run_dir *d, struct record_result *r, struct err *e)
{
	o->spec.dir = d->path.p;
	return o->backend == RECORD_NSYS ? nsys_run(&o->spec, r, e) : own_run(&o->spec, library->p, r, e);
}

static int cli_record_fail(const struct err *e, const struct record_result *r)
{
	struct err said = *e;
	err_prefix(&said, "record");
	int status = launch_status(r->wait_status);
	return cli_fail(&said, e->code == ERR_USAGE ? EXIT_USAGE : status ? status : EXIT_INPUT);
}

/* The exit status of what is ours; r->wait_status is the program's. */
static int record(struct record_options *o, struct run_dir *d, struct record_result *r)
{
	struct record_job job;
	struct buf library = {0}, sockets = {0};
	struct err e;
	int status = EXIT_DONE;
	record_job(&job);
	if (choose_sockets(o, &sockets, &e) < 0 || check_program(o, r, &e) < 0 || choose_backend(o, &library, r, &e) < 0 || run_dir_open(d, o, backend_name[o->backend], &job, &e) < 0) {
		status = cli_record_fail(&e, r);
	} else if (run_program(o, &library, d, r, &e) < 0) {
		run_dir_forget(d);
		status = cli_record_fail(&e, r);
	} else {
		if (run_dir_end(d, o, backend_name[o->backend], &job, r->wait_status, &e) < 0)
			cli_fail(&e, 0);
		if (o->on_demand)
			record_after_demand(d, &job, r);
		else
			status = record_after(o, d, &job, r);
		run_dir_forget(d);
	}
	buf_release(&library);
	buf_release(&sockets);
	return status;
}

static int cli_record_run(int argc, char **argv)
{
	struct record_options o;
	struct record_result r = {0};
	struct run_dir d = {0};
	record_parse(argc, argv, &o);
	if (o.ask)
		return record_ask(&o);
	int status = record(&o, &d, &r), wait_status = r.wait_status;
	run_dir_release(&d);
	record_release(&r);
	words_release(&o.spec.env);
	if (wait_status)
		launch_end_like(wait_status);
	return status;
}

const struct command command_record = {
	.name = "record",
	.args = "-- COMMAND | --ask=PID|DIR",
	.help = "capture a run: its ranges, its CUDA calls, its kernels",
	.run = cli_record_run,
};
