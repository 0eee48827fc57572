/* The table of devices with their metrics, shared by `overview` and `devices`. */
#ifndef OPSCOPE_REPORT_DEVICE_TABLE_H
#define OPSCOPE_REPORT_DEVICE_TABLE_H

#include "report/report.h"

/* Adds columns and rows to an empty table: every device, or those that ran kernels. */
void device_table(const struct profile *p, bool plugin, bool only_used, struct table *t);

#endif
