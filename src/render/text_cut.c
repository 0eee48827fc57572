#include "render/text_cut.h"

#include "base/utf8.h"
#include "render/text_layout.h"

#define ELLIPSIS "\xe2\x80\xa6" /* U+2026 */

/* Cells of the character at s.p[at]; *n gets its bytes. */
static unsigned char_cells(struct str s, size_t at, unsigned *n)
{
	uint32_t code;
	*n = utf8_next(s, at, &code);
	return code == UTF8_BAD ? 1 : utf8_width(code);
}

/* As many whole characters from the start of s as fit `width` cells, with the marks that combine with the last. */
static struct str render_text_cut_head_of(struct str s, size_t width)
{
	size_t at = 0, used = 0;
	unsigned n, cells;
	while (at < s.n && used + (cells = char_cells(s, at, &n)) <= width) {
		used += cells;
		at += n;
	}
	return (struct str){s.p, at};
}

/* As many whole characters from the end of s as fit `width` cells. */
static struct str tail_of(struct str s, size_t width)
{
	size_t left = text_width(s), at = 0;
	unsigned n;
	while (at < s.n) {
		unsigned cells = char_cells(s, at, &n);
		if (left <= width && cells)
			break; /* a mark without the character that it combines with goes too */
		left -= cells;
		at += n;
	}
	return (struct str){s.p + at, s.n - at};
}

/* The end of a path begins with a whole part of it, if that takes off less than half and leaves more than the last part: of ops of one name,
 * the part before tells them apart. */
static struct str whole_parts(struct str last)
{
	for (size_t i = 0; i < last.n / 2; i++)
		if (last.p[i] == '/' && memchr(last.p + i + 1, '/', last.n - i - 1))
			return (struct str){last.p + i, last.n - i};
	return last;
}

/* The first `head` cells, an ellipsis, and of the end what still fits. */
static void render_text_cut_put_ends(struct buf *out, struct str s, size_t head, size_t width)
{
	struct str first = render_text_cut_head_of(s, head);
	size_t used = text_width(first) + 1;
	struct str rest = {s.p + first.n, s.n - first.n};
	struct str last = tail_of(rest, width - used);
	last = head ? last : whole_parts(last);
	used += text_width(last);
	buf_str(out, first);
	buf_cstr(out, ELLIPSIS);
	buf_str(out, last);
	buf_fill(out, ' ', width - used);
}

static bool render_text_cut_put_whole(struct buf *out, struct str s, size_t width)
{
	size_t cells = text_width(s);
	if (cells > width)
		return false;
	buf_str(out, s);
	buf_fill(out, ' ', width - cells);
	return true;
}

void text_put_cut_at(struct buf *out, struct str s, unsigned head, size_t width)
{
	if (render_text_cut_put_whole(out, s, width))
		return;
	size_t blank = 0;
	while (blank < s.n && s.p[blank] == ' ' && blank + 1 < width)
		blank++;
	render_text_cut_put_ends(out, s, blank + (width - blank - 1) * head / 100, width);
}

void text_put_cut(struct buf *out, struct str s, size_t width)
{
	text_put_cut_at(out, s, TEXT_CUT_HEAD, width);
}

/* The length of "FILE(LINE)", or of "FILE(LINE,LINE)", at the start of a frame; 0 = it has none. *path gets the length of FILE. */
static size_t render_text_cut_place_of(struct str frame, size_t *path)
{
	for (size_t i = 0; i < frame.n; i++) {
		size_t k = i + 1;
		while (frame.p[i] == '(' && k < frame.n && (is_digit(frame.p[k]) || (frame.p[k] == ',' && k > i + 1)))
			k++;
		if (frame.p[i] == '(' && k > i + 1 && k < frame.n && frame.p[k] == ')') {
			*path = i;
			return k + 1;
		}
	}
	return 0;
}

void text_put_cut_stack(struct buf *out, struct str s, size_t width)
{
	if (render_text_cut_put_whole(out, s, width))
		return;
	struct str rest = s, frame = STR("");
	size_t path, head = (width - 1) * 3 / 5;
	str_split(&rest, ';', &frame);
	struct str place = {s.p, render_text_cut_place_of(frame, &path)};
	size_t cells = text_width(place);
	if (cells + 1 > width) {
		buf_cstr(out, ELLIPSIS);
		struct str end = whole_parts(tail_of(place, width - 1));
		buf_str(out, end);
		buf_fill(out, ' ', width - 1 - text_width(end));
		return;
	}
	render_text_cut_put_ends(out, s, cells > head ? cells : head, width);
}

static bool is_separator(char c)
{
	return c == '/' || c == '\\';
}

/* Where the part of the path begins that tells files apart. */
static size_t telling_part(struct str path)
{
	static const char *const libraries[] = {"site-packages", "dist-packages"};
	size_t from = 0;
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		struct str word = str_from(libraries[i]), rest = path;
		for (ptrdiff_t at; (at = str_find(rest, word)) >= 0;) {
			size_t end = (size_t)(rest.p - path.p) + (size_t)at + word.n;
			rest = (struct str){path.p + end, path.n - end};
			if (end < path.n && is_separator(path.p[end]) && end + 1 > from)
				from = end + 1;
		}
	}
	bool drive = path.n > 2 && path.p[1] == ':' && is_separator(path.p[2]);
	if (from || !path.n || !(is_separator(path.p[0]) || drive || str_starts(path, STR(".."))))
		return from;
	unsigned parts = 0;
	for (size_t i = path.n; i-- > 0;)
		if (is_separator(path.p[i]) && ++parts == 2)
			return i + 1;
	return 0;
}

void text_put_short_stack(struct buf *out, struct str s)
{
	struct str rest = s, frame;
	const char *between = "";
	while (str_split(&rest, ';', &frame)) {
		size_t path = 0;
		size_t from = render_text_cut_place_of(frame, &path) ? telling_part((struct str){frame.p, path}) : 0;
		buf_cstr(out, between);
		buf_put(out, frame.p + from, frame.n - from);
		between = ";";
	}
}

size_t text_width(struct str s)
{
	size_t width = 0;
	for (size_t at = 0; at < s.n;) {
		uint32_t code;
		at += utf8_next(s, at, &code);
		width += code == UTF8_BAD ? 1 : utf8_width(code);
	}
	return width;
}
