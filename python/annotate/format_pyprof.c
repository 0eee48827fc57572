#include "annotate.h"

const struct format format_pyprof = {.name = "pyprof", .begin = markers_begin, .put_list = args_put_items};
