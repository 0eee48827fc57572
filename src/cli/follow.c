/* --follow: a report of a run that goes on. */
#include "base/now.h"
#include "cli/record.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum run_state { RUN_STARTS, RUN_GOES_ON, RUN_ENDED };

/* Of run directories what their run files and segments say. What is not there has ended; any other input may change for ever. */
static enum run_state state_of(char *const *paths, int n)
{
	enum run_state s = RUN_ENDED;
	for (int i = 0; i < n; i++) {
		struct stat st;
		if (stat(paths[i], &st) < 0)
			continue;
		bool directory = S_ISDIR(st.st_mode);
		if (directory && run_dir_is_live(paths[i]))
			s = run_dir_segments(paths[i]) ? RUN_GOES_ON : s == RUN_ENDED ? RUN_STARTS : s;
		else if (!directory || !run_dir_has_run(paths[i]))
			s = RUN_GOES_ON;
	}
	return s;
}

static void pause_for(int64_t ns)
{
	struct timespec t = {ns / LAUNCH_S, ns % LAUNCH_S};
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* Who reads a pipe may have seen enough. */
static bool reader_is_gone(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};
	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* Of which moment the table below is, and whether more will come. */
static void print_moment(char *const *paths, int n, enum run_state s, bool first)
{
	char now[NOW_BYTES];
	int64_t start = 0;
	for (int i = 0; i < n; i++) {
		int64_t at = run_dir_start(paths[i]);
		start = at && (!start || at < start) ? at : start;
	}
	printf("%s" STR_FMT, first ? "" : "\n", STR_ARG(now_text(now)));
	if (s == RUN_ENDED)
		fputs(": the run has ended", stdout);
	else if (start)
		printf(": the run goes on, %.0f s after its start", (double)(now_realtime_ns() - start) / LAUNCH_S);
	fputs("\n\n", stdout);
}

int cli_follow(char *const *paths, int n, int64_t every_ns, bool screen, bool text, int (*print)(void *context), void *context)
{
	bool clear = screen && isatty(STDOUT_FILENO), first = true;
	for (;;) {
		/* Asked before reading: what ends while it is read is read once more. */
		enum run_state s = state_of(paths, n);
		int status = 0;
		if (s != RUN_STARTS) {
			if (clear)
				fputs("\033[H\033[J", stdout);
			if (text)
				print_moment(paths, n, s, first || clear);
			fflush(stdout);
			status = print(context);
			first = false;
		}
		if (s == RUN_ENDED || status == EXIT_USAGE || reader_is_gone())
			return status;
		pause_for(every_ns);
	}
}
