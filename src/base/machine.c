#include "base/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void machine_name(char *to, size_t room)
{
	struct utsname u;
	snprintf(to, room, "%s", uname(&u) == 0 && *u.nodename ? u.nodename : "host");
	for (char *p = to; *p; p++)
		if (*p == '/')
			*p = '_';
}

static void read_text(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, to, room - 1) : 0;
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = 0;
}

void machine_boot_id(char *to, size_t room)
{
	read_text("/proc/sys/kernel/random/boot_id", to, room);
	to[strcspn(to, "\n")] = 0;
}

/* Times of processes are in ticks since the system was started. A clock that follows another one is made faster or slower by 500 in a million. */
static bool is_younger(uint64_t start_ticks, int64_t age_ns)
{
	enum { SLACK_S = 2 };
	struct timespec now;
	double ticks = (double)sysconf(_SC_CLK_TCK);
	if (!age_ns || clock_gettime(CLOCK_BOOTTIME, &now) < 0 || ticks <= 0)
		return false;
	double lasted = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)start_ticks / ticks, age = (double)age_ns / 1e9;
	return lasted < age - age / 1000 - SLACK_S;
}

bool machine_process_lives(int pid, int64_t age_ns)
{
	char path[64], text[1024], state;
	int threads;
	uint64_t start;
	if (pid <= 0 || (kill(pid, 0) < 0 && errno != EPERM))
		return false;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	read_text(path, text, sizeof text);
	const char *end = strrchr(text, ')'); /* "PID (NAME) STATE ...": the name may hold anything */
	if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %" SCNu64, &state, &threads, &start) != 3)
		return true;
	bool ended = (state == 'Z' || state == 'X') && threads <= 1; /* the first thread may have left before the others */
	return !ended && !is_younger(start, age_ns);
}
