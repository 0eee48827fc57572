/* Endpoints that a process of their own answers: a child that can be ended whatever it does, and whose memory is bounded as a whole. Whatever the
 * child reads (a profile is not changed by queries) is its own copy, made by fork;
 * but of large blocks that lie in a file (base/spill.h) it sees what the server writes there later: the server must leave blocks that the child reads as they are. */
#ifndef OPSCOPE_SERVE_CHILD_H
#define OPSCOPE_SERVE_CHILD_H

#include "serve/endpoint.h"

/* Calls k->prepare in this process, then k->run in a child, and gives the child's answer. ERR_LIMIT: the child took longer than r->query_seconds or
 * more memory than it may, the server is ending (library_ends), the client has gone (r->gone), or no child could be started (status 503). ERR_IO: the child ended without an
 * answer (status 500). The caller holds r->entry, and does not hold r->entry->ask. */
int child_run(const struct endpoint *k, const struct request *r, struct response *out, struct err *e);

#endif
