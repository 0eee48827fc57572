/* What Nsight Compute measured of kernels, from its CSV. Two layouts are read:
 *
 *   ncu --csv --page raw              a row for each launch, a column for each metric, and the units in a row of their own
 *   ncu --csv (or --page details)     a row for each launch and metric
 *
 * Values are turned into base units, whatever unit ncu chose: byte, ns, inst, ...; rates into "X/second"; "%" stays. Metrics have the names of
 * `ncu --query-metrics`. The details page has labels instead: a few of them are translated ("Achieved Occupancy"), the others stay.
 * Attributes of the device and of the launch are left out, and so are values that are no numbers. */
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
	struct ncu_launch *launch; /* in the order of the file: ncu writes kernels in the order in which they were launched */
	struct ncu_value *value;
	uint32_t *unit;          /* by string id of the metric: the string id of its unit; 0 = none */
	uint32_t n, cap, n_values, cap_values, cap_units;
	uint64_t odd;            /* rows that could not be read */
};

/* Reads the text of such a file; `path` is for the messages. The caller releases *out, also on errors. ERR_FORMAT: the text has no header of ncu; or has a second
 * one, a header that ends within a quote or has more than 65,536 columns; or has kernels of several processes; or numbers of a locale that writes no point before
 * the fraction. ERR_DATA: it has no kernel. */
int ncu_read_text(struct ncu *out, struct str text, const char *path, struct err *e);
/* The same of a file, which may be packed with gzip. Also ERR_IO, and ERR_LIMIT for more than 1 GiB of text. */
int ncu_read(struct ncu *out, const char *path, struct err *e);
void ncu_release(struct ncu *n);

/* The factor that turns a number in `unit` into base units; the base unit's name is appended to *base. "Mbyte/second": 1e6 and "byte/second"; "us": 1000 and "ns". */
double ncu_unit(struct str unit, struct buf *base);

#endif
