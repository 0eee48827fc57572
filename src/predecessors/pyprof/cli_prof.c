/* PyProf's `python -m pyprof.prof [FILE]`: its table of kernels, in its columns and layouts (its usage.py, output.py). */
#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "predecessors/pyprof/cli_common.h"
#include "predecessors/pyprof/row.h"
#include "render/csv_text.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { N_COLUMNS = 20 };
enum { IDX, SEQ, ALTSEQ, TID, LAYER, TRACE, DIR, SUB, MOD, OP, KERNEL, PARAMS, SIL, TC, DEVICE, STREAM, GRID, BLOCK, FLOPS, BYTES };

static const struct column_form {
	const char *flag, *header;
	bool number;
	int width; /* at least, with -w */
} forms[N_COLUMNS] = {
	[IDX] = {"idx", "Idx", true, 7},
	[SEQ] = {"seq", "SeqId", false, 7},
	[ALTSEQ] = {"altseq", "AltSeqId", false, 7},
	[TID] = {"tid", "TId", true, 12},
	[LAYER] = {"layer", "Layer", false, 10},
	[TRACE] = {"trace", "Trace", false, 25},
	[DIR] = {"dir", "Direction", false, 5},
	[SUB] = {"sub", "Sub", true, 3},
	[MOD] = {"mod", "Module", false, 15},
	[OP] = {"op", "Op", false, 15},
	[KERNEL] = {"kernel", "Kernel", false, 0},
	[PARAMS] = {"params", "Params", false, 0},
	[SIL] = {"sil", "Sil(ns)", true, 10},
	[TC] = {"tc", "TC", false, 2},
	[DEVICE] = {"device", "Device", true, 3},
	[STREAM] = {"stream", "Stream", true, 3},
	[GRID] = {"grid", "Grid", false, 12},
	[BLOCK] = {"block", "Block", false, 12},
	[FLOPS] = {"flops", "FLOPs", true, 12},
	[BYTES] = {"bytes", "Bytes", true, 12},
};

struct cli_prof_options {
	struct cli_args args;
	const char *compat, *columns;
	int64_t width;
	bool csv;
};

struct cli_prof_layout {
	int *column;         /* in the order asked for */
	int n, cap;
	int width[N_COLUMNS];
	bool csv, fixed;     /* fixed: -w */
};

enum { KEY_COMPAT = 0x200, KEY_CSV };

static const struct argp_option option_list[] = {
	{NULL, 'c', "COLS", 0, "columns, in this order: idx,seq,altseq,tid,layer,trace,dir,sub,mod,op,kernel,params,sil,tc,device,stream,grid,block,flops,bytes "
	                       "(default: idx,dir,sub,mod,op,kernel,params,sil)", 0},
	{"csv", KEY_CSV, NULL, 0, "print CSV", 0},
	{NULL, 'w', "WIDTH", 0, "print columns of fixed widths, WIDTH in all", 0},
	{"compat", KEY_COMPAT, "pyprof|pyprof2", 0, "formulas of pyprof (default) or pyprof2; right numbers: opscope report pyprof", 0},
	{0},
};

