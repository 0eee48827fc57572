/* Rows of an SQL query as an answer. */
#ifndef OPSCOPE_SERVE_QUERY_H
#define OPSCOPE_SERVE_QUERY_H

#include "serve/endpoint.h"

/* Of the request's input, with its CHOICE_PARAMS and TABLE_PARAMS; takes no longer and no more than a user's own query may. */
int query_answer(const struct request *r, struct str query, struct response *out, struct err *e);

#endif
