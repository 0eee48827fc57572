#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };
static const int64_t first_draw_ns = 300000000, redraw_ns = 100000000;

static int64_t cli_progress_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void progress_start(struct progress *p, const char *what)
{
	const char *slash = strrchr(what, '/');
	*p = (struct progress){.what = slash && slash[1] ? slash + 1 : what, .start_ns = cli_progress_now_ns()};
	const char *term = getenv("TERM");
	p->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static int cli_progress_terminal_width(void)
{
	struct winsize w;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static void draw(const struct progress *p, uint64_t done, uint64_t total, double seconds)
{
	char line[256], bar[BAR + 1];
	double rate = (double)done / seconds / 1e6;
	if (total && done <= total) {
		double share = (double)done / (double)total;
		int full = (int)(share * BAR);
		memset(bar, '#', (size_t)full);
		memset(bar + full, '-', (size_t)(BAR - full));
		bar[BAR] = 0;
		snprintf(line, sizeof line, "[%s] %3d %%  %.0f MB/s  %.0f s left  ", bar, (int)(share * 100), rate,
		         share > 0 ? seconds * (1 - share) / share : 0.0);
	} else {
		snprintf(line, sizeof line, "%.0f MB read  %.0f MB/s  ", (double)done / 1e6, rate);
	}
	size_t n = strlen(line);
	/* The file's name may hold anything: only what is plain text goes to the terminal. */
	for (const char *c = p->what; *c && n + 1 < sizeof line; c++)
		line[n++] = (unsigned char)*c >= ' ' && (unsigned char)*c < 127 ? *c : '?';
	line[n] = 0;
	fprintf(stderr, "\r\033[K%.*s", cli_progress_terminal_width() - 1, line);
	fflush(stderr);
}

void progress_update(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
	struct progress *p = context;
	if (!p->terminal)
		return;
	int64_t now = cli_progress_now_ns();
	if (now - p->start_ns < first_draw_ns || now - p->drawn_ns < redraw_ns)
		return;
	p->drawn_ns = now;
	p->drawn = true;
	draw(p, done_bytes, total_bytes, (double)(now - p->start_ns) / 1e9);
}

void progress_stop(struct progress *p)
{
	if (p->drawn)
		fprintf(stderr, "\r\033[K");
	p->drawn = false;
}
