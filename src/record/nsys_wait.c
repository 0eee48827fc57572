/* Waiting for nsys, also for one that never ends (2022.4 on new kernels: its agent spins after the program is gone). */
#include "record/nsys.h"

#include "record/proc.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_PATIENCE_NS (NSYS_PATIENCE_S * LAUNCH_S) /* nsys itself takes its time to start, whatever is asked for afterwards */

struct watch {
	const char *dir;
	struct words *warnings;
	pid_t nsys;             /* 0 once it has ended */
	int64_t patience_ns, grace_ns;
	int64_t still_since_ns; /* since when only processes of nsys have been there, and its files have not grown; 0 = not so */
	int64_t bytes;          /* of its files */
	unsigned own, other;    /* descendants: of nsys; of the program, or not known */
	bool begun;             /* the program, or something that nsys wrote, has been seen */
	int signal;             /* to send to those of nsys; 0 = count */
	unsigned stage;         /* what has been done to end it */
};

/* Only what is surely a part of nsys: everything else is the program. */
static bool is_nsys(const char *program)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	return strncmp(name, "nsys", 4) == 0 || strncmp(name, "QdstrmImporter", 14) == 0 || strstr(program, "/nsight-systems") || strstr(program, "/NsightSystems");
}

static void nsys_wait_see(void *context, pid_t pid, const char *program)
{
	struct watch *w = context;
	if (pid == w->nsys)
		return;
	bool own = is_nsys(program);
	w->own += own;
	w->other += !own;
	if (own && w->signal)
		kill(pid, w->signal);
}

/* What has been written so far where nsys puts its report. */
static int64_t bytes_written(const char *dir)
{
	int64_t sum = 0;
	DIR *d = opendir(dir);
	struct dirent *entry;
	struct stat st;
	while (d && (entry = readdir(d)))
		if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			sum += st.st_size;
	if (d)
		closedir(d);
	return sum;
}

/* Signals what belongs to nsys, and counts. */
static bool nsys_wait_look(struct watch *w, int sig)
{
	w->own = w->other = 0;
	w->signal = sig;
	return proc_descendants(getpid(), nsys_wait_see, w);
}

static void end_agents(struct watch *w, int64_t now)
{
	static const int steps[] = {SIGTERM, SIGKILL};
	if (w->stage == 0)
		words_printf(w->warnings, "nsys did not end in %lld s after the program had: its processes were ended; what it wrote is read, and may lack the end",
		             (long long)(w->patience_ns / LAUNCH_S));
	if (w->stage < 2)
		nsys_wait_look(w, steps[w->stage]);
	else if (w->stage < 4 && w->nsys)
		kill(w->nsys, steps[w->stage - 2]);
	w->stage++;
	w->still_since_ns = now - w->patience_ns + w->grace_ns;
}

static void nsys_wait_tick(void *context, pid_t pid)
{
	struct watch *w = context;
	int64_t now = launch_now_ns(), bytes = bytes_written(w->dir);
	w->nsys = pid;
	if (!nsys_wait_look(w, 0) || w->other || bytes != w->bytes) {
		w->still_since_ns = 0;
		w->bytes = bytes;
		w->begun = true;
	} else if (!w->still_since_ns) {
		w->still_since_ns = now;
	} else if (now - w->still_since_ns >= (w->begun || w->patience_ns > START_PATIENCE_NS ? w->patience_ns : START_PATIENCE_NS)) {
		end_agents(w, now);
	}
}

/* What nsys leaves running behind itself is ended: it has written its report. */
static void end_leftovers(struct watch *w)
{
	static const int steps[] = {0, SIGTERM, SIGKILL};
	static const struct timespec moment = {.tv_nsec = 50000000};
	w->nsys = 0;
	for (int i = 0; i < 3; i++)
		for (int64_t end = launch_now_ns() + w->grace_ns; nsys_wait_look(w, steps[i]) && w->own && launch_now_ns() < end;) {
			nanosleep(&moment, NULL);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
}

static int64_t patience(void)
{
	const char *text = getenv("OPSCOPE_NSYS_TIMEOUT");
	int64_t s;
	return (text && str_to_i64(str_from(text), &s) && s > 0 && s < 1000000 ? s : NSYS_PATIENCE_S) * LAUNCH_S;
}

int nsys_wait(char *const *command, char *const *env, const char *dir, struct launched *r, struct words *warnings, struct err *e)
{
	struct watch w = {.dir = dir, .warnings = warnings, .patience_ns = patience(), .bytes = bytes_written(dir)};
	int before = 0;
	w.grace_ns = w.patience_ns < LAUNCH_GRACE_S * LAUNCH_S ? w.patience_ns : LAUNCH_GRACE_S * LAUNCH_S;
	/* Looking through all processes of a machine is not free. */
	int64_t tick_ns = w.patience_ns / 100 < LAUNCH_S / 20 ? LAUNCH_S / 20 : w.patience_ns / 100;
	const struct launch l = {.argv = command, .env = env, .context = &w, .tick = nsys_wait_tick, .tick_ns = tick_ns};
	/* Its agents leave their parent: they become our children rather than those of init, and so can be found. */
	prctl(PR_GET_CHILD_SUBREAPER, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int rc = launch_run(&l, r, e);
	if (rc == 0)
		end_leftovers(&w);
	prctl(PR_SET_CHILD_SUBREAPER, before);
	if (rc == 0 && w.stage > 2)
		r->wait_status = 1 << 8; /* ended by us: the program's own is not known */
	return rc;
}
