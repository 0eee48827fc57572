#include "serve/answers.h"

#include "base/hash.h"
#include "base/mem.h"
#include "io/gzip.h"

#include <pthread.h>
#include <stdio.h>

enum { PACK_FROM = 1400, SLOTS = 4096 };

struct answers {
	pthread_mutex_t lock;
	struct answer *slot[SLOTS];      /* by hash of the key; a newer one takes the place */
	struct answer *newest, *oldest;
	uint64_t bytes, max_bytes;
};

#define NO_MEMORY "{\"error\":\"out of memory; ask again later\"}\n"
static struct answer no_memory = {.status = 503, .type = "application/json; charset=utf-8", .body = {NO_MEMORY, sizeof NO_MEMORY - 1}};

struct answer *answer_new(unsigned status, const char *type, struct buf *body, bool keep)
{
	struct answer *a = NEW(struct answer);
	a->status = status;
	a->type = type;
	a->keep = keep;
	a->users = 1;
	if (body->n && keep) /* for long: without the room that its buffer has left */
		body->p = mem_realloc(body->p, body->n, 1);
	a->body = buf_view(body);
	a->owned = body->p;
	*body = (struct buf){0};
	if (status == 200)
		snprintf(a->etag, sizeof a->etag, "%016llx", (unsigned long long)hash_bytes(a->body.p, a->body.n));
	return a;
}

void answer_pack(struct answer *a)
{
	if (a->body.n < PACK_FROM)
		return;
	a->packed = gzip_pack(a->body);
	if (!a->packed.n)
		return;
	a->owned_packed = (char *)(uintptr_t)a->packed.p;
	mem_free(a->owned);
	a->owned = NULL;
	a->body = (struct str){0};
}

struct answer *answer_of_packed(unsigned status, const char *type, struct buf *body)
{
	struct answer *a = NEW(struct answer);
	*a = (struct answer){.status = status, .type = type, .users = 1, .packed = buf_view(body), .owned_packed = body->p};
	*body = (struct buf){0};
	return a;
}

void answer_etag(const struct answer *a, bool packed, char out[ETAG_MAX])
{
	snprintf(out, ETAG_MAX, "\"%s%s\"", a->etag, packed ? "-gzip" : "");
}

struct answer *answer_no_memory(void)
{
	return &no_memory;
}

void answer_disown(const struct answer *a)
{
	mem_disown(a->owned);
	mem_disown(a->owned_packed);
	mem_disown(a->file_name);
	mem_disown((void *)(uintptr_t)a);
}

void answer_free(struct answer *a)
{
	if (a == &no_memory)
		return;
	mem_free(a->owned);
	mem_free(a->owned_packed);
	mem_free(a->file_name);
	mem_free((char *)(uintptr_t)a->key.p);
	mem_free(a);
}

struct answers *answers_new(uint64_t max_bytes)
{
	struct answers *k = NEW(struct answers);
	k->max_bytes = max_bytes;
	pthread_mutex_init(&k->lock, NULL);
	return k;
}

static uint64_t serve_answers_size_of(const struct answer *a)
{
	return a->body.n + a->packed.n + a->key.n + sizeof *a;
}

static void drop_user(struct answer *a)
{
	if (a != &no_memory && --a->users == 0)
		answer_free(a);
}

static void unlink_answer(struct answers *k, struct answer *a)
{
	*(a->older ? &a->older->newer : &k->oldest) = a->newer;
	*(a->newer ? &a->newer->older : &k->newest) = a->older;
	a->newer = a->older = NULL;
}

static void serve_answers_link_newest(struct answers *k, struct answer *a)
{
	a->older = k->newest;
	*(k->newest ? &k->newest->newer : &k->oldest) = a;
	k->newest = a;
}

static void give_up(struct answers *k, struct answer *a)
{
	unlink_answer(k, a);
	k->slot[a->slot] = NULL;
	k->bytes -= serve_answers_size_of(a);
	drop_user(a);
}

void answers_free(struct answers *k)
{
	if (!k)
		return;
	while (k->oldest)
		give_up(k, k->oldest);
	pthread_mutex_destroy(&k->lock);
	mem_free(k);
}

struct answer *answers_get(struct answers *k, struct str key)
{
	pthread_mutex_lock(&k->lock);
	struct answer *a = k->slot[hash_bytes32(key.p, key.n) % SLOTS];
	if (a && str_eq(a->key, key)) {
		a->users++;
		unlink_answer(k, a);
		serve_answers_link_newest(k, a);
	} else {
		a = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	return a;
}

struct answer *answers_put(struct answers *k, struct str key, struct answer *a)
{
	if (!a->keep || a->status != 200 || serve_answers_size_of(a) + key.n > k->max_bytes / 4)
		return a;
	char *own = mem_alloc(key.n ? key.n : 1, 1);
	if (key.n)
		memcpy(own, key.p, key.n);
	a->key = (struct str){own, key.n};
	a->slot = hash_bytes32(key.p, key.n) % SLOTS;
	pthread_mutex_lock(&k->lock);
	if (k->slot[a->slot])
		give_up(k, k->slot[a->slot]);
	k->slot[a->slot] = a;
	a->users++;
	k->bytes += serve_answers_size_of(a);
	serve_answers_link_newest(k, a);
	while (k->bytes > k->max_bytes && k->oldest != a)
		give_up(k, k->oldest);
	pthread_mutex_unlock(&k->lock);
	return a;
}

void answers_release(struct answers *k, struct answer *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&k->lock);
	drop_user(a);
	pthread_mutex_unlock(&k->lock);
}
