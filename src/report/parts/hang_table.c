#include "report/parts/hang_table.h"

#include "base/buf.h"
#include "report/parts/hang_notes.h"

enum {
	HANG_OP, HANG_SEQ, HANG_GROUP, HANG_WHY, HANG_MISSING, HANG_WAITING, HANG_DONE, HANG_ELSEWHERE, HANG_NO_DUMP, HANG_NOT_TOLD, HANG_STATE, HANG_SINCE, HANG_SIZES,
	HANG_WHERE
};

const struct section hang_section = {COLUMNS(
	[HANG_OP] = {COLUMN(TEXT, "op", "Hangs at", "the call at which ranks wait: the first that is pending on each of them", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[HANG_SEQ] = {COLUMN(NUMBER, "seq", "Seq", "its number in its group; of a send or receive among those of the rank that waits")},
	[HANG_GROUP] = {COLUMN(TEXT, "group", "Group", "process group: its description, else its name, and its ranks", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[HANG_WHY] = {COLUMN(TEXT, "why", "Because", "who is to blame, as far as the dumps tell: a rank that did not come, or that is stuck in what other ranks have completed. A rank that waits itself, or hangs at what it called before, is not", .flags = COLUMN_ANSWER | COLUMN_WIDE)},
	[HANG_MISSING] = {COLUMN(TEXT, "missing", "Did not come", "ranks of the group that have not called it", .flags = COLUMN_ANSWER)},
	[HANG_WAITING] = {COLUMN(TEXT, "waiting", "Waiting", "ranks that hang at it", .flags = COLUMN_ANSWER)},
	[HANG_DONE] = {COLUMN(TEXT, "done", "Done on", "ranks that have completed it", .flags = COLUMN_MINOR)},
	[HANG_ELSEWHERE] = {COLUMN(TEXT, "elsewhere", "Hang before", "ranks that have called it, and hang at what they called before", .flags = COLUMN_MINOR)},
	[HANG_NO_DUMP] = {COLUMN(TEXT, "no_dump", "No dump", "ranks of the group of which there is no dump that can be read", .flags = COLUMN_MINOR)},
	[HANG_NOT_TOLD] = {COLUMN(TEXT, "not_told", "Not told", "ranks whose dump does not say how far they have come in the group", .flags = COLUMN_DETAIL)},
	[HANG_STATE] = {COLUMN(TEXT, "state", "State", "scheduled, or started: whether its kernel runs on the ranks that wait. Where the recorder does not time calls, they stay scheduled", .flags = COLUMN_MINOR)},
	[HANG_SINCE] = {COLUMN(NS, "since_ns", "Called after", "when the first of these ranks called it, from the first pending call of the job on, by their clocks", .flags = COLUMN_MINOR)},
	[HANG_SIZES] = {COLUMN(TEXT, "sizes", "Sizes", "shapes and type of its input", .flags = COLUMN_DETAIL)},
	[HANG_WHERE] = {COLUMN(TEXT, "where", "Called in", "innermost frame of the program, where stacks were recorded", .flags = COLUMN_DETAIL)},
)};

static void hang_table_put_part(const struct job_hang_row *row, enum job_hang_part part, unsigned column, struct table *t)
{
	struct buf b = {0};
	hang_put_ranks(row, part, false, &b);
	if (b.n)
		table_set_str_copy(t, column, buf_view(&b));
	buf_release(&b);
}

static void hang_table_put_row(const struct job_hang *h, const struct job_hang_row *row, struct table *t)
{
	struct buf b = {0};
	uint32_t waiting = 0;
	for (uint32_t i = 0; i < row->n; i++)
		waiting += row->member[i].part == JOB_HANG_WAITING;
	table_row(t);
	hang_put_op(row, &b);
	table_set_str_copy(t, HANG_OP, buf_view(&b));
	table_set_i64(t, HANG_SEQ, row->call->seq);
	buf_clear(&b);
	hang_put_group(row->group, &b);
	table_set_str_copy(t, HANG_GROUP, buf_view(&b));
	buf_clear(&b);
	hang_put_why(h, row, &b);
	table_set_str_copy(t, HANG_WHY, buf_view(&b));
	hang_table_put_part(row, JOB_HANG_MISSING, HANG_MISSING, t);
	hang_table_put_part(row, JOB_HANG_WAITING, HANG_WAITING, t);
	hang_table_put_part(row, JOB_HANG_DONE, HANG_DONE, t);
	hang_table_put_part(row, JOB_HANG_ELSEWHERE, HANG_ELSEWHERE, t);
	hang_table_put_part(row, JOB_HANG_NO_DUMP, HANG_NO_DUMP, t);
	hang_table_put_part(row, JOB_HANG_NOT_TOLD, HANG_NOT_TOLD, t);
	buf_clear(&b);
	if (row->started && row->started < waiting)
		buf_printf(&b, "started on %u of %u", row->started, waiting);
	else
		buf_cstr(&b, row->started ? "started" : "scheduled");
	table_set_str_copy(t, HANG_STATE, buf_view(&b));
	table_set_i64(t, HANG_SINCE, row->since_ns - h->first_ns);
	if (row->call->sizes.n)
		table_set_str_copy(t, HANG_SIZES, row->call->sizes);
	if (row->call->where.n)
		table_set_str_copy(t, HANG_WHERE, row->call->where);
	buf_release(&b);
}

int hang_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	section_start(&hang_section, args, 0, out);
	if (!job_is_hang(j))
		return err_set(e, ERR_DATA, "the input is no dump of a flight recorder: set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and give the folder of the dumps of all ranks");
	struct job_hang *h = job_hang_find(j);
	for (uint32_t i = 0; i < h->n; i++)
		hang_table_put_row(h, &h->row[i], out);
	hang_put_notes(j, h, out);
	job_hang_free(h);
	return 0;
}
