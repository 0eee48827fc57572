/* Connections: those that take too long to say what they want are closed, and when there are too many, those that have waited
 * longest. So that whoever opens a thousand of them and says nothing keeps nobody else out. */
#ifndef OPSCOPE_SERVE_CLIENTS_H
#define OPSCOPE_SERVE_CLIENTS_H

struct clients;
struct client;

struct client_limits {
	unsigned most;             /* from here on, one that waits is closed for each that comes */
	unsigned ask_seconds;      /* for a whole request, from the begin of the connection or the end of the last answer */
	unsigned take_seconds;     /* to take an answer */
};

/* NULL when no thread can be started. */
struct clients *clients_new(const struct client_limits *o);
/* All clients must have been removed. c may be NULL. */
void clients_free(struct clients *c);

/* A new connection; `fd` stays open until clients_remove. NULL: there is no memory for it. */
struct client *clients_add(struct clients *c, int fd);
void clients_remove(struct clients *c, struct client *x); /* NULL is let pass */

/* What it does now: it is about to ask; its request is there, and it waits for us; it takes the answer. */
enum client_state { CLIENT_ASKS, CLIENT_WAITS, CLIENT_TAKES };
void clients_set(struct clients *c, struct client *x, enum client_state state);

#endif
