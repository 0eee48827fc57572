/* What programs do to a library that watches them: guest WHAT [NUMBER...]. Ends with 0, or as WHAT says; prints what the test has to know. */
#include "nvtx_calls.h"
#include "opscope/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long number(char **argv, int i)
{
	for (int k = 1; k <= i; k++)
		if (!argv[k])
			return 0;
	return atol(argv[i]);
}

static void pairs(const char *text, long n)
{
	for (long i = 0; i < n; i++) {
		nvtx_push(text);
		nvtx_pop();
	}
}

static void domain_pairs(void *domain, void *registered, long n)
{
	_Alignas(8) char a[EVENT_BYTES] = {0};
	uint16_t size = EVENT_BYTES, version = 3;
	int32_t type = MESSAGE_REGISTERED;
	memcpy(a + EVENT_VERSION, &version, 2);
	memcpy(a + EVENT_SIZE, &size, 2);
	memcpy(a + EVENT_MESSAGE_TYPE, &type, 4);
	memcpy(a + EVENT_MESSAGE, &registered, sizeof registered);
	for (long i = 0; i < n; i++) {
		CALL(core2, CORE2_PUSH_EX, int, void *, void *)(domain, a);
		CALL(core2, CORE2_POP, int, void *)(domain);
	}
}

/* Handles and numbers that no text has: an address, one that is too large, one of which only the upper half is. */
static int unknown_texts(char **argv)
{
	void *text = nvtx_register(NULL, "known");
	const uintptr_t upper = (uintptr_t)1 << 40;
	domain_pairs(NULL, text, 1);
	domain_pairs(NULL, argv[0], 1);
	domain_pairs(NULL, (void *)(uintptr_t)0xffffffff, 1);
	domain_pairs(NULL, (void *)((uintptr_t)text | upper), 1);
	opscope_push_name(opscope_name("known"));
	opscope_pop();
	opscope_push_name(0x7fffffff);
	opscope_pop();
	return 0;
}

/* ---- threads ---- */

static pthread_barrier_t all_there;
static long pairs_each;

static void *worker(void *name)
{
	pthread_barrier_wait(&all_there); /* all at once, and none is gone before the last one came */
	pairs(name, pairs_each);
	pthread_barrier_wait(&all_there);
	return NULL;
}

static int threads(char **argv)
{
	long n = number(argv, 2);
	pthread_t *t = calloc((size_t)n, sizeof *t);
	pthread_attr_t small;
	pairs_each = number(argv, 3);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	pthread_barrier_init(&all_there, NULL, (unsigned)n);
	for (long i = 0; i < n; i++)
		if (pthread_create(&t[i], &small, worker, i % 2 ? "odd" : "even"))
			return 1;
	for (long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 0;
}

/* One after the other: the places of those that are gone can be used again. */
static int many_threads(char **argv)
{
	pthread_t t;
	pairs_each = number(argv, 3);
	pthread_barrier_init(&all_there, NULL, 1);
	for (long i = 0; i < number(argv, 2); i++)
		if (pthread_create(&t, NULL, worker, "one of many") || pthread_join(t, NULL))
			return 1;
	return 0;
}

/* The same, after much was said. */
static int late_threads(char **argv)
{
	pairs("early", number(argv, 4));
	return many_threads(argv);
}

/* ---- ends ---- */

static int ends(char **argv)
{
	const char *how = argv[2];
	nvtx_push("outer");
	pairs("work", number(argv, 3));
	if (!strcmp(how, "exit"))
		exit(7);
	if (!strcmp(how, "_exit"))
		_exit(7);
	if (!strcmp(how, "leaving")) {
		nvtx_pop();
		opscope_leaving();
		pairs("work", 1);
		_exit(7);
	}
	if (!strcmp(how, "quick_exit"))
		quick_exit(7);
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "segv"))
		*(volatile int *)NULL = 1;
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", argv[0], "ends", "exit", "3", (char *)NULL);
	if (!strcmp(how, "thread")) /* main leaves, the process does not until its last thread does */
		pthread_exit(NULL);
	return 1;
}

/* ---- children ---- */

