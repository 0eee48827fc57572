/* Processes by MPI. The root and one other process at a time talk to each other; nothing is sent among the others.
 *
 * Whoever waits sleeps between looks: MPI's own waiting would take a core from those that read. */
#include "cli/share.h"

#include "base/mem.h"
#include "base/pack.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	SHARE_LIST = 1, SHARE_DONE, SHARE_PIECE,   /* kinds of messages (tags) */
	SHARE_STDERR = 200,                        /* where the others keep the real standard error: what they print goes to the root */
};

struct share_recording {
	struct str path, root;
	int64_t rank;
	bool found;
};

struct share_recordings {
	struct share_recording *v;
	uint32_t n;
};

#define SHARE_RECORDING_FIELDS(F, S) F(S, TEXT, path) F(S, TEXT, root) F(S, INT, rank, INT64_MIN, INT64_MAX) F(S, FLAG, found)
#define SHARE_RECORDINGS_FIELDS(F, S) F(S, ROWS, v, n, share_recording)
PACK_TYPE(share_recording, SHARE_RECORDING_FIELDS)
PACK_TYPE(share_recordings, SHARE_RECORDINGS_FIELDS)

/* ---- messages ---- */

/* Longer each time, so that a look is late by no more than what was waited for before; at most 16 ms. *ns is 0 at first. */
static void share_sleep(long *ns)
{
	enum { FIRST_NS = 125000, MOST_NS = 16000000 };
	*ns = *ns ? *ns < MOST_NS ? 2 * *ns : MOST_NS : FIRST_NS;
	nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
}