static error_t cli_prof_parse_option(int key, char *arg, struct argp_state *state)
{
	struct cli_prof_options *o = state->input;
	switch (key) {
	case 'c':
		o->columns = arg;
		return 0;
	case 'w':
		if (!str_to_i64(str_from(arg), &o->width) || o->width < 0 || o->width > 1000000)
			cli_usage("argument -w: a width from 0 to 1000000 was expected, not '%s'", arg);
		return 0;
	case KEY_CSV:
		o->csv = true;
		return 0;
	case KEY_COMPAT:
		o->compat = arg;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&o->args, arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_list,
	.parser = cli_prof_parse_option,
	.args_doc = "[FILE]",
	.doc = "Prints the table of PyProf's prof, its numbers included, from what pyprof-parse printed (standard input without FILE) or "
	       "straight from a database of nsys or nvprof.",
};

static int cli_prof_column_of(struct str flag)
{
	for (int i = 0; i < N_COLUMNS; i++)
		if (str_eqc(flag, forms[i].flag))
			return i;
	struct buf list = {0};
	for (int i = 0; i < N_COLUMNS; i++)
		buf_printf(&list, "%s%s", i ? "," : "", forms[i].flag);
	cli_usage("argument -c: " STR_FMT " is not a valid column name. Valid column names are " STR_FMT ".", STR_ARG(flag),
	          STR_ARG(buf_view(&list)));
}

static void cli_prof_choose_columns(struct cli_prof_layout *l, const char *list)
{
	struct str rest = str_from(list), flag;
	while (str_split(&rest, ',', &flag))
		MEM_PUSH(l->column, l->n, l->cap, cli_prof_column_of(flag));
}

static bool cli_prof_has_column(const struct cli_prof_layout *l, int column)
{
	return ANY_WHERE(i, 0, l->n, l->column[i] == column);
}

/* What is left of the width goes to kernel and params. -1: it is too small. */
static int choose_widths(struct cli_prof_layout *l, const struct cli_prof_options *o)
{
	int64_t least = 0;
	for (int i = 0; i < N_COLUMNS; i++)
		l->width[i] = forms[i].width;
	for (int i = 0; i < l->n; i++)
		least += forms[l->column[i]].width;
	if (l->fixed && least > o->width) {
		printf("Minimum width required to print %s = %lld. Exiting.\n", o->columns, (long long)least);
		return -1;
	}
	bool kernel = cli_prof_has_column(l, KERNEL), params = cli_prof_has_column(l, PARAMS);
	int rest = (int)(o->width - least);
	if (l->fixed && kernel)
		l->width[KERNEL] = params ? rest / 2 : rest;
	if (l->fixed && params)
		l->width[PARAMS] = kernel ? rest / 2 : rest;
	return 0;
}

/* So many characters (not bytes) of the text, filled with blanks. */
static void put_fixed(struct buf *out, struct str s, int width)
{
	size_t at = 0;
	int n = 0;
	while (at < s.n && n < width) {
		at++;
		while (at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80)
			at++;
		n++;
	}
	buf_put(out, s.p, at);
	buf_fill(out, ' ', (size_t)(width - n));
}

static void cli_prof_put_cell(struct buf *out, const struct cli_prof_layout *l, int column, bool number, struct str text)
{
	if (l->csv) {
		csv_put_quoted(out, text);
	} else if (!l->fixed) {
		buf_str(out, text);
	} else if (number) {
		for (int fill = l->width[column] - (int)text.n; fill > 0; fill--)
			buf_char(out, ' ');
		buf_str(out, text);
		buf_char(out, ' ');
	} else {
		put_fixed(out, text, l->width[column]);
		buf_char(out, ' ');
	}
}

static void cli_prof_put_header(struct buf *out, const struct cli_prof_layout *l)
{
	for (int i = 0; i < l->n; i++) {
		if (i && !l->fixed)
			buf_char(out, l->csv ? ',' : ' ');
		cli_prof_put_cell(out, l, l->column[i], false, str_from(forms[l->column[i]].header));
	}
	buf_char(out, '\n');
}

static void cli_prof_put_trace(struct buf *t, const struct cli_prof_layout *l, struct pyprof_texts trace)
{
	if (!l->fixed || !trace.n) {
		pyprof_put_joined(t, trace, ",");
		return;
	}
	struct str last = trace.v[trace.n - 1];
	for (size_t i = last.n; i-- > 0;)
		if (last.p[i] == '/') {
			last = (struct str){last.p + i + 1, last.n - i - 1};
			break;
		}
	buf_str(t, last);
}

static void cli_prof_put_number(struct buf *t, const struct cli_prof_layout *l, struct pyprof_num v)
{
	if (l->fixed)
		buf_i64(t, pyprof_num_int(v));
	else
		pyprof_num_put(t, v);
}

static void cli_prof_put_value(struct buf *t, const struct cli_prof_layout *l, int column, uint32_t i, const struct pyprof_row *row)
{
	const struct pyprof_record *r = &row->r;
	switch (column) {
	case IDX: buf_i64(t, (int64_t)i + 1); break;
	case SEQ: pyprof_put_ids(t, r->seq); break;
	case ALTSEQ: pyprof_put_ids(t, r->alt_seq); break;
	case TID: buf_i64(t, r->tid); break;
	case LAYER: pyprof_put_joined(t, r->layer, ":"); break;
	case TRACE: cli_prof_put_trace(t, l, r->trace); break;
	case DIR: buf_cstr(t, r->backward ? "bprop" : "fprop"); break;
	case SUB: buf_i64(t, r->sub); break;
	case MOD: buf_str(t, row->mod); break;
	case OP: buf_str(t, row->op); break;
	case KERNEL: buf_str(t, row->kernel); break;
	case PARAMS: buf_str(t, row->modelled ? buf_view(&row->model.params) : STR("na=na,")); break;
	case SIL: buf_i64(t, r->duration_ns); break;
	case TC: row->modelled ? buf_char(t, row->model.tc) : buf_cstr(t, "na"); break;
	case DEVICE: buf_i64(t, r->device); break;
	case STREAM: buf_i64(t, r->stream); break;
	case GRID: pyprof_put_three(t, r->grid); break;
	case BLOCK: pyprof_put_three(t, r->block); break;
	case FLOPS: cli_prof_put_number(t, l, row->model.flops); break;
	case BYTES: cli_prof_put_number(t, l, row->model.bytes); break;
	}
}

/* `text` and `shown`: scratch. */
static void cli_prof_put_row(struct buf *out, struct buf *text, struct buf *shown, const struct cli_prof_layout *l, uint32_t i, const struct pyprof_row *row)
{
	for (int k = 0; k < l->n; k++) {
		int column = l->column[k];
		if (k && !l->fixed)
			buf_char(out, l->csv ? ',' : ' ');
		buf_clear(text);
		cli_prof_put_value(text, l, column, i, row);
		struct str cell = text->n ? buf_view(text) : STR("");
		if (!l->csv) {
			buf_clear(shown);
			utf8_put_safe(shown, cell);
			cell = shown->n ? buf_view(shown) : STR("");
		}
		cli_prof_put_cell(out, l, column, forms[column].number, cell);
	}
	buf_char(out, '\n');
}

static void tell_ended(uint64_t ended, uint32_t first, const char *why)
{
	struct err e;
	if (!ended)
		return;
	err_set(&e, ERR_NONE, "PyProf would have ended at %llu of these rows, first at row %u, where it asserts: %s; printed as ops that it does not know",
	        (unsigned long long)ended, first, why);
	cli_fail(&e, 0);
}

static int print_rows(const struct profile *p, const struct cli_prof_layout *l, enum pyprof_record_rules rules)
{
	int status = EXIT_DONE, rc = 0;
	struct buf out = {0}, text = {0}, shown = {0};
	struct pyprof_rows *rows = pyprof_rows_new(p, rules);
	uint64_t ended = 0;
	uint32_t first = 0;
	const char *why = "";
	cli_prof_put_header(&out, l);
	pyprof_warn(p, pyprof_rows_records(rows));
	for (uint32_t i = 0; rc == 0 && i < pyprof_rows_records(rows)->n; i++) {
		const struct pyprof_row *row = pyprof_rows_get(rows, i);
		cli_prof_put_row(&out, &text, &shown, l, i, row);
		if (row->why && !ended++) {
			first = i + 1;
			why = row->why;
		}
		rc = pyprof_flush(&out, false, &status);
	}
	if (rc == 0 && pyprof_flush(&out, true, &status) == 0)
		tell_ended(ended, first, why);
	pyprof_rows_free(rows);
	buf_release(&out);
	buf_release(&text);
	buf_release(&shown);
	return status;
}

static int prof(struct cli_prof_options *o, const struct cli_prof_layout *l, enum pyprof_record_rules rules)
{
	static char standard_input[] = "-";
	if (!o->args.n)
		cli_args_add(&o->args, standard_input);
	const char *path = o->args.v[0];
	if (strcmp(path, "-") != 0 && access(path, R_OK) < 0 && discover_is_absent(errno)) {
		fprintf(stderr, "Error opening file %s. Exiting.\n", path);
		return EXIT_INPUT;
	}
	const struct trace_options trace = {0};
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&o->args, &trace, &status);
	if (!p)
		return status;
	struct err e;
	status = analysis_run(p, PASS_NEST | PASS_CORRELATE, &e) < 0 ? cli_fail(&e, EXIT_INPUT) : print_rows(p, l, rules);
	profile_free(p);
	return status;
}

