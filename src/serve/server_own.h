/* What server.c, which sets the server up, and http.c, which speaks the protocol, share. */
#ifndef OPSCOPE_SERVE_SERVER_OWN_H
#define OPSCOPE_SERVE_SERVER_OWN_H

#include "serve/clients.h"
#include "serve/exchange.h"
#include "serve/serve.h"

#include <netdb.h>

struct server {
	struct dispatcher to;
	struct MHD_Daemon *daemon;
	struct clients *clients;
	struct arena arena;              /* owns the texts */
	const char *prefix;              /* "" or "/x" */
	const char *bind;
	const char *url;
	const char **hosts;              /* that a request may have come to; NULL-terminated */
	bool any_host;                   /* bound to more than this machine */
	uint16_t port;
};

/* Begins to answer at an address; NULL when it cannot be bound, with errno where that is known. */
struct MHD_Daemon *http_listen(struct server *s, const struct addrinfo *a);

#endif
