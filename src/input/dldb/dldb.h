/* What the files dldb*.c share: the state of reading one database of NVIDIA DLProf.
 *
 * Such a file has two parts. The tables read_only_* are the recording: ops, each call of them ("instance"), API calls and device work,
 * each row with the op and the number of the instance that it belongs to. The other tables hold one aggregation or more, keyed by
 * aggr_id: they become the store's table `stated`, and are shown by the report aggregations.
 * Texts are ids of the table dictionary. Times are ns since the recording began. A kernel, copy or set carries its API call; calls that
 * launched nothing have tables of their own. Columns and tables that a version lacks read as "not stated". */
#ifndef OPSCOPE_INPUT_DLDB_DLDB_H
#define OPSCOPE_INPUT_DLDB_DLDB_H

#include "base/buf.h"
#include "base/mem.h"
#include "io/sqldb.h"
#include "store/build.h"

/* A cell: a number, or the id of a text in p->strings. */
struct dldb_cell {
	enum sqlpage_type type; /* SQLPAGE_TEXT for text and bytes */
	union {
		int64_t i;
		double real;
		uint32_t text;
	};
};

/* A whole table whose rows others refer to by id. */
struct dldb_rows {
	struct dldb_cell *cell; /* n rows of `width` cells; cell 0 is the id */
	uint32_t n, width, cap;
	struct idmap at;        /* id -> row */
};

struct dldb_op {
	uint32_t first, n;      /* its instances: by_op[first .. first + n - 1] */
	bool other_domain;      /* of another domain than the one that is read: left out */
	bool unassociated;      /* of an API call outside every op: it has no range of its own */
};

struct dldb {
	struct sqldb db;
	struct profile *p;
	struct build b;
	const char *table;      /* being read, and its row, for diagnostics */
	int64_t row;
	int64_t domain;         /* whose ops are read; ID_NONE = the file has no domains */
	struct intern tables_read;
	struct dldb_rows dictionary, ops, instances, grid;
	struct dldb_op *op;     /* per row of ops */
	uint32_t *by_op;        /* rows of instances, grouped by op, in stored order */
	struct intern calls;    /* (process, thread, start, end) of the API calls that launched work: its id + 1 is the correlation id */
	struct intern work_seen; /* rows of calls and work, where several domains may repeat them */
	bool has_others;        /* there are ops of other domains */
	bool *called;           /* instance -> a row of a call or work is of it */
	int64_t next_corr;      /* of the calls that launched nothing */
	uint16_t cat_call;
};

/* Tells of the row that is being read: `text`, a literal, follows its table and number. */
#define DLDB_DIAG(d, kind, level, text, ...) \
	diag_add(&(d)->p->diags, kind, level, -1, "table %s, row %lld" text, (d)->table, (long long)(d)->row, ##__VA_ARGS__)

/* Columns of read_only_ops and read_only_op_instances, in the order in which they are loaded. */
enum { OP_ROW, OP_DOMAIN, OP_ID, OP_NAME, OP_TYPE, OP_TC, OP_DATA_TYPE, OP_DIRECTION, OP_STACK };
enum { INST_ROW, INST_OP, INST_START, INST_STOP, INST_PID, INST_TID, INST_INPUT_NAMES, INST_INPUT_SHAPES, INST_OUTPUT_NAMES,
       INST_OUTPUT_SHAPES, INST_PARAMETERS };

/* dldb_common.c. A table that is not there is empty; a damaged one is told and read as far as it goes. */
bool dldb_scan(struct dldb *d, struct sqlscan *s, const char *table, const char *const *columns);
bool dldb_next(struct dldb *d, struct sqlscan *s);
void dldb_scan_end(struct dldb *d, struct sqlscan *s);
void dldb_load(struct dldb *d, struct dldb_rows *r, const char *table, const char *const *columns);
void dldb_rows_release(struct dldb_rows *r);
/* The row of this id; ROW_NONE. */
static inline uint32_t dldb_find(const struct dldb_rows *r, int64_t id) { return idmap_get(&r->at, id); }
static inline const struct dldb_cell *dldb_at(const struct dldb_rows *r, uint32_t row, int column)
{
	return &r->cell[(size_t)row * r->width + (unsigned)column];
}
static inline int64_t dldb_i64(const struct dldb_cell *c, int64_t absent) { return c->type == SQLPAGE_INT ? c->i : absent; }
struct dldb_cell dldb_cell(struct dldb *d, const struct sqlscan *s, int column);
/* As text: numbers as they are printed; columns that are declared STRING turn texts that look like numbers into such. */
uint32_t dldb_text(struct dldb *d, const struct dldb_cell *c);
/* The text of an id of the dictionary; "?" and counted when there is none. */
uint32_t dldb_word(struct dldb *d, const struct dldb_cell *id);
int64_t dldb_int(struct dldb *d, const struct sqlscan *s, int column, int64_t absent);
/* False, and counted, when the row has no place in time. */
bool dldb_times(struct dldb *d, const struct dldb_cell *start, const struct dldb_cell *stop, int64_t *start_ns, int64_t *dur_ns);
uint32_t dldb_thread_track(struct dldb *d, int64_t pid, int64_t tid);
uint32_t dldb_device_track(struct dldb *d, int64_t device);

/* dldb_run.c: the recording. dldb_stated.c: the aggregations. */
void dldb_read_run(struct dldb *d);
void dldb_read_stated(struct dldb *d);
/* Whether a row of an aggregation belongs to the domain that is read. */
static inline bool dldb_own_domain(const struct dldb *d, int64_t domain)
{
	return d->domain == ID_NONE || domain == ID_NONE || domain == d->domain;
}

#endif
