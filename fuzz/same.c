/* same_opscope: a recording of any format, kept as an .opscope file, answers as it did before. The first of the two asks (question.h) is answered
 * before the file is written, so that the file holds what its passes found; both are then answered from the file and from the source. Another
 * answer is told by its report's name, with the line that differs. */
#include "question.h"
#include "store/save.h"
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const bool target_asks = true;

static struct profile *keep_and_open(struct profile *p)
{
	struct target_file f;
	struct err e = {0};
	target_file_make(&f, NULL, 0);
	struct save *s = save_begin(f.path, 0666, 0, &e);
	struct profile *kept = NULL;
	if (s && save_profile(s, p, &e) == 0) {
		if (save_commit(s, &e) == 0)
			kept = input_open(f.path, &(struct input_options){.format = "opscope"}, &e);
	} else if (s) {
		save_abort(s);
	}
	target_file_remove(&f);
	if (!kept) {
		fprintf(stderr, "a profile that was read could not be kept and opened again: %s\n", e.msg);
		abort();
	}
	return kept;
}

static void print_line_at(struct str s, size_t at)
{
	while (at && s.p[at - 1] != '\n')
		at--;
	const char *end = memchr(s.p + at, '\n', s.n - at);
	size_t n = end ? (size_t)(end - s.p) - at : s.n - at;
	fprintf(stderr, "  " STR_FMT "\n", (int)(n < 2000 ? n : 2000), s.p + at);
}

static void check_same(const uint8_t ask[ASK_BYTES], struct str source, struct str kept)
{
	if (str_eq(source, kept))
		return;
	struct buf name = {0};
	size_t at = 0;
	while (at < source.n && at < kept.n && source.p[at] == kept.p[at])
		at++;
	question_name(ask, &name);
	fprintf(stderr, STR_FMT ": the .opscope file answers otherwise than its source, which says\n", STR_ARG(buf_view(&name)));
	print_line_at(source, at);
	fprintf(stderr, "and the file says\n");
	print_line_at(kept, at);
	buf_release(&name);
	abort();
}

static void compare(const struct question *q, struct profile *p)
{
	struct buf source[QUESTION_ASKS] = {{0}}, kept[QUESTION_ASKS] = {{0}};
	question_answer(p, q->ask[0], &source[0]);
	struct profile *again = keep_and_open(p);
	for (int i = 1; i < QUESTION_ASKS; i++)
		question_answer(p, q->ask[i], &source[i]);
	for (int i = 0; i < QUESTION_ASKS; i++) {
		question_answer(again, q->ask[i], &kept[i]);
		if (!question_is_of_file(q->ask[i]))
			check_same(q->ask[i], buf_view(&source[i]), buf_view(&kept[i]));
		buf_release(&source[i]);
		buf_release(&kept[i]);
	}
	profile_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct question q;
	size = question_take(data, size, &q);
	struct profile *p = size ? target_open(NULL, data, size, false) : NULL;
	if (p)
		compare(&q, p);
	profile_free(p);
	return 0;
}
