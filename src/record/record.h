/* Recording a program: what is asked for, and what came of it. Two backends: our own library in the program (own.h), and Nsight Systems (nsys.h). */
#ifndef OPSCOPE_RECORD_RECORD_H
#define OPSCOPE_RECORD_RECORD_H

#include "record/ask.h"
#include "record/launch.h"
#include "record/words.h"

#define RECORD_API_RANGE "cudaProfilerApi" /* --range: from cudaProfilerStart to cudaProfilerStop */

struct record_spec {
	const char *dir;           /* the run directory; it is there */
	char *const *argv;         /* the program; NULL-terminated */
	int argc;
	int64_t delay_ns, duration_ns; /* 0 = none */
	bool kill;                 /* the program ends with the duration */
	const char *range;         /* RECORD_API_RANGE, or the text of an NVTX range; NULL = everything */
	const char *steps, *key_range; /* "A..B" of the ranges of this name; NULL = all */
	bool sample_cpu, memory, sync;
	int64_t sample_hz;
	const char *graph;         /* "node", "graph"; NULL = the backend's choice */
	int64_t max_bytes;         /* of each process; 0 = no bound */
	bool ring;                 /* when it is reached, the oldest goes; else collecting stops */
	const char *ask_folder;    /* nothing is recorded but on demand, and this is where to ask (ask.h); NULL = all is recorded */
	int ask_signal;            /* what a signal to us asks for, 0 = none */
	struct ask_request asked;
	struct words env;          /* NAME=VALUE, for the program */
	const char *nsys_options;  /* further arguments of nsys; NULL = none */
};

struct record_result {
	int wait_status;           /* as of the program; a backend that only knows its exit status says so */
	struct launched launched;
	struct words notes;        /* what was not recorded, or not as asked, and why: sentences without a full stop */
	struct words warnings;     /* what went wrong */
	struct buf capture;        /* what to read: a file, or the run directory; empty = there is nothing */
};

void record_release(struct record_result *r);

#endif
