/* What Nsight Compute measured of kernels, from its CSV: `ncu --csv --page raw`, a row a kernel with a column a metric and units in a row of their own; or `ncu --csv` (--page details), a row a metric.
 *
 * Values are in base units whatever ncu scaled them to: byte, ns, inst, ..., and "X/second" of rates; "%" stays. Metrics are named as `ncu --query-metrics` does; of the details page, the labels of a few are translated
 * ("Achieved Occupancy"), others stay as they are. Attributes of the device and of the launch, and values that are no numbers, are left out. */
#ifndef OPSCOPE_OPEN_NCU_H
#define OPSCOPE_OPEN_NCU_H

#include "base/buf.h"
#include "base/err.h"
#include "base/intern.h"

#include <stdbool.h>

struct ncu_launch {
	uint32_t name;           /* in ncu.strings */
	int32_t grid[3], block[3];
	int64_t device;          /* as ncu numbers it; -1 = not stated */
	uint32_t first, n;       /* of ncu.value */
};

struct ncu_value {
	uint32_t metric;         /* in ncu.strings */
	double value;
};

struct ncu {
	struct intern strings;
	struct ncu_launch *launch; /* in order of their ids, which is that of their launches */
	struct ncu_value *value;
	uint32_t *unit;          /* by metric: in strings; of other strings 0 */
	uint32_t n, cap, n_values, cap_values, cap_units;
	uint64_t odd;            /* rows that could not be read */
};

/* Reads the text of such a file. ERR_FORMAT: it has no header of ncu; kernels of several processes; or numbers that are not written with a point, as in other locales. `path` is for the messages. *out is the caller's to
 * release, also on errors. */
int ncu_read_text(struct ncu *out, struct str text, const char *path, struct err *e);
/* The same of a file, which may be packed with gzip. */
int ncu_read(struct ncu *out, const char *path, struct err *e);
void ncu_release(struct ncu *n);

/* By what the numbers in this unit are multiplied to be in the base unit, whose name is appended to *base: "Mbyte/second" is 1e6 of "byte/second", "us" 1000 of "ns". */
double ncu_unit(struct str unit, struct buf *base);

#endif
