/* Errors are values: a function that can fail takes `struct err *` last, returns 0, or -1 after filling it in.
 * Only src/cli prints or exits. The message is one line: what happened, where, what was expected. */
#ifndef OPSCOPE_BASE_ERR_H
#define OPSCOPE_BASE_ERR_H

enum err_code {
	ERR_NONE = 0,
	ERR_IO,      /* the operating system refused: missing file, permission, full disk */
	ERR_FORMAT,  /* the bytes are not what they claim to be */
	ERR_USAGE,   /* the caller asked for something that does not exist */
	ERR_DATA,    /* the input is sound but lacks what was asked for */
	ERR_LIMIT,   /* a size or depth beyond what is supported */
	ERR_NOMEM,   /* the system has no memory left */
};

struct err {
	enum err_code code;
	char msg[1024];
};

/* Fills *e (which may be NULL) and returns -1, so that callers can `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ERR_NOMEM, in the same words everywhere. */
int err_nomem(struct err *e);

/* Puts "prefix: " before the message already in *e, and returns -1: context on the way up. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
