/* Inputs: each reads one file format into a profile.
 *
 * Adding an input: a file src/input/NAME.c that ends in `const struct input input_NAME = {...};` and the word NAME in
 * src/input/meson.build. */
#ifndef OPSCOPE_INPUT_INPUT_H
#define OPSCOPE_INPUT_INPUT_H

#include "io/source.h"
#include "store/profile.h"

enum { INPUT_READ_AGAIN = 1 };

struct input {
	const char *name;  /* "kineto"; also the value of --input-format */
	const char *help;  /* which files these are, in a sentence */
	/* How sure it is, 0..100, from the first bytes (uncompressed, up to SOURCE_PEEK_BYTES) and the path (NULL = stdin). -1 and *e: it would look
	 * further into the file, which cannot be read. */
	int (*sniff)(struct str head, const char *path, struct err *e);
	/* Reads everything into *p (fresh from profile_new). Anything that can be saved is; what is odd goes to p->diags.
	 * -1 only when nothing at all could be read. INPUT_READ_AGAIN: without LEFT_QUIET, which p->left_out has and the file does not allow; of regular files. */
	int (*read)(struct source *s, struct profile *p, struct err *e);
	/* For formats of which a trace may be several files; NULL = each file is one. Whether this one stands for its trace: a directory then
	 * lists it, and reading it reads the others. */
	bool (*is_whole)(const char *path, struct str root, void **known); /* root: as in input_options */
	void (*forget)(void *known); /* what is_whole keeps of a directory, so that it does not look at all of it for each file: *known is NULL at first */
	/* The rank of the job that the file is of, where it says so; NULL = the name tells, or distributedInfo in its first bytes. */
	bool (*rank)(const char *path, int64_t *rank);
	bool (*lives)(const char *path); /* whether who writes the file is still there; NULL = not known of this format */
	/* Another number when there is more in the files, though their sizes and times need not have changed, since they are written through memory; 0 = none
	 * of this format. NULL = of this format they have. */
	uint64_t (*progress)(const char *path, struct str root);
	const char *job_look; /* the report that is the first look at files of this format, one of them or many; NULL = as of recordings */
	unsigned leaves_out; /* enum left_out bits: what it need not keep; it makes all of it by store/build.h and looks at none of it, or reads by store/load.h */
	bool tells_left;   /* it says of what it left out how much that was: profile.left_memory, left_bytes */
	bool grows;        /* files are sound while they are written: that one has grown since it was opened is nothing odd */
};

extern const struct input *const input_registry[]; /* NULL-terminated, generated */

struct input_options {
	const char *format; /* a name from the registry; NULL = recognise by content */
	bool as_written;    /* keep how each event was written, where the input can: profile.as_written */
	unsigned ignores;   /* enum left_out bits: what the profile will not be asked for, */
	bool counts_left;   /* but for how much it is: inputs that do not tell leave nothing out */
	bool (*needs_frames)(const struct profile *p); /* with LEFT_FRAMES: profile.needs_frames. trace_open sets it */
	bool (*needs_quiet)(struct str name); /* with LEFT_QUIET: profile.needs_quiet. trace_open sets it; NULL = nothing of LEFT_QUIET is left out */
	source_progress_fn *progress; /* called while reading; NULL = no one wants to know */
	void *progress_context;
	struct str root;    /* real path of the directory below which `path` was found: links out of it are read by nobody; n == 0 = links lead anywhere */
	const char *capture; /* for trace_open (open/trace_open.h): a recording that captured the graphs of the input, or a folder of such; NULL = those beside the input */
	const char *provenance; /* for trace_open: what torch.compile wrote down about its kernels, a file or a folder; NULL = a folder beside the input */
	const char *execution_trace; /* for trace_open: one of the same run (open/execution_trace.h), or a folder of such; NULL = none */
	const char *counters; /* for trace_open: what Nsight Compute measured of its kernels, a CSV file; NULL = nothing */
	unsigned threads;   /* how many may read; 0 = not said (base/threads.h) */
	bool found;         /* in a directory: a regular file is expected, and nothing else is waited for */
};

/* Opens `path` ("-" = stdin), recognises it and reads it. The result is the caller's (profile_free). NULL on error. */
struct profile *input_open(const char *path, const struct input_options *o, struct err *e);

/* What an input says of how far the file has come (struct input, `progress`); 0 = its size and time tell. Of a regular file. */
uint64_t input_progress(const char *path, struct str root);

/* The input that the first bytes of the file speak for, not only its being JSON. NULL: there is none, and e->code is ERR_NONE, or the file cannot be read:
 * it must be a regular one, since of a pipe these bytes would be gone. */
const struct input *input_recognise(const char *path, struct err *e);

#endif