static int forks(char **argv)
{
	long n = number(argv, 3);
	void *domain = nvtx_domain("of the parent"), *text = nvtx_register(domain, "registered by the parent");
	nvtx_push("outer of the parent");
	pairs("parent", n);
	for (int i = 0; i < 2; i++) {
		pid_t child = !strcmp(argv[2], "fork") ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child < 0)
			return 1;
		if (!child) {
			pairs("child", n);
			domain_pairs(domain, text, n);
			nvtx_pop();  /* the parent's */
			nvtx_push("outer of the child");
			if (i)
				_exit(0);
			nvtx_pop();
			exit(0);
		}
		int status;
		while (waitpid(child, &status, 0) < 0)
			if (errno != EINTR)
				return 1;
		if (status)
			return 1;
	}
	pairs("parent", n);
	domain_pairs(domain, text, n);
	nvtx_pop();
	return 0;
}

static void name_stream(const char *name)
{
	CALL(cudart, CUDART_STREAM_A, void, void *, const char *)((void *)7, name);
}

/* Children that begin with something else than a range, in texts of the parent's and of their own. */
static int first_calls_of_children(char **argv)
{
	(void)argv;
	opscope_counter_i64("known", "pieces", 1);
	name_stream("known");
	opscope_push("of the parent");
	opscope_arg_i64("known", 1);
	for (int i = 0; i < 6; i++) {
		const char *text = i % 2 ? "fresh" : "known";
		pid_t child = fork();
		if (!child) {
			if (i < 2)
				opscope_counter_i64(text, "pieces", i + 10);
			else if (i < 4)
				opscope_arg_i64(text, 2); /* of a range that is the parent's */
			else
				name_stream(text);
			opscope_push("of a child");
			opscope_arg_i64(text, i);
			opscope_pop();
			_exit(0);
		}
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	opscope_pop();
	return 0;
}

/* Three children: one says that it leaves and does, one says nothing, one is killed. */
static int workers(char **argv)
{
	pairs("parent", 1);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (!child) {
			pairs("child", number(argv, 2));
			if (i == 0)
				opscope_leaving();
			if (i == 2)
				raise(SIGKILL);
			_exit(0);
		}
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child || status != (i == 2 ? SIGKILL : 0))
			return 1;
	}
	return 0;
}

/* A child that says nothing leaves nothing. */
static int silent_child(char **argv)
{
	(void)argv;
	pairs("parent", 1);
	pid_t child = fork();
	if (!child)
		exit(0);
	return child < 0 || waitpid(child, NULL, 0) != child;
}

/* With a range open on another thread, which nobody ends in the child; `what` says what the child does first. */
static void *opens(void *name)
{
	nvtx_push(name);
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&all_there);
	nvtx_pop();
	return NULL;
}

static void *says(void *text)
{
	pairs(text, 1);
	return NULL;
}