static int cli_prof_run(int argc, char **argv)
{
	static const struct pyprof_compat choices[] = {{"pyprof", PYPROF_RECORDS_3}, {"pyprof2", PYPROF_RECORDS_2}};
	struct cli_prof_options o = {.compat = "pyprof", .columns = "idx,dir,sub,mod,op,kernel,params,sil"};
	struct cli_prof_layout l = {0};
	cli_parse(&argp, argc, argv, &o);
	enum pyprof_record_rules rules = pyprof_compat_of(argv[0], o.compat, choices, sizeof choices / sizeof choices[0]);
	if (o.csv && o.width)
		cli_usage("%s: argument -w: not allowed with argument --csv", argv[0]);
	if (o.args.n > 1)
		cli_usage("%s: one FILE was expected, or none for standard input", argv[0]);
	l.csv = o.csv;
	l.fixed = o.width > 0;
	cli_prof_choose_columns(&l, o.columns);
	int status = choose_widths(&l, &o) < 0 ? EXIT_INPUT : prof(&o, &l, rules);
	mem_free(l.column);
	mem_free(o.args.v);
	return status;
}

const struct command command_pyprof_prof = {
	.name = "pyprof-prof",
	.args = "[FILE]",
	.help = "PyProf's prof: its table of kernels",
	.run = cli_prof_run,
};
