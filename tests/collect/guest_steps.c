/* A program that goes on until its standard input ends, for recordings on demand: guest_steps KIND TRUTH [WORD...]. TRUTH gets a line "NUMBER BEGIN END" of each
 * step: moments (CLOCK_REALTIME, ns) before its first call of the library and after its last one.
 *
 * KIND, how steps are told: profiler (ranges ProfilerStep#N), key (ranges "train"), numbers (opscope_step), none
 *   us=N       a step takes so long at least (1000)
 *   steps=N    it ends after so many
 *   threads=N  so many more threads say "other" all the while
 *   close      closes all descriptors but the standard streams, after the first step
 *   fork       a child does the same as long as its parent
 *   domain     each step says "registered text" in "own domain", of which the names were given before the first step
 *   usr2       counts signals SIGUSR2 with a handler of its own, and prints how many came */
#include "nvtx_calls.h"
#include "opscope/trace.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
	bool profiler, key, numbers, closes, forks, domains, counts;
	long us, steps, threads;
} o = {.us = 1000, .steps = -1};

static void *domain, *registered;
static volatile sig_atomic_t came;
static volatile bool over;

static int64_t moment(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_usr2(int number)
{
	(void)number;
	came++;
}

static void take(const char *w)
{
	const char *value = strchr(w, '=');
	long n = value ? atol(value + 1) : 0;
	o.us = strncmp(w, "us=", 3) == 0 ? n : o.us;
	o.steps = strncmp(w, "steps=", 6) == 0 ? n : o.steps;
	o.threads = strncmp(w, "threads=", 8) == 0 ? n : o.threads;
	o.closes |= strcmp(w, "close") == 0;
	o.forks |= strcmp(w, "fork") == 0;
	o.domains |= strcmp(w, "domain") == 0;
	o.counts |= strcmp(w, "usr2") == 0;
}

static void *other(void *unused)
{
	while (!over) {
		nvtx_push("other");
		nvtx_pop();
		usleep(200);
	}
	return unused;
}

static void spend(void)
{
	int64_t until = moment() + o.us * 1000;
	for (int64_t left; (left = until - moment()) > 0;)
		usleep((useconds_t)(left / 1000 + 1));
}

static void say_in_domain(void)
{
	_Alignas(8) char a[EVENT_BYTES] = {0};
	const uint16_t size = EVENT_BYTES, version = 3;
	const int32_t type = MESSAGE_REGISTERED;
	memcpy(a + EVENT_VERSION, &version, 2);
	memcpy(a + EVENT_SIZE, &size, 2);
	memcpy(a + EVENT_MESSAGE_TYPE, &type, 4);
	memcpy(a + EVENT_MESSAGE, &registered, sizeof registered);
	CALL(core2, CORE2_PUSH_EX, int, void *, void *)(domain, a);
	CALL(core2, CORE2_POP, int, void *)(domain);
}

static void one(long i)
{
	char text[64];
	snprintf(text, sizeof text, "ProfilerStep#%ld", i);
	if (o.profiler || o.key)
		nvtx_push(o.key ? "train" : text);
	if (o.numbers)
		opscope_step(i);
	snprintf(text, sizeof text, "inner %ld", i);
	nvtx_push(text);
	if (o.domains)
		say_in_domain();
	spend();
	nvtx_pop();
	if (o.profiler || o.key)
		nvtx_pop();
}

static bool goes_on(long i)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	return o.steps < 0 ? poll(&in, 1, 0) == 0 : i < o.steps;
}

static void loop(FILE *truth)
{
	for (long i = 0; goes_on(i); i++) {
		int64_t from = moment();
		one(i);
		if (truth)
			fprintf(truth, "%ld %lld %lld\n", i, (long long)from, (long long)moment());
		if (i == 0) {
			printf("running\n");
			fflush(stdout);
			if (o.closes)
				syscall(SYS_close_range, 3, ~0u, 0);
			truth = o.closes ? NULL : truth;
		}
	}
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	if (argc < 3)
		return 2;
	FILE *truth = fopen(argv[2], "w");
	o.profiler = strcmp(argv[1], "profiler") == 0;
	o.key = strcmp(argv[1], "key") == 0;
	o.numbers = strcmp(argv[1], "numbers") == 0;
	for (int i = 3; i < argc; i++)
		take(argv[i]);
	if (!truth)
		return 2;
	setvbuf(truth, NULL, _IOLBF, 0);
	if (o.counts)
		signal(SIGUSR2, on_usr2);
	nvtx_load();
	nvtx_end(nvtx_start("begins"));
	nvtx_mark("begins");
	if (o.domains) {
		domain = nvtx_domain("own domain");
		registered = nvtx_register(domain, "registered text");
	}
	for (long i = 0; i < o.threads && i < 64; i++)
		pthread_create(&t[i], NULL, other, NULL);
	bool child = o.forks && fork() == 0;
	loop(child ? NULL : truth);
	if (child)
		_exit(0);
	over = true;
	for (long i = 0; i < o.threads && i < 64; i++)
		pthread_join(t[i], NULL);
	if (o.counts)
		printf("%d\n", (int)came);
	if (!o.closes)
		fclose(truth);
	return 0;
}