static int forks_beside(char **argv)
{
	bool own = !strcmp(argv[2], "own");
	pthread_t t;
	pthread_barrier_init(&all_there, NULL, 2);
	if (pthread_create(&t, NULL, opens, own ? "something" : "train"))
		return 1;
	pthread_barrier_wait(&all_there);
	uint64_t started = own ? nvtx_start("train") : 0;
	if (own)
		nvtx_push("train");
	pid_t child = fork();
	if (!child) {
		pthread_t other;
		if (pthread_create(&other, NULL, says, "by another thread") || pthread_join(other, NULL))
			_exit(1);
		pairs("first", 1);
		if (own)
			nvtx_pop();
		pairs("second", 1);
		if (own)
			nvtx_end(started);
		pairs("third", 1);
		nvtx_push("train");
		pairs("inside", 1);
		nvtx_pop();
		pairs("last", 1);
		_exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	pthread_barrier_wait(&all_there);
	pthread_join(t, NULL);
	return status;
}

/* Threads that come to their end with a range open. */
static void *leaves(void *name)
{
	nvtx_push(name);
	pairs("inside", 1);
	return NULL;
}

static int leaves_open(char **argv)
{
	pthread_t t;
	if (pthread_create(&t, NULL, leaves, "train") || pthread_join(t, NULL))
		return 1;
	pairs_each = 1;
	pthread_barrier_init(&all_there, NULL, 1);
	for (int i = 0; i < 64; i++) /* until the library has seen that the first one is gone */
		if (pthread_create(&t, NULL, worker, "after") || pthread_join(t, NULL))
			return 1;
	pairs(argv[2], 1);
	return 0;
}

/* ---- being cancelled ---- */

/* Asked to end before it says anything, it does so at the first point where a thread can be cancelled: after all that. */
static void *cancelled(void *n)
{
	char text[64];
	pthread_cancel(pthread_self());
	for (long i = 0; i < *(long *)n; i++) {
		snprintf(text, sizeof text, "text %ld, said only once", i);
		pairs(text, 1);
	}
	pthread_testcancel();
	return NULL;
}

/* In a child, which has no thread of the library's that asks for room on disk in good time. */
static int cancels(char **argv)
{
	long n = number(argv, 2);
	pairs("parent", 1);
	pid_t child = fork();
	if (!child) {
		pthread_t t;
		void *result = NULL;
		if (pthread_create(&t, NULL, cancelled, &n) || pthread_join(t, &result) || result != PTHREAD_CANCELED)
			_exit(1);
		pairs("after", n);
		_exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	return status;
}

/* Forking while other threads are in the library. */
static _Atomic bool stop;

static void *busy(void *unused)
{
	while (!stop) {
		char text[32];
		static __thread unsigned i;
		snprintf(text, sizeof text, "text %u", i++ % 5000);
		pairs(text, 1);
	}
	return unused;
}

static int busy_forks(char **argv)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		if (pthread_create(&t[i], NULL, busy, NULL))
			return 1;
	for (long i = 0; i < number(argv, 2); i++) {
		pid_t child = fork();
		if (!child) {
			pairs("child", 10);
			_exit(0);
		}
		int status;
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* ---- the library itself ---- */

static int unloads(char **argv)
{
	pairs("before", number(argv, 2));
	void *library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY | RTLD_NOLOAD);
	for (int i = 0; library && i < 4; i++) /* more often than it was opened */
		if (dlclose(library))
			break;
	pairs("after", number(argv, 2));
	return library == NULL;
}

/* Closes whatever it finds open, and gets the numbers again for files of its own. */
static int closes(char **argv)
{
	pairs("before", 10);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 8; i++)
		dup(fd);
	pairs("after", number(argv, 3));
	return write(fd, "mine", 4) != 4;
}

/* ---- memory: none of the program's own ---- */

static __thread bool counting;
static _Atomic long allocations;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t n) { allocations += counting; return __libc_malloc(n); }
void *calloc(size_t n, size_t size) { allocations += counting; return __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { allocations += counting; return __libc_realloc(p, n); }

static void *first_calls(void *unused)
{
	char text[64];
	counting = true;
	pairs("first of a thread", 1);
	for (int i = 0; i < 20000; i++) {
		text[0] = 'a' + (char)(i % 26);
		text[1] = 'a' + (char)(i / 26 % 26);
		text[2] = 'a' + (char)(i / 676);
		text[3] = 0;
		nvtx_push(text);
		nvtx_pop();
	}
	void *d = nvtx_domain("a domain");
	domain_pairs(d, nvtx_register(d, "a text"), 3);
	nvtx_mark("a mark");
	nvtx_end(nvtx_start("a start"));
	counting = false;
	return unused;
}

static int allocates(char **argv)
{
	pthread_t t;
	(void)argv;
	first_calls(NULL);
	if (pthread_create(&t, NULL, first_calls, NULL))
		return 1;
	pthread_join(t, NULL);
	pid_t child = fork();
	if (!child) {
		first_calls(NULL);
		_exit(allocations ? 1 : 0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	printf("%ld\n", allocations);
	return status;
}

/* ---- a thread with little stack, which is the first of its process to say something ---- */

enum { LITTLE_STACK = 24 << 10, NO_STACK = 1 << 20 };

static void *fork_and_say(void *unused)
{
	pid_t child = fork();
	if (!child) {
		pairs("said with little stack", 1);
		_exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	return status ? NULL : unused;
}

/* What is below the stack cannot be touched, so that more than there is of it is a signal. */
static int little_stack(char **argv)
{
	pthread_t t;
	pthread_attr_t attr;
	void *result = NULL;
	char *stack = mmap(NULL, NO_STACK + LITTLE_STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack + NO_STACK, LITTLE_STACK, PROT_READ | PROT_WRITE))
		return 1;
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack + NO_STACK, LITTLE_STACK) || pthread_create(&t, &attr, fork_and_say, argv))
		return 77; /* the system wants more */
	pthread_join(t, &result);
	return !result;
}

/* ---- signals ---- */

static _Atomic long handled;
static pthread_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	nvtx_push("handler");
	nvtx_pop();
	handled++;
}

