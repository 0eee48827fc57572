/* Tables as Arrow has them: a record batch through the Arrow C data interface, which pandas, polars, DuckDB, pyarrow and others take
 * as it is. https://arrow.apache.org/docs/format/CDataInterface.html
 *
 *	struct ArrowSchema schema;
 *	struct ArrowArray batch;
 *	if (opscope_table_arrow(t, &schema, &batch, error, sizeof error) == 0)
 *		... hand both to a consumer, which releases them, or: schema.release(&schema); batch.release(&batch);
 *
 * The batch is a struct array ("+s") with a child for each column, in their order, all nullable:
 *   OPSCOPE_TEXT     utf8 "u", from 2 GiB on "U"; bytes that are no UTF-8 become U+FFFD
 *   OPSCOPE_INTEGER  int64 "l"
 *   OPSCOPE_REAL     float64 "g"
 *   OPSCOPE_BOOLEAN  bool "b"
 * Each field has "title", "unit" and "help" as its metadata, and the schema "report", "title", "input" and "notes" (a line
 * each). Buffers begin at multiples of 64 bytes. */
#ifndef OPSCOPE_ARROW_H
#define OPSCOPE_ARROW_H

#include "opscope/opscope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the specification gives them, for whoever has no others. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};
#endif

/* Either may be NULL. What is filled in owns all of its memory: it needs neither the table nor the profile, and is released by its
 * `release`, in any thread, children that were moved out of it apart. */
OPSCOPE_API int opscope_table_arrow(const struct opscope_table *t, struct ArrowSchema *schema, struct ArrowArray *batch, char *error,
                                    size_t error_size);
/* A stream of one batch; its schema may be asked for again and again. The same ownership. */
OPSCOPE_API int opscope_table_arrow_stream(const struct opscope_table *t, struct ArrowArrayStream *stream, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
