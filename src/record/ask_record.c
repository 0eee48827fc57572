/* Asks the processes of a group to record, and waits for their files. */
#include "base/folder.h"
#include "base/mem.h"
#include "base/now.h"
#include "base/saturate.h"
#include "base/search.h"
#include "record/ask_talk.h"
#include "record/launch.h"

#include "opscope/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
	ASK_MODE = 0700,
	ASK_TRIES = 1000,        /* numbers of folders that others may have taken meanwhile */
	TOGETHER_NS = 300000000, /* from the order to the begin: time for the order to reach all processes */
	PATIENCE_S = 10,         /* a process is this late before the user is told */
	OVERDUE_S = 30,          /* a process should have ended this long ago before it is asked whether it is there, and between two such questions */
	PROBE_S = 5,             /* for its answer */
	STOPPED_S = 10,          /* from the order to end to giving up */
};

/* --- the folder ------------------------------------------------------------------------------------------------- */

static bool ask_folder_is_used(const char *path)
{
	struct folder f;
	const char *name;
	bool used = false;
	folder_open(&f, path);
	while (!used && (name = folder_next(&f)))
		used = name[0] != '.';
	folder_close(&f);
	return used;
}

/* The highest number of asked-1, asked-2, ... in the run directory; 0 = there is none. */
static int64_t ask_last_number(const char *dir)
{
	enum { NUMBERS_MOST = 1000000000 };
	struct folder f;
	const char *name;
	int64_t last = 0, n;
	folder_open(&f, dir);
	while ((name = folder_next(&f))) {
		struct str s = str_from(name);
		if (str_skip(&s, STR("asked-")) && str_to_i64(s, &n) && n > last && n < NUMBERS_MOST)
			last = n;
	}
	folder_close(&f);
	return last;
}

int ask_make_folder(const struct ask_group *g, const char *name, struct buf *path, bool *made, struct err *e)
{
	const char *dir = g->dir;
	const int64_t last = name ? 0 : ask_last_number(dir);
	for (int i = 1; i <= ASK_TRIES; i++) { /* others may ask at the same time */
		buf_clear(path);
		if (name)
			buf_printf(path, "%s/%s", dir, name);
		else
			buf_printf(path, "%s/asked-%lld", dir, (long long)last + i);
		buf_end_text(path);
		*made = mkdir(path->p, ASK_MODE) == 0;
		if (*made)
			return 0;
		if (errno != EEXIST)
			return err_set(e, ERR_IO, "cannot make the folder %s for the recording: %s%s", path->p, strerror(errno),
			               errno == ENOENT ? "; if the program runs in a container, ask inside the container" : "");
		if (name && ask_folder_is_used(path->p))
			return err_set(e, ERR_DATA, "%s: the folder has files already; --output=NAME chooses another name", path->p);
		if (name)
			return 0;
	}
	return err_set(e, ERR_LIMIT, "cannot make a folder in %s for the recording: asked-%lld to asked-%lld are there", dir, (long long)last + 1, (long long)last + ASK_TRIES);
}

/* --- what they answer ------------------------------------------------------------------------------------------- */

static void ask_end_with(struct ask_process *p, enum ask_outcome outcome, struct str text)
{
	p->outcome = outcome;
	buf_clear(&p->text);
	buf_put(&p->text, text.p, text.n);
	buf_end_text(&p->text);
	ask_drop(p);
}

/* Whether `path` is a file in the folder. */
static bool ask_is_file_of(const char *path, const char *folder)
{
	struct stat file, in, asked;
	struct buf parent = {0};
	const char *slash = strrchr(path, '/');
	if (!slash)
		return false;
	buf_put(&parent, path, (size_t)(slash - path) + 1);
	buf_end_text(&parent);
	bool is = lstat(path, &file) == 0 && S_ISREG(file.st_mode) && stat(parent.p, &in) == 0 && stat(folder, &asked) == 0 && in.st_dev == asked.st_dev && in.st_ino == asked.st_ino;
	buf_release(&parent);
	return is;
}