static void share_wait(MPI_Request *r)
{
	long ns = 0;
	for (int done = 0; MPI_Test(r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;)
		share_sleep(&ns);
}

/* The next message from that process, which is appended. Returns its tag. */
static int share_take(int from, int tag, struct buf *out)
{
	MPI_Status st;
	MPI_Message message;
	MPI_Request request;
	int n = 0;
	long ns = 0;
	for (int there = 0; MPI_Improbe(from, tag, MPI_COMM_WORLD, &there, &message, &st) == MPI_SUCCESS && !there;)
		share_sleep(&ns);
	MPI_Get_count(&st, MPI_BYTE, &n);
	MPI_Imrecv(buf_room(out, (size_t)n), n, MPI_BYTE, &message, &request);
	share_wait(&request);
	out->n += (size_t)n;
	return st.MPI_TAG;
}

static void share_start(int to, int tag, struct str bytes, MPI_Request *request)
{
	if (bytes.n > INT32_MAX) {
		struct err e;
		err_set(&e, ERR_LIMIT, "what was read of a recording takes more than 2 GB, which opscope-mpi does not send: use opscope");
		exit(cli_fail(&e, EXIT_INPUT));
	}
	MPI_Isend(bytes.p ? bytes.p : "", (int)bytes.n, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
}

static void share_send(int to, int tag, struct str bytes)
{
	MPI_Request request;
	share_start(to, tag, bytes, &request);
	share_wait(&request);
}

/* ---- how processes end ---- */

static bool share_is_over(void)
{
	int over;
	return MPI_Finalized(&over) != MPI_SUCCESS || over;
}

int cli_share_count(void)
{
	int n = 1;
	if (!share_is_over())
		MPI_Comm_size(MPI_COMM_WORLD, &n);
	return n;
}

int cli_share_me(void)
{
	int me = 0;
	if (!share_is_over())
		MPI_Comm_rank(MPI_COMM_WORLD, &me);
	return me;
}

/* What this process has printed to the file that stands for its standard error; empties that file. */
static void share_take_said(struct buf *out)
{
	off_t n = lseek(STDERR_FILENO, 0, SEEK_END);
	ssize_t got = n > 0 ? pread(STDERR_FILENO, buf_room(out, (size_t)n), (size_t)n, 0) : 0;
	out->n += got > 0 ? (size_t)got : 0;
	if (ftruncate(STDERR_FILENO, 0) == 0)
		lseek(STDERR_FILENO, 0, SEEK_SET);
}

/* At exit of a process that still owes something, or is still owed: the others would wait for ever. */
static void share_abandon(void)
{
	if (share_is_over())
		return;
	if (cli_share_me()) {
		char said[1024], line[1200];
		off_t n = lseek(STDERR_FILENO, 0, SEEK_CUR);
		ssize_t got = pread(STDERR_FILENO, said, sizeof said, n > (off_t)sizeof said ? n - (off_t)sizeof said : 0);
		int length = got > 0 ? snprintf(line, sizeof line, "%.*s", (int)got, said)
		                     : snprintf(line, sizeof line, "opscope: process %d of %d ended before its recordings were read\n", cli_share_me(), cli_share_count());
		(void)!write(SHARE_STDERR, line, (size_t)length);
	}
	MPI_Abort(MPI_COMM_WORLD, EXIT_INPUT);
}

/* At exit of a process that has not begun to read a job. The root lets the others go; these wait until it does. */
static void share_leave(void)
{
	struct buf message = {0};
	if (share_is_over())
		return;
	if (cli_share_me() && share_take(0, MPI_ANY_TAG, &message) != SHARE_DONE)
		share_abandon(); /* the root reads a job, and this process cannot: its options are not what the root has */
	for (int i = 1; !cli_share_me() && i < cli_share_count(); i++)
		share_send(i, SHARE_DONE, STR(""));
	const bool other = cli_share_me();
	MPI_Finalize();
	if (other)
		_exit(EXIT_DONE); /* the status is the root's */
}

bool cli_share_is_relayed(void) { return true; }

static void share_redirect(void)
{
	int null = open("/dev/null", O_WRONLY), said = memfd_create("opscope", MFD_CLOEXEC);
	if (null < 0 || said < 0 || dup2(STDERR_FILENO, SHARE_STDERR) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0)
		MPI_Abort(MPI_COMM_WORLD, EXIT_INPUT);
	close(null);
	close(said);
}

void cli_share_begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	if (cli_share_me())
		share_redirect();
	atexit(share_leave);
}

/* ---- the job ---- */

void cli_share_list(struct trace_list *l)
{
	struct buf message = {0};
	struct share_recordings all = {0};
	const char *why;
	if (share_take(0, MPI_ANY_TAG, &message) == SHARE_DONE) {
		MPI_Finalize();
		_exit(EXIT_DONE);
	}
	atexit(share_abandon);
	if (!pack_take(&share_recordings_layout, buf_view(&message), &l->arena, &all, &why))
		exit(EXIT_INPUT);
	MEM_GROW(l->v, l->cap, all.n);
	for (; l->n < all.n; l->n++) {
		const struct share_recording *x = &all.v[l->n];
		l->v[l->n] = (struct trace_file){.run = STR(""), .worker = STR(""), .span = STR(""), .path = x->path, .stamp = STR(""), .root = x->root, .rank = x->rank, .found = x->found};
	}
	mem_free(all.v);
	buf_release(&message);
}

static void share_send_list(const struct trace_list *l)
{
	struct share_recordings all = {NEW_ARRAY(l->n, struct share_recording), l->n};
	struct buf message = {0};
	for (unsigned i = 0; i < l->n; i++)
		all.v[i] = (struct share_recording){l->v[i].path, l->v[i].root, l->v[i].rank, l->v[i].found};
	pack_put(&share_recordings_layout, &all, &message);
	for (int i = 1; i < cli_share_count(); i++)
		share_send(i, SHARE_LIST, buf_view(&message));
	mem_free(all.v);
	buf_release(&message);
}

struct share_work {
	struct job_inputs in;    /* as they were before shares were made of them */
	unsigned n_taken;        /* in the root: recordings that were read, here or elsewhere */
	MPI_Request pending;     /* in the others: the last piece, which the root may not have taken yet, */
	struct buf message;      /* and its bytes */
};

static const char *share_path(void *context, unsigned i)
{
	const struct share_work *w = context;
	return w->in.path(w->in.context, i);
}

static int64_t share_rank(void *context, unsigned i)
{
	const struct share_work *w = context;
	return w->in.rank(w->in.context, i);
}

static struct profile *share_open(void *context, unsigned i, struct err *e)
{
	const struct share_work *w = context;
	return w->in.open(w->in.context, i, e);
}

static struct job_read *share_failed(const struct err *e)
{
	struct job_read *x = NEW(struct job_read);
	x->failed = *e;
	return x;
}

/* In the root: reads it, or takes what the process whose share it is has read. */
static struct job_read *share_read_as_root(void *context, unsigned i, const struct job_ask *ask)
{
	struct share_work *w = context;
	const int of = (int)(i % (unsigned)cli_share_count());
	w->n_taken++;
	if (!of)
		return job_read_here(&w->in, i, ask);
	struct buf message = {0};
	uint64_t said;
	struct err e = {0};
	share_take(of, SHARE_PIECE, &message);
	memcpy(&said, message.p, sizeof said);
	(void)!fwrite(message.p + sizeof said, 1, said, stderr);
	struct job_read *x = job_read_unpack((struct str){message.p + sizeof said + said, message.n - sizeof said - said}, &e);
	buf_release(&message);
	return x ? x : share_failed(&e);
}

static void share_wait_for_pending(struct share_work *w)
{
	if (w->pending != MPI_REQUEST_NULL)
		share_wait(&w->pending);
	buf_clear(&w->message);
}

/* In another process: reads and sends what is of its share, and reads on while the root has not taken it. What is returned is looked at by nobody. */
static struct job_read *share_read_as_other(void *context, unsigned i, const struct job_ask *ask)
{
	static const struct err elsewhere = {.code = ERR_DATA};
	struct share_work *w = context;
	if ((int)(i % (unsigned)cli_share_count()) != cli_share_me())
		return share_failed(&elsewhere);
	struct job_read *x = job_read_here(&w->in, i, ask);
	struct buf text = {0};
	share_take_said(&text);
	share_wait_for_pending(w);
	const uint64_t said = text.n;
	buf_put(&w->message, &said, sizeof said);
	buf_put(&w->message, text.p ? text.p : "", text.n);
	job_read_pack(x, &w->message);
	share_start(0, SHARE_PIECE, buf_view(&w->message), &w->pending);
	buf_release(&text);
	job_read_free(x);
	return share_failed(&elsewhere);
}

void cli_share_work(const struct trace_list *l, struct job_inputs *in)
{
	if (cli_share_count() == 1)
		return;
	const bool root = !cli_share_me();
	struct share_work *w = NEW(struct share_work);
	*w = (struct share_work){.in = *in, .pending = MPI_REQUEST_NULL};
	*in = (struct job_inputs){.n = in->n, .open = share_open, .path = share_path, .rank = share_rank, .read = root ? share_read_as_root : share_read_as_other, .context = w};
	if (!root)
		return;
	atexit(share_abandon);
	share_send_list(l);
}

void cli_share_end(struct job_inputs *in)
{
	struct share_work *w = in->context;
	if (cli_share_count() == 1 || (in->read != share_read_as_root && in->read != share_read_as_other))
		return;
	if (!cli_share_me() && w->n_taken < in->n)
		return; /* what others have read is wanted no more: exit ends them */
	struct buf message = {0};
	share_wait_for_pending(w);
	for (int i = 1; !cli_share_me() && i < cli_share_count(); i++)
		share_send(i, SHARE_DONE, STR(""));
	if (cli_share_me())
		share_take(0, SHARE_DONE, &message);
	const bool other = cli_share_me();
	MPI_Finalize();
	if (other)
		_exit(EXIT_DONE);
	buf_release(&message);
	buf_release(&w->message);
	mem_free(w);
}
