/* Tables as text, CSV, JSON, HTML or Markdown. Pure functions of the table: same table, same bytes. */
#ifndef OPSCOPE_RENDER_RENDER_H
#define OPSCOPE_RENDER_RENDER_H

#include "base/buf.h"
#include "base/table.h"

struct render_options {
	unsigned width;      /* text: columns of the terminal; 0 = unlimited (output is not a terminal) */
	bool color;          /* text: use ANSI bold/dim/colours */
	const char *report;  /* text: name of the report whose --help lists the columns; NULL = none does */
	const char *input;   /* JSON and HTML: name of the input */
	struct str choice;   /* HTML: the options by which the rows were chosen */
	bool fragment;       /* HTML: no page, but what can be put into one, with a style of its own: without scripts, at home in a notebook */
	const char *section; /* CSV: which table to print, by name; NULL = the first */
	bool goes_on;        /* CSV: rows alone, behind those of an earlier piece of the table */
};

struct renderer {
	const char *name;      /* "text": the value of --format */
	const char *suffix;    /* of files in this form: "txt"; NULL = its name */
	const char *help;
	size_t rows;           /* of a table, unless it has a layout or the user says otherwise; 0 = all */
	bool for_people;       /* read by people, not by programs: reports give means per step where these tell more */
	bool folds;            /* sections that are folded are left out */
	bool streams;          /* a table can be written piece by piece (goes_on) */
	bool layouts;          /* a table with a layout is shown by that, with as many rows as it says */
	int (*render)(const struct table *t, const struct render_options *o, struct buf *out, struct err *e);
};

extern const struct renderer *const renderer_registry[]; /* NULL-terminated, generated from render/meson.build */
const struct renderer *renderer_find(struct str name);
const struct renderer *renderer_of_suffix(struct str suffix); /* "txt"; NULL = no form has it */
const char *renderer_suffix(const struct renderer *r);

/* Rows of a table in this form, unless told otherwise; 0 = all. */
size_t render_rows(const struct renderer *r, const struct table *t);

/* Human forms, shared by text and HTML: "1.234 ms", "512.0 KiB", "12.34 %", "1,234". Appended to *out. */
void format_cell(const struct table *t, size_t row, unsigned col, struct buf *out);

#endif