/* Ends with what a process says that it has recorded, as far as that can be. */
static void ask_take_done(struct ask_process *p, struct str file, const char *folder)
{
	ask_end_with(p, ASK_DONE, file);
	if (p->steps < 0 || p->ns < 0)
		ask_end_with(p, ASK_FAILED, STR("the process says that it has recorded less than nothing: the same version of opscope was expected on both sides"));
	else if (!ask_is_file_of(p->text.p, folder))
		ask_end_with(p, ASK_FAILED, STR("the process says that it has recorded, but its file is not in the folder of the recording"));
}

static void ask_take(struct ask_process *p, const struct buf *line, const char *folder)
{
	struct str s = str_from(line->p);
	if (str_eqc(s, "begun"))
		p->begun = true;
	else if (str_skip(&s, STR("error ")))
		ask_end_with(p, ASK_FAILED, s);
	else if (str_skip(&s, STR("done ")) && ask_number(&s, STR("steps="), &p->steps) && ask_number(&s, STR("ns="), &p->ns) && str_skip(&s, STR("file=")))
		ask_take_done(p, s, folder);
	else
		ask_end_with(p, ASK_FAILED, STR("this version of opscope does not know the answer of the process"));
}

static void ask_listen_to(struct ask_process *p, const char *folder, struct buf *line)
{
	bool more = ask_hear(p);
	while (p->fd >= 0 && ask_take_line(p, line))
		ask_take(p, line, folder);
	if (p->fd < 0)
		return;
	if (p->heard.n > ASK_ANSWER_MOST)
		ask_end_with(p, ASK_FAILED, STR("the answer of the process is too long"));
	else if (!more && p->begun)
		ask_end_with(p, ASK_FAILED, STR("the process ended while it recorded: its file has what was recorded until then"));
	else if (!more)
		ask_end_with(p, ASK_FAILED, STR("the process ended, or listens no more"));
}

/* What every process is told. */
struct ask_order {
	const char *folder;      /* of the recording */
	struct buf line;
	int64_t begins_ns;       /* CLOCK_MONOTONIC: when the recordings are to begin */
};

static void ask_make_order(struct ask_order *o, const struct ask_group *g, const struct ask_request *r, const char *folder)
{
	int64_t start = r->start_ns, now = now_realtime_ns();
	if (!start && (r->delay_ns || g->n > 1))
		start = now + (g->n > 1 ? TOGETHER_NS : 0);
	if (start)
		add_saturated(&start, r->delay_ns);
	*o = (struct ask_order){.folder = folder, .begins_ns = launch_now_ns()};
	add_saturated(&o->begins_ns, start > now ? start - now : 0);
	buf_printf(&o->line, "record name=%s start=%lld duration=%lld steps=%lld key=%s\n", strrchr(folder, '/') + 1, (long long)start, (long long)r->duration_ns,
	           (long long)r->steps, r->key_range ? r->key_range : "");
}

/* A process that would not hear any more may have said why. */
static void ask_send(struct ask_process *p, const struct ask_order *o)
{
	struct buf line = {0};
	if (send(p->fd, o->line.p, o->line.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)o->line.n) {
		ask_listen_to(p, o->folder, &line);
		if (p->fd >= 0)
			ask_end_with(p, ASK_FAILED, STR("the process ended, or listens no more"));
	}
	buf_release(&line);
}

static bool ask_any(const struct ask_group *g)
{
	return ANY_WHERE(i, 0, g->n, g->v[i].outcome == ASK_WAITS);
}

/* --- who says nothing ------------------------------------------------------------------------------------------- */

/* What becomes of a process that has been asked and says nothing. */
struct ask_watch {
	int64_t late_ns;    /* CLOCK_MONOTONIC: it should have begun by then */
	int64_t over_ns;    /* it should have ended; INT64_MAX = it may go on */
	int64_t stopped_ns; /* it was told to end; 0 = it was not */
	void (*patience)(const struct ask_process *p, const struct ask_request *r);
};

/* Another connection, by which a process that should have ended shows that it is there. A step may take as long as it likes, while the thread that listens goes on. */
struct ask_probe {
	struct ask_process to;   /* to.fd -1, and no socket: there is none now */
	int64_t since_ns;        /* when it was begun; of none: when the process answered last, 0 = never */
};

static void ask_probe_end(struct ask_probe *b)
{
	ask_forget(&b->to);
	b->to = (struct ask_process){.fd = -1};
}

