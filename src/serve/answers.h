/* Answers that are kept, each in the form that was asked for, ready to be sent again, the least used given up first. An answer is shared by all who are sending
 * it, and is freed by the last of them. */
#ifndef OPSCOPE_SERVE_ANSWERS_H
#define OPSCOPE_SERVE_ANSWERS_H

#include "base/buf.h"

#include <stdint.h>

struct answer {
	unsigned status;
	const char *type;         /* static text */
	char *file_name;          /* for Content-Disposition; NULL = shown */
	struct str body;          /* as it is; p = NULL when there is only the packed form */
	struct str packed;        /* gzip; n = 0 when there is only the plain one */
	char etag[24];            /* without quotes; "" = none. What is sent: answer_etag */
	bool keep;                /* may be kept here and by clients, who ask again with the etag */
	char *owned, *owned_packed; /* body, packed: what is to be freed; NULL = lives for ever */
	/* Of answers.c. */
	struct str key;
	struct answer *newer, *older;
	unsigned users;
	uint32_t slot;
};

struct answers;

struct answers *answers_new(uint64_t max_bytes);
/* All answers must have been released. */
void answers_free(struct answers *k);

/* The kept answer to `key`; NULL = none. It must be released. */
struct answer *answers_get(struct answers *k, struct str key);
/* Hands *a over and gives it back as one more user's. */
struct answer *answers_put(struct answers *k, struct str key, struct answer *a);
void answers_release(struct answers *k, struct answer *a);

/* Of a body that is packed by gzip already. */
struct answer *answer_of_packed(unsigned status, const char *type, struct buf *body);

/* The ETag of one of its two forms, which differ: "hash", "hash-gzip", with their quotes. */
enum { ETAG_MAX = 32 };
void answer_etag(const struct answer *a, bool packed, char out[ETAG_MAX]);

/* Of an answer that nobody else uses and that was never kept. */
void answer_free(struct answer *a);

/* 503: out of memory. It is no one's, and may be released or freed like any other. */
struct answer *answer_no_memory(void);
/* It outlives the mem_try that it was made in (mem_disown). */
void answer_disown(const struct answer *a);

/* An answer from its parts; takes over what *body holds. */
struct answer *answer_new(unsigned status, const char *type, struct buf *body, bool keep);
/* For a client that takes gzip: the packed form in place of the plain one, unless the answer is short or would not become shorter. */
void answer_pack(struct answer *a);

#endif
