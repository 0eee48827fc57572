/* Which of the plugin's views a profile has: of a fresh one, before anybody else has it. */
#ifndef OPSCOPE_SERVE_PLUGIN_VIEWS_H
#define OPSCOPE_SERVE_PLUGIN_VIEWS_H

#include "store/profile.h"

/* Bits 1 << enum plugin_view. */
unsigned plugin_views_of(const struct profile *p);

#endif
