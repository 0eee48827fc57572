/* The TensorBoard plugin's own addresses, for scripts that ask them: the plugin's JSON, filled from reports with its numbers. Tooltips and
 * recommendations are in opscope's words. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_PLUGIN_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_PLUGIN_H

#include "base/json_text.h"
#include "query/report.h"
#include "serve/endpoint.h"

#define PLUGIN_PATH "/data/plugin/pytorch_profiler/"

/* Of a profile. The plugin lets pass arguments that it does not know. */
#define PLUGIN_FLAGS (ENDPOINT_SPAN | ENDPOINT_LOOSE | ENDPOINT_TURN)

/* The views of a run, in the plugin's order; bits 1 << VIEW of library_entry.marks. */
enum plugin_view { VIEW_OVERVIEW, VIEW_OPERATOR, VIEW_KERNEL, VIEW_TRACE, VIEW_DISTRIBUTED, VIEW_MEMORY, VIEW_MODULE, VIEW_LIGHTNING, PLUGIN_VIEWS };
extern const char *const plugin_view_name[PLUGIN_VIEWS];
/* Those that a profile has, but VIEW_DISTRIBUTED, which its run may have; in the bits above them, below 1 << 30, tb_worker_shape, cut. look() of an endpoint. */
#define PLUGIN_MARKS ((1u << 30) - 1)
unsigned plugin_views_of(const struct profile *p);
static inline unsigned plugin_mark_views(unsigned marks) { return marks & ((1u << PLUGIN_VIEWS) - 1); }
static inline unsigned plugin_mark_shape(unsigned marks) { return (marks & PLUGIN_MARKS) >> PLUGIN_VIEWS; }

/* The spans in which the workers of a run have a Distributed view together, in the order of their first worker; the list is the caller's (mem_free), its texts
 * are the library's. Once all of them were read. */
struct str *plugin_distributed_spans(struct library *l, struct str run, unsigned *n);
/* The worker of that view. */
#define PLUGIN_ALL "All"

/* Runs a report with the plugin's numbers; group_by and device may be NULL. For endpoints that take turns. */
int plugin_report(const struct request *r, const char *report, const char *group_by, const char *device, struct table *out, struct err *e);

/* Whether group_by=OperationAndInputShape or the like was given; without the argument, and for any other value, false. */
bool plugin_grouped(const struct request *r, const char *value);

/* The section, or an empty table. */
const struct table *plugin_section(const struct table *t, const char *name);

/* A cell as JSON, null where it has no value; col < 0: null. */
void plugin_put_cell(struct buf *b, const struct table *t, size_t row, int col);
/* "a":cell */
void plugin_put_member(struct buf *b, const char *name, const struct table *t, size_t row, const char *column);

/* {"type":"number","name":title}, with the help as tooltip if `help`. */
void plugin_put_column(struct buf *b, const struct column *c, bool help);

/* {"columns":[name, value],"rows":[[name, number], ...]} of the rows where the number is above 0, the largest first; *t is sorted. `title` may be NULL. */
int plugin_put_pie(struct buf *b, const char *title, struct table *t, const char *column, struct err *e);

/* {"columns":[...],"rows":[...]} of all columns */
void plugin_put_table(struct buf *b, const struct table *t);

#endif
