/* The thread of base/spill that keeps the process below its limit. */
#include "base/spill_own.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

static pthread_cond_t spill_begun = PTHREAD_COND_INITIALIZER;
static bool spill_kept;                  /* the keeper runs; under the lock */
/* Constant once there was a block. */
static int spill_statm = -1;
static bool (*spill_drop_some)(unsigned i);
static unsigned spill_drops;

/* Bytes of the process in memory, and of them those of files; false = not known. */
static bool spill_resident(uint64_t *all, uint64_t *of_files)
{
	char text[128];
	unsigned long long size, resident, shared;
	ssize_t n = pread(spill_statm, text, sizeof text - 1, 0);
	text[MAX(n, 0)] = 0;
	if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return false;
	*all = resident * (uint64_t)spill_page();
	*of_files = MIN(shared, resident) * (uint64_t)spill_page();
	return true;
}

/* Bytes of the file that may still become resident; 0 = drop some. *bytes: the most that may be. */
static uint64_t spill_room(uint64_t *bytes)
{
	const uint64_t least = 8 << 20;
	uint64_t all, of_files, most = spill_most;
	*bytes = most;
	if (!spill_resident(&all, &of_files))
		return most;
	/* The other eighths are for pages that come between two looks: where a touch makes 2 MB resident, they come many times as fast. */
	*bytes = MAX(least, most - MIN(most, all - of_files)) / 8 * (spill_is_huge(SPILL_HUGE) ? 3 : 5);
	return *bytes - MIN(*bytes, of_files);
}

/* Takes pages out of the process, some blocks at a time in turn, until there is room. */
static void spill_drop(void)
{
	static atomic_uint turn;
	uint64_t bytes, room = 0;
	for (unsigned i = 0; i < spill_drops; i++) {
		const bool any = spill_drop_some(turn++ % spill_drops);
		if (any)
			room = spill_room(&bytes);
		if (any && room > bytes / 2)
			return;
	}
}

/* Sleeps as long as filling `room` takes at 40 GB/s, between 1 and 50 ms: where the kernel holds 2 MB folios of the file, looks at a few of their bytes make them resident at 16 GB/s. */
static void spill_wait(uint64_t room)
{
	const uint64_t bytes_per_ns = 40, least_ns = 1000000, most_ns = 50000000;
	const struct timespec t = {0, (long)MIN(MAX(room / bytes_per_ns, least_ns), most_ns)};
	nanosleep(&t, NULL);
}

uint64_t spill_make_room(void)
{
	uint64_t bytes, room = spill_room(&bytes);
	if (!room)
		spill_drop();
	return room;
}

static void *spill_run_keeper(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&spill_lock);
		while (!spill_n)
			pthread_cond_wait(&spill_begun, &spill_lock);
		pthread_mutex_unlock(&spill_lock);
		spill_wait(spill_make_room());
	}
	return NULL;
}

/* Without a thread for it, pages leave the process when the kernel finds that memory is short. */
void spill_keep(bool (*drop)(unsigned i), unsigned n)
{
	pthread_attr_t how;
	pthread_t keeper;
	sigset_t all, before;
	if (!spill_drop_some) {
		spill_drop_some = drop;
		spill_drops = n;
		spill_statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	}
	if (!spill_kept && pthread_attr_init(&how) == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for threads that know of them */
		pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
		spill_kept = pthread_create(&keeper, &how, spill_run_keeper, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&how);
	}
	pthread_cond_signal(&spill_begun);
}