/* One after the other was handled: none is lost because one is pending. */
static void *sender(void *n)
{
	for (long i = 0; i < *(long *)n; i++) {
		pthread_kill(interrupted, SIGUSR1);
		while (handled <= i)
			sched_yield();
	}
	return NULL;
}

static int signals(char **argv)
{
	struct sigaction a = {.sa_handler = on_signal};
	pthread_t t;
	long done = 0, n = number(argv, 2);
	interrupted = pthread_self();
	sigaction(SIGUSR1, &a, NULL);
	if (pthread_create(&t, NULL, sender, &n))
		return 1;
	for (; handled < n; done++)
		pairs("interrupted", 1);
	pthread_join(t, NULL);
	printf("%ld %ld\n", done, handled);
	return 0;
}

/* ---- bounds ---- */

static int deep(char **argv)
{
	for (long i = 0; i < number(argv, 2); i++)
		if (nvtx_push("deep") != i)
			return 1;
	for (long i = number(argv, 2); i-- > 0;)
		if (nvtx_pop() != i)
			return 1;
	return nvtx_pop() >= 0;
}

/* Deep ones, the innermost of which hold long texts that no table has a place for. */
static int deep_and_long(char **argv)
{
	static char text[32769];
	for (int i = 0; i < 270000; i++) {
		snprintf(text, sizeof text, "text number %d of many", i);
		nvtx_mark(text);
	}
	for (long i = 0; i < number(argv, 2); i++)
		nvtx_push("text number 7 of many");
	memset(text, 'x', sizeof text - 1);
	for (long i = 0; i < number(argv, 3); i++)
		nvtx_push(text);
	for (long i = number(argv, 2) + number(argv, 3); i-- > 0;)
		if (nvtx_pop() != i)
			return 1;
	return 0;
}

/* Ranges of one name, the first of them deeper than is remembered of each; what is said in them stands in another domain. */
static int deep_window(char **argv)
{
	void *domain = nvtx_domain("beside"), *text = nvtx_register(domain, argv[2]);
	for (int times = 0; times < 2; times++) {
		for (int i = 0; i < 3000; i++)
			nvtx_push("deep");
		for (int i = 0; i < 3; i++) {
			nvtx_push("train");
			domain_pairs(domain, text, 1);
		}
		for (int i = 0; i < 3; i++) {
			nvtx_pop();
			domain_pairs(domain, text, 1);
		}
		for (int i = 0; i < 3000; i++)
			nvtx_pop();
		pairs("out", 1);
		nvtx_push("train");
		pairs("in", 1);
		nvtx_pop();
	}
	return 0;
}

static int domains(char **argv)
{
	char text[32];
	for (long i = 0; i < number(argv, 2); i++) {
		snprintf(text, sizeof text, "domain %ld", i);
		void *d = nvtx_domain(text);
		if (d != nvtx_domain(text)) /* the same again */
			return 1;
		domain_pairs(d, nvtx_register(d, "in it"), 1);
	}
	return 0;
}

static int texts(char **argv)
{
	char text[64];
	for (long i = 0; i < number(argv, 2); i++) {
		snprintf(text, sizeof text, "text number %ld of many", i);
		pairs(text, 1);
	}
	return 0;
}

static int file_limit(char **argv)
{
	struct rlimit r = {(rlim_t)number(argv, 2), (rlim_t)number(argv, 2)};
	setrlimit(RLIMIT_FSIZE, &r);
	pairs("limited", number(argv, 3));
	return 0;
}

