#include "input/input.h"

#include "base/buf.h"
#include "base/spill.h"
#include "io/memory_limit.h"
#include "io/remote/remote.h"

#include <assert.h>
#include <pthread.h>

/* A JSON file that shows none of a trace's keys scores below this: worth a try when the user names it, not when it was
 * found in a directory. */
enum { SNIFF_SURE = 50, SNIFF_MOST = 100 };

/* The input for which the first bytes speak as much as can be: then no other is asked, which might look at the rest of the file. NULL = there is none. */
static const struct input *certain_input(struct str head)
{
	struct err e;
	for (const struct input *const *i = input_registry; *i; i++)
		if ((*i)->sniff(head, NULL, &e) == SNIFF_MOST)
			return *i;
	return NULL;
}

/* NULL with e->code: the file could not be read. */
static const struct input *best_input(struct str head, const char *path, int *score, struct err *e)
{
	const struct input *best = certain_input(head);
	*score = best ? SNIFF_MOST : 0;
	for (const struct input *const *i = input_registry; *i && *score < SNIFF_MOST; i++) {
		int s = (*i)->sniff(head, path, e);
		if (s < 0)
			return NULL;
		if (s > *score) {
			*score = s;
			best = *i;
		}
	}
	return best;
}

/* A read that failed, or an allocation, ends all: what came before is not the whole of the file. */
static int check_source(const struct source *s, const char *path, struct err *e)
{
	enum err_code failed = source_failed(s);
	return failed ? err_set(e, failed, "%s: %s", path, source_error(s)) : 0;
}

const struct input *input_recognise(const char *path, struct err *e)
{
	*e = (struct err){0};
	struct source *s = source_open_regular(path, e);
	if (!s)
		return NULL;
	int score;
	const struct input *best = best_input(source_peek(s), source_path(s), &score, e);
	if (check_source(s, path, e) < 0)
		best = NULL;
	source_close(s);
	return best && score >= SNIFF_SURE ? best : NULL;
}

static const struct input *input_unknown(const char *what, const char *path, struct err *e)
{
	struct buf list = {0};
	for (const struct input *const *i = input_registry; *i; i++)
		buf_printf(&list, "%s%s", list.n ? ", " : "", (*i)->name);
	err_set(e, what ? ERR_USAGE : ERR_FORMAT, "%s: %s%s%s; known formats: " STR_FMT, path,
	        what ? "no input format '" : "not recognised by its content", what ? what : "", what ? "'" : "",
	        STR_ARG(buf_view(&list)));
	buf_release(&list);
	return NULL;
}

static const struct input *input_choose(struct source *s, const char *path, const struct input_options *o, struct err *e)
{
	if (o->format) {
		for (const struct input *const *i = input_registry; *i; i++)
			if (strcmp((*i)->name, o->format) == 0)
				return *i;
		return input_unknown(o->format, path, e);
	}
	struct str head = source_peek(s);
	if (check_source(s, path, e) < 0)
		return NULL;
	if (!head.n) {
		const char *why = source_error(s);
		err_set(e, why ? ERR_IO : ERR_FORMAT, "%s: %s, a trace was expected", path, why ? why : "the file is empty");
		return NULL;
	}
	int score;
	struct err why = {0};
	const struct input *best = best_input(head, strcmp(path, "-") ? source_path(s) : NULL, &score, &why);
	if (!why.code)
		return best ? best : input_unknown(NULL, path, e);
	*e = why;
	return NULL;
}

/* An input of which not one event could be used is refused, with what was lost first as the reason. */
static int check_any(const struct profile *p, const char *path, struct err *e)
{
	for (unsigned i = 0; i < p->diags.n && profile_events(p) == 0; i++)
		if (p->diags.entry[i].level == DIAG_LOSS)
			return err_set(e, ERR_FORMAT, "%s: no event could be read: " STR_FMT, path,
			               STR_ARG(p->diags.entry[i].message));
	return 0;
}

static struct profile *profile_to_read(const struct input_options *o, unsigned left_out)
{
	struct profile *p = profile_new();
	p->as_written = o->as_written;
	p->left_out = left_out;
	p->needs_frames = o->needs_frames;
	p->needs_quiet = o->needs_quiet;
	p->threads = o->threads;
	p->keeps_function_ids = o->execution_trace != NULL;
	return p;
}

static struct profile *read_with(const struct input *i, struct source *s, const char *path, const struct input_options *o,
                                 struct err *e)
{
	const unsigned may_leave = o->counts_left && !i->tells_left ? 0 : o->ignores & i->leaves_out;
	const unsigned left_out = may_leave & ~(o->needs_quiet ? 0u : (unsigned)LEFT_QUIET);
	struct profile *p = profile_to_read(o, left_out);
	source_set_progress(s, o->progress, o->progress_context);
	int rc = i->read(s, p, e);
	if (rc == INPUT_READ_AGAIN) {
		assert(left_out & LEFT_QUIET);
		profile_free(p);
		p = profile_to_read(o, left_out & ~(unsigned)LEFT_QUIET);
		rc = i->read(s, p, e);
	}
	if (check_source(s, path, e) < 0 || rc < 0 || check_any(p, path, e) < 0) {
		profile_free(p);
		return NULL;
	}
	if (!i->grows && source_changed(s))
		diag_add(&p->diags, "changed-while-read", DIAG_LOSS, -1, "the file was written to while it was read: what was read may be of two versions of it");
	/* A reader of saved profiles has set these to what was saved. */
	if (!p->input_path.n)
		p->input_path = arena_str(&p->arena, str_from(remote_name(path)));
	if (!p->format.n)
		p->format = str_from(i->name);
	if (!p->file_bytes)
		p->file_bytes = source_file_bytes(s);
	return p;
}

/* A machine or a container has no more memory than it has. */
static void input_limit_memory(void)
{
	spill_limit_unless_set(memory_limit(""));
}

struct profile *input_open(const char *path, const struct input_options *o, struct err *e)
{
	static const struct input_options by_content = {0};
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, input_limit_memory);
	if (!o)
		o = &by_content;
	struct source *s = o->found ? source_open_regular(path, e) : source_open(path, e);
	if (!s)
		return NULL;
	source_set_root(s, o->root);
	const struct input *i = input_choose(s, path, o, e);
	struct profile *p = i ? read_with(i, s, path, o, e) : NULL;
	source_close(s);
	return p;
}

uint64_t input_progress(const char *path, struct str root)
{
	uint64_t now = 0;
	for (const struct input *const *i = input_registry; *i && !now; i++)
		now = (*i)->progress ? (*i)->progress(path, root) : 0;
	return now;
}
