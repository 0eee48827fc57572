/* CSV as in RFC 4180, with LF line ends: a header of column ids, then numbers in full (ns, bytes; doubles with the fewest
 * digits that read back the same). Null is an empty field, an empty string is ""; a null that is all of its row is "" too,
 * because readers skip empty lines. Texts come from traces, which may be hostile:
 *   - a control character other than tab and line ends is written as \x1b or \u0085, for a terminal would obey it;
 *   - a text that a spreadsheet would take for a formula gets a ' in front: one that begins with = + - @, a tab or a carriage return, also behind
 *     blanks and line feeds, has more behind that, and is no number. */
#include "base/lanes.h"
#include "base/search.h"
#include "base/utf8.h"
#include "render/csv_text.h"
#include "render/number.h"
#include "render/render.h"

#include <stdlib.h>

void csv_put_quoted(struct buf *out, struct str s)
{
	struct str rest = s, piece;
	buf_char(out, '"');
	for (bool more = str_split(&rest, '"', &piece); more;) {
		utf8_put_valid(out, piece);
		more = str_split(&rest, '"', &piece);
		if (more)
			buf_cstr(out, "\"\"");
	}
	buf_char(out, '"');
}

static bool is_control(uint32_t code)
{
	return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || (code >= 0x7f && code < 0xa0);
}

/* Whether the bytes can be written as they are, as those of nearly all texts. */
static bool render_csv_is_plain(struct str s)
{
	return !ANY_WHERE(i, 0, s.n, (unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] >= 0x7f);
}

static void put_escaped(struct buf *out, struct str s)
{
	for (size_t at = 0; at < s.n;) {
		uint32_t code;
		unsigned n = utf8_next(s, at, &code);
		if (code == UTF8_BAD)
			buf_cstr(out, "\xef\xbf\xbd");
		else if (is_control(code))
			buf_printf(out, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
		else
			buf_put(out, s.p + at, n);
		at += n;
	}
}

static bool render_csv_is_number(struct str s)
{
	char *end, text[32];
	if (!s.n || s.n >= sizeof text)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	strtod(text, &end);
	return *end == 0;
}

static bool render_csv_is_formula(struct str s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\n')) /* some spreadsheets skip them */
		s.p++, s.n--;
	return s.n > 1 && s.p[0] && strchr("=+-@\t\r", s.p[0]) && !render_csv_is_number(s);
}

/* What the bytes of a text ask for. */
enum { CSV_ESCAPE = 1, CSV_QUOTE = 2, CSV_DOUBLE = 4 };

static unsigned csv_lanes_ask(const char *p)
{
	const lanes x = lanes_at(p);
	const uint64_t plain = lanes_within(x, ' ', '~' - ' '), doubled = lanes_equal(x, lanes_of('"'));
	return (plain != lanes_equal(x, x) ? CSV_ESCAPE : 0) | (doubled ? CSV_DOUBLE : 0) | (doubled | lanes_equal(x, lanes_of(',')) ? CSV_QUOTE : 0);
}

/* The highest bit of some byte is set if any byte is 0. */
static uint64_t csv_zeros(uint64_t x) { return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u; }

static unsigned csv_eight_ask(const char *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof x);
	const uint64_t odd = ((x - 0x2020202020202020u) | x | (x + 0x0101010101010101u)) & 0x8080808080808080u; /* below ' ', above '~' */
	const uint64_t doubled = csv_zeros(x ^ 0x2222222222222222u), comma = csv_zeros(x ^ 0x2c2c2c2c2c2c2c2cu);
	return (odd ? CSV_ESCAPE : 0) | (doubled ? CSV_DOUBLE : 0) | (doubled | comma ? CSV_QUOTE : 0);
}

