/* Files of object stores and web servers, by libcurl:
 *
 *   s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/BLOB,
 *   https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB, https://HOST/...      (http:// of this machine alone)
 *
 * A file is a stream. A dropped connection is taken up where it broke, if the server says that the file is the same version (ETag, or Last-Modified). What
 * must be read by place, as a database, is copied to a cache. Nothing waits for ever: where too little comes for OPSCOPE_REMOTE_TIMEOUT seconds
 * (REMOTE_TIMEOUT_S), the reading fails.
 *
 * No secret leaves this folder: an address that holds one (a query, a password) has a *name* without it, by which everything else knows the file. */
#ifndef OPSCOPE_IO_REMOTE_H
#define OPSCOPE_IO_REMOTE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum { REMOTE_TIMEOUT_S = 30 };

/* Whether a path is an address of these kinds. */
bool remote_is(const char *path);

/* The address without query, fragment and password, which are remembered for as long as the process lives; the next different address of the same name gets
 * "#2", ... behind it. `path` itself where it is no address, or holds nothing to be hidden. Else the result is never freed. Safe on several threads. */
const char *remote_name(const char *path);

struct remote;

/* Opens a file by its address or name, and waits for the first answer. NULL and *e: ERR_IO, or ERR_USAGE where this program was built without libcurl. */
struct remote *remote_open(const char *path, struct err *e);
/* Up to n <= REMOTE_PEEK_BYTES bytes in front of what is read next; fewer at the end and where reading fails. */
enum { REMOTE_PEEK_BYTES = 4096 };
struct str remote_peek(struct remote *r, size_t n);
/* As read(2): 0 at the end; -1, and remote_error says why. */
ssize_t remote_read(struct remote *r, char *p, size_t n);
const char *remote_error(const struct remote *r);
uint64_t remote_bytes(const struct remote *r); /* the file's size; 0 = the server does not say */
void remote_stop(struct remote *r);            /* from another thread: a read that waits fails at once */
void remote_close(struct remote *r);

/* Puts the path of a local copy of the file into *path, NUL-terminated: one in the cache (XDG_CACHE_HOME, or ~/.cache, opscope/remote) of the same version and
 * size, or else what is read from *r, of which nothing was read before. Copies of other versions are removed, and the ones longest unused, while all are
 * larger than REMOTE_CACHE_BYTES. ERR_IO. */
#define REMOTE_CACHE_BYTES (UINT64_C(20) << 30)
int remote_local(struct remote *r, struct buf *path, struct err *e);

/* Whether an address stands for a folder, which means that names begin with it and '/': 1, 0; -1 and *e where there is neither, or the server does not answer. */
int remote_is_folder(const char *path, struct err *e);

/* Calls fn(context, the name of a file, which is never freed, what in its key follows the folder, its size) for every file below a folder, in the order of the server, REMOTE_LIST_MOST at
 * most. ERR_IO, ERR_LIMIT. */
enum { REMOTE_LIST_MOST = 1000000 };
typedef void remote_list_fn(void *context, const char *name, struct str below, uint64_t bytes);
int remote_list(const char *folder, remote_list_fn *fn, void *context, struct err *e);

/* Size and a number of the version of a file, as last heard of it: the network is not asked. False: nothing was heard. */
struct remote_state {
	uint64_t bytes, version;
};
bool remote_state(const char *path, struct remote_state *s);

#endif
