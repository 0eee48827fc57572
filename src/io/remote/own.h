/* What the files of this folder tell each other. */
#ifndef OPSCOPE_IO_REMOTE_OWN_H
#define OPSCOPE_IO_REMOTE_OWN_H

#include "base/arena.h"
#include "io/remote/curl.h"
#include "io/remote/name.h"

enum remote_scheme { REMOTE_NONE, REMOTE_WEB, REMOTE_S3, REMOTE_GS, REMOTE_AZ };

/* An address, taken apart. Its strings are of the arena that was given. */
struct remote_place {
	enum remote_scheme scheme;
	struct str name;     /* for messages */
	struct str bucket;   /* of az the container */
	struct str key;      /* without '/' in front, not encoded; n == 0: the bucket itself */
	struct str account;  /* of az; n == 0: the environment says */
	struct str secret;   /* of the web the whole URL; of az a token that stood behind the address; n == 0: none */
	char region[64];     /* of S3, learned from an answer; "": not yet */
};

/* ERR_USAGE where it is no address of a file or folder. */
int remote_place(struct remote_place *at, const char *path, struct arena *a, struct err *e);
/* Each byte outside the unreserved ones of RFC 3986, and '/' unless `slash`, becomes %XX. */
void remote_put_encoded(struct buf *b, struct str s, bool slash);

/* A request that only needs sending. remote_ask_release ends it. */
struct remote_ask {
	struct buf url;             /* NUL-terminated, as are the others */
	struct buf user, sign;      /* of CURLOPT_USERPWD and CURLOPT_AWS_SIGV4; n == 0: none */
	struct curl_slist *headers;
	struct buf who;             /* whose credentials these are, for messages: never the secret */
	bool no_verify;             /* the user asked for it (S3_VERIFY_SSL) */
};

/* `query`: parameters in alphabetical order, encoded, of a question to the bucket instead of the file; NULL = the file. `range`: "bytes=7-"; NULL = all.
 * -1 and *e where a credential is damaged or missing. */
int remote_ask_make(struct remote_ask *ask, const struct remote_place *at, const char *method, const char *query, const char *range, struct err *e);
void remote_ask_release(struct remote_ask *ask);

/* remote_open of a place, which must live longer than the result; `query` as above, `head`: the file's state alone, and no bytes come. */
struct remote *remote_start(struct remote_place *at, const char *query, bool head, struct err *e);
long remote_status(const struct remote *r); /* of HTTP; 0 = none came. Of an answer that is an error remote_start gives NULL, unless it is `head` */
const char *remote_version(const struct remote *r); /* ETag or Last-Modified, "" = not stated */
const struct remote_place *remote_place_of(const struct remote *r);
/* That what was asked for is not there, or that it was refused, and to whom. */
int remote_fail_status(struct remote *r, struct err *e);

#endif