/* False: the process does not answer. */
static bool ask_answers(const struct ask_process *p, struct ask_probe *b, int64_t now)
{
	struct buf line = {0};
	if (!b->to.socket.n) {
		if (now < b->since_ns + OVERDUE_S * LAUNCH_S)
			return true;
		b->to = (struct ask_process){.fd = -1};
		buf_str(&b->to.socket, buf_view(&p->socket));
		b->since_ns = now;
	}
	const bool there = ask_meet(&b->to, &line), greeted = there && b->to.dir.n;
	buf_release(&line);
	if (greeted) {
		ask_probe_end(b);
		b->since_ns = now;
	}
	return greeted || (there && now < b->since_ns + PROBE_S * LAUNCH_S);
}

static void ask_watch(struct ask_process *p, const struct ask_watch *w, struct ask_probe *probe, const struct ask_request *r)
{
	int64_t now = launch_now_ns(), late = p->begun ? w->over_ns : w->late_ns, given_up = w->over_ns;
	add_saturated(&late, PATIENCE_S * LAUNCH_S);
	add_saturated(&given_up, OVERDUE_S * LAUNCH_S);
	if (w->stopped_ns && now > w->stopped_ns + STOPPED_S * LAUNCH_S) {
		ask_end_with(p, ASK_FAILED, STR("does not answer: it has not ended the recording within 10 s after it was told to"));
	} else if (now > given_up && !w->stopped_ns && !ask_answers(p, probe, now)) {
		ask_end_with(p, ASK_FAILED, STR("does not answer: the recording should have ended 30 s ago; the process is stopped, or hangs"));
	} else if (w->patience && !p->told && !w->stopped_ns && now > late) {
		p->told = true;
		w->patience(p, r);
	}
}

/* One of those that had not greeted when the others were asked. */
static void ask_late(struct ask_group *g, struct ask_process *p, const struct ask_order *o, bool stopped)
{
	struct buf line = {0};
	if (!ask_meet(p, &line))
		ask_end_with(p, ASK_FAILED, STR("the process ended, or does not answer as opscope does"));
	else if (p->dir.n && strcmp(p->dir.p, g->dir))
		ask_end_with(p, ASK_FAILED, STR("it records into another directory"));
	else if (p->dir.n && !stopped)
		ask_send(p, o);
	else if (stopped)
		ask_end_with(p, ASK_FAILED, STR("was not asked: it had not answered when the recording was ended"));
	else if (launch_now_ns() > g->until_ns)
		ask_end_with(p, ASK_FAILED, STR(ASK_NO_ANSWER));
	buf_release(&line);
}

static void ask_stop(struct ask_group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->v[i].fd >= 0)
			shutdown(g->v[i].fd, SHUT_WR);
}

void ask_record(struct ask_group *g, const struct ask_request *r, const char *folder, const volatile sig_atomic_t *stop,
                void (*patience)(const struct ask_process *p, const struct ask_request *r))
{
	struct pollfd *p = mem_alloc(g->n + 1, sizeof *p);
	struct ask_probe *probe = NEW_ARRAY(g->n, struct ask_probe);
	struct buf line = {0};
	struct ask_order o;
	ask_make_order(&o, g, r, folder);
	struct ask_watch w = {.late_ns = o.begins_ns, .over_ns = r->duration_ns ? o.begins_ns : INT64_MAX, .patience = patience};
	add_saturated(&w.over_ns, r->duration_ns);
	for (unsigned i = 0; i < g->n; i++) {
		probe[i].to.fd = -1;
		if (g->v[i].dir.n)
			ask_send(&g->v[i], &o);
	}
	while (ask_any(g)) {
		ask_poll(g, p);
		for (unsigned i = 0; i < g->n; i++) {
			struct ask_process *q = &g->v[i];
			if (ask_is_silent(q))
				ask_late(g, q, &o, w.stopped_ns > 0);
			else if (q->fd >= 0 && p[i].revents)
				ask_listen_to(q, folder, &line);
			if (q->outcome == ASK_WAITS && q->dir.n)
				ask_watch(q, &w, &probe[i], r);
		}
		if (stop && *stop && !w.stopped_ns) {
			ask_stop(g);
			w.stopped_ns = launch_now_ns();
		}
	}
	for (unsigned i = 0; i < g->n; i++)
		ask_probe_end(&probe[i]);
	buf_release(&o.line);
	buf_release(&line);
	mem_free(probe);
	mem_free(p);
}