/* The file cannot be opened again: the program has given up its rights, or has moved it. */
static int lets_go(char **argv)
{
	char moved[4096];
	const char *folder = getenv("OPSCOPE_DIR");
	bool moves = !strcmp(argv[2], "moves");
	snprintf(moved, sizeof moved, "%s.moved", folder);
	pairs("before", 10);
	if (moves ? rename(folder, moved) : setuid(65534))
		return moves ? 1 : 77;
	pairs("after", number(argv, 3));
	return moves && rename(moved, folder);
}

/* A process that keeps all its memory from now on: how much more that is when its capture has begun, KB. */
static long locked_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f) && sscanf(line, "VmLck: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb;
}

static int locks_memory(char **argv)
{
	(void)argv;
	pid_t child = fork();
	if (!child) {
		if (mlockall(MCL_FUTURE))
			_exit(77);
		long before = locked_kb();
		pairs("locked", 1000);
		printf("%ld\n", locked_kb() - before);
		exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* A child that has no descriptor free when it begins to say something, and perhaps has some again later. */
static int poor_children(char **argv)
{
	bool later = !strcmp(argv[2], "later");
	nvtx_push("parent");
	pid_t child = fork();
	if (!child) {
		struct rlimit none = {0, 64}, some = {64, 64};
		if (strcmp(argv[2], "disk")) /* which is full, then */
			setrlimit(RLIMIT_NOFILE, &none);
		pairs("without", number(argv, 3));
		void *domain = nvtx_domain("named without"), *text = nvtx_register(domain, "text named without");
		if (later) {
			setrlimit(RLIMIT_NOFILE, &some);
			usleep(50000); /* it is tried again after 10 ms */
			domain_pairs(domain, text, 5);
			nvtx_push("last");
			nvtx_pop();
		}
		_exit(0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	nvtx_pop();
	return status;
}

/* No descriptor is to be had for a while, in which much is said. */
static int no_descriptors(char **argv)
{
	struct rlimit none = {0, 64}, some = {64, 64};
	pairs("before", 10);
	setrlimit(RLIMIT_NOFILE, &none);
	pairs("without", number(argv, 2));
	setrlimit(RLIMIT_NOFILE, &some);
	pairs("after", number(argv, 2));
	return 0;
}

/* No memory is to be had for a while, in which a thread is in a domain for the first time. */
static int no_memory(char **argv)
{
	struct rlimit none, before;
	void *domain = NULL;
	char name[32];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "domain %d", i);
		domain = nvtx_domain(name);
	}
	void *text = nvtx_register(domain, "in it");
	pairs("before", 1);
	getrlimit(RLIMIT_DATA, &before);
	none = (struct rlimit){4096, before.rlim_max}; /* 0 does not count */
	setrlimit(RLIMIT_DATA, &none);
	domain_pairs(domain, text, number(argv, 2));
	setrlimit(RLIMIT_DATA, &before);
	domain_pairs(domain, text, number(argv, 2));
	return 0;
}

/* A thread that has a range open says nothing while collecting is switched off and on, more often than anything remembers. */
static void *quiet(void *unused)
{
	nvtx_push("open");
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&all_there);
	pairs("late", 1);
	nvtx_pop();
	return unused;
}

static int many_switches(char **argv)
{
	pthread_t t;
	pthread_barrier_init(&all_there, NULL, 2);
	if (pthread_create(&t, NULL, quiet, NULL))
		return 1;
	pthread_barrier_wait(&all_there);
	for (long i = 0; i < number(argv, 2); i++) {
		opscope_collect(0);
		opscope_collect(1);
		if (!i)
			pairs("after the first", 1);
	}
	pthread_barrier_wait(&all_there);
	pthread_join(t, NULL);
	return 0;
}

/* What runs after the library's own end finds the disk full, and still says things. */
static const char *filler;

static void say_late(void)
{
	static char zeros[4096];
	int fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	while (write(fd, zeros, 1) > 0)
		;
	pairs("late", 200000);
}

static int full_after_the_end(char **argv)
{
	char pattern[4096];
	glob_t found = {0};
	struct stat st = {0};
	(void)argv;
	pairs("early", 1000);
	snprintf(pattern, sizeof pattern, "%s/*.seg", getenv("OPSCOPE_DIR"));
	if (glob(pattern, 0, NULL, &found))
		return 1;
	for (int i = 0; i < 6000 && st.st_size <= 1 << 20; i++) { /* until there is room ahead that can be given back */
		usleep(10000);
		stat(found.gl_pathv[0], &st);
	}
	globfree(&found);
	return st.st_size <= 1 << 20;
}

/* Says things again and again, until its input ends; "ready" when each thread has said more than a number of bytes that the test knows. */
static pthread_barrier_t much_was_said;

static void *talker(void *name)
{
	enum { AT_ONCE = 500, BYTES = 32 };
	bool told = false;
	for (long said = 0; !stop; said += AT_ONCE * BYTES) {
		pairs(name, AT_ONCE);
		usleep(1000); /* a reader has to have a chance */
		if (!told && said > pairs_each)
			pthread_barrier_wait(&much_was_said);
		told |= said > pairs_each;
	}
	return NULL;
}

static int talks(char **argv)
{
	pthread_t t[2];
	char c;
	pairs_each = number(argv, 2);
	pthread_barrier_init(&much_was_said, NULL, 3);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, talker, i ? "odd" : "even"))
			return 1;
	pthread_barrier_wait(&much_was_said);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* "+name" pushes, "-" pops, "s name" starts and ends a range, "@ms" waits, each word an argument. */
