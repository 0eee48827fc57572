/* The backend that drives an installed nsys (Nsight Systems): profile, then export as a step of its own. What versions differ in is asked of nsys
 * itself (--help), not of a table of versions. */
#ifndef OPSCOPE_RECORD_NSYS_H
#define OPSCOPE_RECORD_NSYS_H

#include "record/record.h"

struct nsys {
	struct buf path;      /* of the program; NUL-terminated */
	struct buf version;   /* "2024.2.3.38-242334140272v0"; NUL-terminated, "" = it does not say */
	int year;             /* 0 = unknown */
	struct buf help;      /* of `nsys profile` */
};

/* Looks for nsys on the PATH and asks what it can. ERR_IO when there is none, or it does not answer. */
int nsys_probe(struct nsys *n, struct err *e);
void nsys_release(struct nsys *n);
/* Whether `nsys profile` has an option ("--kill"), or speaks of a word. */
bool nsys_has(const struct nsys *n, const char *word);

/* The command line, for a report at `base` (without suffix), its environment, and in *notes what this nsys cannot do. ERR_USAGE for what no nsys can. */
int nsys_command(const struct nsys *n, const struct record_spec *spec, const char *base, struct words *command, struct words *env, struct words *notes,
                 struct err *e);

/* Files that nsys may leave for a base name, the best first: "nsys-rep", "qdrep"; and "qdstrm" when its importer failed. */
extern const char *const nsys_suffix[];
enum { NSYS_REPORTS = 2, NSYS_SUFFIXES = 3 };

/* Runs a command of nsys, whose files go to `dir`, and waits for it. An old one does not end although the program has: after NSYS_PATIENCE_S (OPSCOPE_NSYS_TIMEOUT) in which only
 * nsys' own processes are left and write nothing, these are ended; a warning says so. */
enum { NSYS_PATIENCE_S = 600 };
int nsys_wait(char *const *command, char *const *env, const char *dir, struct launched *r, struct words *warnings, struct err *e);

/* All of it: probe, profile, export. -1 when nothing could be run; else what went wrong is in r->warnings. */
int nsys_run(const struct record_spec *spec, struct record_result *r, struct err *e);

#endif
