/* Names of addresses (remote.h), inside this folder. */
#ifndef OPSCOPE_IO_REMOTE_NAME_H
#define OPSCOPE_IO_REMOTE_NAME_H

#include "io/remote/remote.h"

/* The address behind a name, with its secret; the name itself where it hides none. Never freed. */
const char *remote_given(const char *name);
/* Whether an http:// address is of this machine: what goes there in plain text is seen by nobody else. */
bool remote_is_loopback(struct str url);
/* Where the query or fragment of an address begins; its length where it has none. Keys of s3:// and gs:// may hold any byte, and names of az:// all but a token
 * that was signed ("sig="). */
size_t remote_query_at(struct str url);
/* Returns the name, which is then never freed. */
const char *remote_note_state(const char *name, struct remote_state s);

#endif