static int script(char **argv)
{
	for (char **w = argv + 2; *w; w++) {
		if (**w == '+')
			nvtx_push(*w + 1);
		else if (**w == '-')
			nvtx_pop();
		else if (**w == 's')
			nvtx_end(nvtx_start(*w + 2));
		else if (**w == '@')
			usleep((useconds_t)atol(*w + 1) * 1000);
		else
			return 1;
	}
	return 0;
}

/* Waits with its ranges open until it may go on, so that a test can look. */
static int waits(char **argv)
{
	nvtx_push("open");
	pairs("done", number(argv, 2));
	printf("ready\n");
	fflush(stdout);
	char c;
	if (read(0, &c, 1) < 0)
		return 1;
	pairs("later", 1);
	nvtx_pop();
	return 0;
}

/* The first process of a run has no descriptor free when it begins, and perhaps has some again later. */
static int poor_from_the_start(char **argv)
{
	struct rlimit some = {64, 64};
	pairs("without", number(argv, 3));
	if (!strcmp(argv[2], "later")) {
		setrlimit(RLIMIT_NOFILE, &some);
		usleep(50000);
		pairs("with", number(argv, 3));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "poor_from_the_start")) {
		struct rlimit none = {0, 64};
		dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
		setrlimit(RLIMIT_NOFILE, &none);
	}
	if (argc > 2 && !strcmp(argv[1], "full_after_the_end")) { /* handlers run in the opposite order of their registration */
		filler = argv[2];
		atexit(say_late);
	}
	static const struct { const char *name; int (*run)(char **); } what[] = {
		{"threads", threads}, {"many_threads", many_threads}, {"late_threads", late_threads},
		{"ends", ends}, {"forks", forks}, {"silent_child", silent_child},
		{"first_calls_of_children", first_calls_of_children}, {"forks_beside", forks_beside}, {"leaves_open", leaves_open},
		{"unknown_texts", unknown_texts}, {"poor_children", poor_children}, {"poor_from_the_start", poor_from_the_start}, {"lets_go", lets_go}, {"locks_memory", locks_memory}, {"deep_window", deep_window},
		{"cancels", cancels}, {"workers", workers}, {"no_memory", no_memory}, {"many_switches", many_switches},
		{"busy_forks", busy_forks}, {"unloads", unloads}, {"closes", closes}, {"allocates", allocates},
		{"signals", signals}, {"deep", deep}, {"deep_and_long", deep_and_long}, {"domains", domains}, {"texts", texts},
		{"file_limit", file_limit}, {"no_descriptors", no_descriptors}, {"script", script}, {"little_stack", little_stack}, {"talks", talks}, {"full_after_the_end", full_after_the_end},
		{"waits", waits}};
	for (size_t i = 0; argc > 1 && i < sizeof what / sizeof what[0]; i++)
		if (!strcmp(argv[1], what[i].name)) {
			if (!nvtx_load() && !getenv("GUEST_ALONE"))
				return 99; /* nobody listens */
			return what[i].run(argv);
		}
	return 98;
}
