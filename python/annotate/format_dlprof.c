/* PyProf's markers as DLProf's module for PyTorch has them. */
#include "annotate.h"

const struct format format_dlprof = {
	.name = "dlprof", .begin = markers_begin, .put_list = args_put_items, .lines_not_twice = true, .functions_by_name = true,
};
