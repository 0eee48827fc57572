#include "serve/clients.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>

struct client {
	struct client *older, *newer;    /* in order of `since` */
	int fd;
	enum client_state state;
	bool closed;                     /* by us: only its removal is waited for */
	time_t since;                    /* when it came into the state */
};

struct clients {
	pthread_mutex_t lock;
	pthread_cond_t end;
	pthread_t sweeper;
	struct client_limits limits;
	struct client *oldest, *newest;
	unsigned n, n_closed;
	bool ending;
};

static time_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void unlink_client(struct clients *c, struct client *x)
{
	*(x->older ? &x->older->newer : &c->oldest) = x->newer;
	*(x->newer ? &x->newer->older : &c->newest) = x->older;
}

static void serve_clients_link_newest(struct clients *c, struct client *x)
{
	x->since = now();
	x->older = c->newest;
	x->newer = NULL;
	*(c->newest ? &c->newest->newer : &c->oldest) = x;
	c->newest = x;
}

/* The thread of the sockets sees the end and removes it. */
static void close_client(struct clients *c, struct client *x)
{
	shutdown(x->fd, SHUT_RDWR);
	x->closed = true;
	c->n_closed++;
}

static struct client *oldest_in(const struct clients *c, enum client_state state)
{
	struct client *x = c->oldest;
	while (x && (x->closed || x->state != state))
		x = x->newer;
	return x;
}

static void serve_clients_make_room(struct clients *c)
{
	struct client *x = oldest_in(c, CLIENT_ASKS);
	x = x ? x : oldest_in(c, CLIENT_TAKES);
	if (x)
		close_client(c, x);
}

static void sweep_late(struct clients *c)
{
	time_t t = now();
	for (struct client *x = c->oldest; x; x = x->newer) {
		unsigned limit = x->state == CLIENT_ASKS ? c->limits.ask_seconds : c->limits.take_seconds;
		if (!x->closed && x->state != CLIENT_WAITS && t - x->since > (time_t)limit)
			close_client(c, x);
	}
}

static void *serve_clients_sweep(void *context)
{
	struct clients *c = context;
	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&c->end, &c->lock, &until);
		sweep_late(c);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

struct clients *clients_new(const struct client_limits *o)
{
	struct clients *c = NEW(struct clients);
	c->limits = *o;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->end, NULL);
	if (pthread_create(&c->sweeper, NULL, serve_clients_sweep, c) == 0)
		return c;
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->end);
	mem_free(c);
	return NULL;
}

void clients_free(struct clients *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_signal(&c->end);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->sweeper, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->end);
	mem_free(c);
}

static void make_client(void *client)
{
	*(struct client **)client = NEW(struct client);
}

struct client *clients_add(struct clients *c, int fd)
{
	struct client *x;
	if (mem_try(NULL, make_client, &x) < 0)
		return NULL;
	x->fd = fd;
	pthread_mutex_lock(&c->lock);
	serve_clients_link_newest(c, x);
	if (++c->n - c->n_closed > c->limits.most)
		serve_clients_make_room(c);
	pthread_mutex_unlock(&c->lock);
	return x;
}

void clients_remove(struct clients *c, struct client *x)
{
	if (!x)
		return;
	pthread_mutex_lock(&c->lock);
	unlink_client(c, x);
	c->n--;
	c->n_closed -= x->closed;
	pthread_mutex_unlock(&c->lock);
	mem_free(x);
}

void clients_set(struct clients *c, struct client *x, enum client_state state)
{
	pthread_mutex_lock(&c->lock);
	unlink_client(c, x);
	x->state = state;
	serve_clients_link_newest(c, x);
	pthread_mutex_unlock(&c->lock);
}
