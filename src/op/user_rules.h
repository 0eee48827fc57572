/* Rules of a user's own, from files: rows as in rules.def and kernels.def, which go before these. A value, of whoever made it: profiles of one process may have
 * different ones (profile.user_rules). Not changed any more once a profile has it; then any thread may read it. NULL = none. */
#ifndef OPSCOPE_OP_USER_RULES_H
#define OPSCOPE_OP_USER_RULES_H

#include "base/arena.h"
#include "base/err.h"

struct user_rules;

/* Everything that is added lies in the arena. */
struct user_rules *user_rules_new(struct arena *a);

/* Adds the rows of a file, behind those that are there: RULE(...) and GRAD(...), and KERNEL(...). -1 with file:line and what was expected; *u then holds
 * the rows before it. */
int user_rules_add_costs(struct user_rules *u, const char *path, struct err *e);
int user_rules_add_kernels(struct user_rules *u, const char *path, struct err *e);

#endif