/* The last bytes of a text are looked at with those before them, twice. */
static unsigned csv_asks(struct str s)
{
	unsigned asks = 0;
	size_t i = 0;
	for (; i + LANES <= s.n; i += LANES)
		asks |= csv_lanes_ask(s.p + i);
	if (s.n >= LANES)
		return asks | csv_lanes_ask(s.p + s.n - LANES);
	if (s.n >= 8)
		return csv_eight_ask(s.p) | csv_eight_ask(s.p + s.n - 8);
	for (; i < s.n; i++) {
		const char c = s.p[i];
		asks |= (c < ' ' || c > '~' ? CSV_ESCAPE : 0) | (c == '"' ? CSV_DOUBLE | CSV_QUOTE : c == ',' ? CSV_QUOTE : 0);
	}
	return asks;
}

/* Nearly all texts: of printable ASCII alone, without quotes in them, and no formula. */
static bool csv_put_plain(struct buf *out, struct str s)
{
	if (!s.n || s.p[0] == ' ' || (s.n > 1 && (s.p[0] == '=' || s.p[0] == '+' || s.p[0] == '-' || s.p[0] == '@')))
		return false;
	const unsigned asks = csv_asks(s);
	if (asks & (CSV_ESCAPE | CSV_DOUBLE))
		return false;
	const bool quote = asks || s.p[s.n - 1] == ' ';
	char *to = buf_room(out, s.n + 2);
	*to = '"';
	memcpy(to + quote, s.p, s.n);
	to[s.n + 1] = '"';
	out->n += s.n + (quote ? 2 : 0);
	return true;
}

static void render_csv_put_text(struct buf *out, struct str s)
{
	if (csv_put_plain(out, s))
		return;
	struct buf escaped = {0};
	bool formula = render_csv_is_formula(s);
	if (formula || !render_csv_is_plain(s)) {
		if (formula)
			buf_char(&escaped, '\'');
		put_escaped(&escaped, s);
		s = buf_view(&escaped);
	}
	bool quote = s.n == 0 || s.p[0] == ' ' || s.p[s.n - 1] == ' ';
	for (size_t i = 0; i < s.n && !quote; i++)
		quote = s.p[i] == '"' || s.p[i] == ',' || s.p[i] == '\n' || s.p[i] == '\r';
	if (quote)
		csv_put_quoted(out, s);
	else
		buf_str(out, s);
	buf_release(&escaped);
}

static void render_csv_put_cell(struct buf *out, const struct column_data *d, size_t row)
{
	if (d->set[row] && d->col.type == CELL_STR)
		render_csv_put_text(out, d->cell[row].s);
	else if (d->set[row])
		number_put_cell(out, d, row);
}

static int render_csv(const struct table *t, const struct render_options *o, struct buf *out, struct err *e)
{
	const struct table *s = t;
	while (o->section && s && strcmp(s->name, o->section) != 0)
		s = s->next;
	if (!s)
		return err_set(e, ERR_USAGE, "no section '%s' in %s", o->section, t->name);
	const char *comma = "";
	for (unsigned c = 0; c < s->n_columns && !o->goes_on; c++) {
		if (s->data[c].col.flags & COLUMN_INDENT)
			continue;
		buf_cstr(out, comma);
		render_csv_put_text(out, str_from(s->data[c].col.id));
		comma = ",";
	}
	if (!o->goes_on)
		buf_char(out, '\n');
	for (size_t r = 0; r < s->n_rows; r++) {
		size_t line = out->n;
		comma = "";
		for (unsigned c = 0; c < s->n_columns; c++) {
			if (s->data[c].col.flags & COLUMN_INDENT)
				continue;
			buf_cstr(out, comma);
			render_csv_put_cell(out, &s->data[c], r);
			comma = ",";
		}
		if (out->n == line)
			buf_cstr(out, "\"\"");
		buf_char(out, '\n');
	}
	return 0;
}

const struct renderer renderer_csv = {
	.name = "csv",
	.help = "RFC 4180: column ids and numbers in full, one table (--section chooses another than the first); a text that a spreadsheet would take for a formula has a ' in front",
	.streams = true,
	.render = render_csv,
};
