/* What opscope shows as DLProf does. */
#include "report/predecessor.h"

static const struct report_variant dlprof_variants[] = {
	{0},
};

const struct predecessor predecessor_dlprof = {.variants = dlprof_variants};
