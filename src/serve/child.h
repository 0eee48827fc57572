/* Endpoints that a process of their own answers: a child that can be ended whatever it does, and whose memory is bounded as a whole. Whatever the
 * child reads (a profile is not changed by queries) is its own copy, made by fork. */
#ifndef OPSCOPE_SERVE_CHILD_H
#define OPSCOPE_SERVE_CHILD_H

#include "serve/endpoint.h"

/* k->prepare in this process, then k->run in a child, as k->run would answer here. ERR_LIMIT when the child takes longer than
 * r->query_seconds, or more memory than it may, or when nobody waits any more (library_ends). r->entry is held, and r->entry->ask is not. */
int child_run(const struct endpoint *k, const struct request *r, struct response *out, struct err *e);

#endif
