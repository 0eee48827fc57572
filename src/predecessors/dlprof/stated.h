/* The aggregations that a DLProf database states. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_STATED_H
#define OPSCOPE_PREDECESSORS_DLPROF_STATED_H

#include "query/predecessor.h"

extern const struct predecessor_stated dlprof_stated;

#endif
