/* The table of devices with their metrics, shared by `overview` and `devices`. */
#ifndef OPSCOPE_REPORT_PARTS_DEVICE_TABLE_H
#define OPSCOPE_REPORT_PARTS_DEVICE_TABLE_H

#include "query/report.h"

/* The section of report devices, and that of overview. */
extern const struct section device_section, device_summary_section;

/* Adds rows and notes to a table with the columns of one of these sections: every device, or the devices that ran kernels; over the steps that args ask for. */
void device_table(const struct profile *p, const struct report_args *args, bool only_used, struct table *t);

/* Sets a column to the compute capability of a row of profile->device, where the input states it. */
void device_table_set_capability(const struct profile *p, uint32_t row, struct table *t, unsigned col);

#endif
