/* What DLProf's PyTorch module records of the run: markers {"model_config": {"key": value}}, which its database holds as facts. */
#ifndef OPSCOPE_OP_MODEL_CONFIG_H
#define OPSCOPE_OP_MODEL_CONFIG_H

#include "store/profile.h"

/* The last value of `key` as written: true, 4, ...; false where no marker has it. O(arguments). */
bool model_config_find(const struct profile *p, const char *key, struct str *value);
/* Whether it is there and true. */
bool model_config_is(const struct profile *p, const char *key);
/* Whether there is any such marker: without, nothing of this is recorded. */
bool model_config_any(const struct profile *p);

/* What records them. */
extern const char model_config_how[];

#endif
