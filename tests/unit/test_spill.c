/* Large blocks in a file: what is read is what was written, however a block grows, moves, is shared with a child or finds the disk full. */
#include "test.h"

#include "base/mem.h"
#include "base/size.h"
#include "base/spill.h"
#include "profile_builder.h"
#include "store/load.h"
#include "store/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MB = 1 << 20, LIMIT = 36 * MB, SHARE = LIMIT / 3 };

static bool disk_is_full;
static const char *full_folder; /* files of it are on a full disk, too; NULL = none */
static bool no_other_folder;    /* than the one that has the file */
static atomic_int error_once;   /* of the next request */
static atomic_uint requests;
static bool no_holes;           /* the file system has none */
static const struct statfs *disk; /* NULL = the real one */

static bool is_in(int fd, const char *folder)
{
	char path[64], link[PATH_MAX] = "";
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return readlink(path, link, PATH_MAX - 1) > 0 && strncmp(link, folder, strlen(folder)) == 0;
}

/* Instead of the C library's. */
int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	if (no_holes && mode & FALLOC_FL_PUNCH_HOLE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int posix_fallocate(int fd, off_t at, off_t bytes)
{
	const int error = atomic_exchange(&error_once, 0);
	requests++;
	return error ? error : disk_is_full || (full_folder && is_in(fd, full_folder)) ? ENOSPC : fallocate(fd, 0, at, bytes) < 0 ? errno : 0;
}

int statfs(const char *path, struct statfs *fs)
{
	if (no_other_folder)
		return -1;
	if (!disk)
		return (int)syscall(SYS_statfs, path, fs);
	*fs = *disk;
	return 0;
}

/* The only file of the process that has no name; its link in /proc. */
static int spill_fd(char link[PATH_MAX])
{
	char path[64];
	struct stat st;
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0) {
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			const ssize_t n = readlink(path, link, PATH_MAX - 1);
			assert_true(n > 0);
			link[n] = 0;
			return fd;
		}
	fail_msg("there is no such file");
	return -1;
}

static struct stat spill_stat(void)
{
	char link[PATH_MAX];
	struct stat st;
	assert_int_equal(fstat(spill_fd(link), &st), 0);
	return st;
}

static uint64_t value_at(size_t i, uint64_t seed)
{
	return (i + seed) * UINT64_C(0x9e3779b97f4a7c15);
}

static void write_all(uint64_t *v, size_t from, size_t n, uint64_t seed)
{
	for (size_t i = from; i < n; i++)
		v[i] = value_at(i, seed);
}

static void assert_written(const uint64_t *v, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] != value_at(i, seed))
			fail_msg("number %zu is another", i);
}

/* Fills the share of the limit that stays in memory. */
static void *fill_memory(void)
{
	void *p = mem_alloc(SHARE - MB, 1);
	assert_int_equal(spill_bytes(p), 0);
	return p;
}

static void small_and_first_blocks_stay_in_memory(void **state)
{
	void *first = fill_memory(), *small = mem_alloc(SPILL_BLOCK - 1, 1), *large = mem_alloc(2 * MB, 1);
	assert_int_equal(spill_bytes(small), 0);
	assert_true(spill_bytes(large) >= 2 * MB);
	mem_free(large);
	mem_free(first);
	large = mem_alloc(2 * MB, 1);
	assert_int_equal(spill_bytes(large), 0);
	mem_free(large);
	mem_free(small);
}

static void a_new_block_is_zero(void **state)
{
	void *first = fill_memory();
	for (int turn = 0; turn < 3; turn++) {
		char *p = mem_zalloc(3 * MB, 1);
		assert_true(spill_bytes(p));
		for (size_t i = 0; i < 3 * MB; i++)
			assert_int_equal(p[i], 0);
		memset(p, 7, 3 * MB);
		mem_free(p);
	}
	mem_free(first);
}

/* As columns do: others grow in between, so that its pieces lie apart in the file. */
static void a_block_grows_and_shrinks(void **state)
{
	void *first = fill_memory();
	uint64_t *v[3] = {NULL};
	size_t n = 0, cap = 0;
	for (; n < 6 * MB / 8; n += 1000) {
		if (n + 1000 > cap) {
			cap = cap ? cap + cap / 2 : 4096;
			for (int i = 0; i < 3; i++)
				v[i] = mem_realloc(v[i], cap, sizeof *v[i]);
		}
		for (int i = 0; i < 3; i++)
			write_all(v[i], n, n + 1000, (uint64_t)i);
	}
	for (int i = 0; i < 3; i++) {
		assert_true(spill_bytes(v[i]));
		assert_written(v[i], n, (uint64_t)i);
		v[i] = mem_realloc(v[i], n / 3, sizeof *v[i]);
		assert_true(spill_bytes(v[i]) <= n / 3 * 8 + 65536);
		assert_written(v[i], n / 3, (uint64_t)i);
		v[i] = mem_realloc(v[i], n, sizeof *v[i]);
		assert_written(v[i], n / 3, (uint64_t)i);
		mem_free(v[i]);
	}
	mem_free(first);
}

/* More often than a block has pieces. */
static void a_block_may_grow_page_by_page(void **state)
{
	void *first = fill_memory();
	size_t n = 2 * MB / 8;
	uint64_t *v = mem_alloc(n, sizeof *v), *other;
	write_all(v, 0, n, 1);
	for (int i = 0; i < 120; i++) {
		other = mem_alloc(MB, 1);
		v = mem_realloc(v, n + 512, sizeof *v);
		write_all(v, n, n + 512, 1);
		n += 512;
		mem_free(other);
	}
	assert_true(spill_bytes(v));
	assert_written(v, n, 1);
	mem_free(v);
	mem_free(first);
}

static void a_block_moves_from_memory_to_the_file(void **state)
{
	void *first = fill_memory();
	size_t n = 100000 / 8;
	uint64_t *v = mem_alloc(n, sizeof *v);
	write_all(v, 0, n, 5);
	assert_int_equal(spill_bytes(v), 0);
	v = mem_realloc(v, 4 * MB, 1);
	assert_true(spill_bytes(v));
	assert_written(v, n, 5);
	mem_free(v);
	mem_free(first);
}

static uint64_t resident(void)
{
	unsigned long long all = 0, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_int_equal(fscanf(f, "%llu %llu", &all, &pages), 2);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* More than three times the limit; nothing of it is lost. */
static void pages_leave_the_process(void **state)
{
	enum { BLOCKS = 10, BYTES = 12 * MB };
	void *first = fill_memory();
	uint64_t *v[BLOCKS], most = 0;
	for (int i = 0; i < BLOCKS; i++) {
		v[i] = mem_alloc(BYTES, 1);
		write_all(v[i], 0, BYTES / 8, (uint64_t)i);
	}
	for (int i = 0; i < BLOCKS; i++)
		assert_written(v[i], BYTES / 8, (uint64_t)i);
	for (int i = 0; i < 400 && (most = resident()) > LIMIT; i++)
		usleep(10000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(most <= LIMIT);
#endif
	for (int i = 0; i < BLOCKS; i++)
		mem_free(v[i]);
	mem_free(first);
}

/* Where the filesystem can: a process that is killed leaves nothing behind at any moment. */
static void the_file_never_has_a_name(void **state)
{
	char link[PATH_MAX], folder[PATH_MAX];
	spill_fd(link);
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(link, '/') - link), link);
	const int can = open(folder, O_TMPFILE | O_RDWR, 0600);
	if (can < 0)
		skip();
	close(can);
	assert_null(strstr(link, ".opscope-"));
}

/* As the server asks for each query. */
static void what_children_held_is_given_back(void **state)
{
	enum { TURNS = 6, BYTES = 4 * MB };
	void *first = fill_memory(), *stays = mem_zalloc(BYTES, 1);
	for (int turn = 0; turn < TURNS; turn++) {
		int go[2], status;
		char c;
		char *v = mem_alloc(BYTES, 1);
		assert_true(spill_bytes(v));
		memset(v, turn + 1, BYTES);
		assert_int_equal(pipe(go), 0);
		spill_child_begins();
		const pid_t pid = fork();
		if (pid == 0)
			_exit(read(go[0], &c, 1) == 1 && v[0] == turn + 1 && v[BYTES - 1] == turn + 1 ? 0 : 1);
		v = mem_realloc(v, BYTES / 2, 1);
		mem_free(v);
		assert_int_equal(write(go[1], "x", 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		spill_child_ended();
		assert_int_equal(status, 0);
		assert_true(spill_stat().st_blocks * 512 <= 2 * BYTES + MB); /* its own, once, is kept for the next */
		close(go[0]);
		close(go[1]);
	}
	mem_free(stays);
	assert_int_equal(spill_stat().st_size, 0);
	mem_free(first);
}

static void a_request_that_fails_takes_nothing(void **state)
{
	void *first = fill_memory(), *p = spill_new(MB, true);
	for (int i = 0; i < 3; i++)
		assert_null(spill_new((size_t)1 << 62, true));
	assert_null(spill_new(SIZE_MAX / 2 - 4096, true));
	assert_null(spill_new(SIZE_MAX, false));
	void *next = spill_new(MB, true);
	assert_non_null(next);
	assert_null(spill_full());
	assert_true(spill_stat().st_size <= 8 * MB);
	spill_release(next);
	spill_release(p);
	assert_int_equal(spill_stat().st_size, 0);
	mem_free(first);
}

static void errors_are_told_apart(void **state)
{
	error_once = EINTR;
	char *p = spill_new(MB, true);
	assert_non_null(p);
	assert_null(spill_full());
	error_once = EIO;
	assert_null(spill_new(MB, true));
	assert_null(spill_full());
	error_once = EDQUOT;
	assert_null(spill_new(MB, true));
	assert_non_null(spill_full());
	void *again = spill_new(MB, true);
	assert_null(spill_full());
	spill_release(again);
	spill_release(p);
}

/* What a file's columns take is counted, and counts no more once they are gone. */
static void a_file_that_was_loaded_leaves_the_share(void **state)
{
	enum { EVENTS = 200000 };
	char path[] = "/tmp/opscope_spill_XXXXXX";
	struct builder m;
	struct err e;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	builder_begin(&m);
	const uint32_t thread = builder_track(&m, "1", "1");
	for (int i = 0; i < EVENTS; i++)
		builder_span(&m, thread, SPAN_OP, "aten::mm", i * 10, i * 10 + 5);
	struct profile *p = builder_finish(&m, PASSES_IN_COLUMNS);
	struct save *s = save_begin(path, 0600, 0, &e);
	assert_non_null(s);
	assert_int_equal(save_profile(s, p, &e), 0);
	assert_int_equal(save_commit(s, &e), 0);
	profile_free(p);
	p = profile_new();
	assert_int_equal(load_profile(path, p, &e), 0);
	assert_int_equal(p->span.rows.n, EVENTS);
	unlink(path);
	void *rest = mem_alloc(SHARE - 2 * MB, 1);
	assert_true(spill_bytes(rest)); /* its columns have a part of the share */
	mem_free(rest);
	profile_free(p);
	void *all = fill_memory(), *more = mem_alloc(2 * MB, 1); /* the first looks whether it stays in memory */
	assert_true(spill_bytes(more));
	mem_free(more);
	mem_free(all);
}

static void a_child_has_its_own(void **state)
{
	void *first = fill_memory();
	const size_t n = 2 * MB / 8;
	uint64_t *v = mem_alloc(n, sizeof *v), *freed = mem_alloc(n, sizeof *v);
	int status, go[2];
	char c;
	write_all(v, 0, n, 1);
	write_all(freed, 0, n, 2);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool good = read(go[0], &c, 1) == 1 && freed[n - 1] == value_at(n - 1, 2) && v[7] == value_at(7, 1);
		memset(v, 1, n * sizeof *v);
		v = mem_realloc(v, 2 * n, sizeof *v);
		good = good && !spill_bytes(v) && v[n - 1] == UINT64_C(0x0101010101010101);
		mem_free(v);
		mem_free(freed);
		v = mem_alloc(n, sizeof *v);
		good = good && !spill_bytes(v);
		_exit(good ? 0 : 1);
	}
	mem_free(freed);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_written(v, n, 1);
	mem_free(v);
	mem_free(first);
	close(go[0]);
	close(go[1]);
}

struct growing {
	uint64_t *v;
	size_t n;
};

static void grow(void *context)
{
	struct growing *g = context;
	mem_alloc(3 * MB, 1);
	disk_is_full = true;
	g->v = mem_realloc(g->v, 2 * g->n, sizeof *g->v);
}

/* As of any allocation that fails: the call is abandoned, what it made is freed, and the block that was to grow is what it was. */
static void a_full_disk_is_no_memory(void **state)
{
	void *first = fill_memory();
	struct mem_pool pool = {0};
	struct growing g = {.n = 3 * MB / 8};
	g.v = mem_alloc(g.n, sizeof *g.v);
	write_all(g.v, 0, g.n, 3);
	assert_int_equal(mem_try(&pool, grow, &g), -1);
	assert_non_null(pool.newest);
	mem_pool_release(&pool);
	assert_non_null(spill_full());
	assert_written(g.v, g.n, 3);
	disk_is_full = false;
	g.v = mem_realloc(g.v, 2 * g.n, sizeof *g.v);
	assert_null(spill_full());
	assert_written(g.v, g.n, 3);
	mem_free(g.v);
	mem_free(first);
}

static void the_process_says_that_the_disk_is_full(void **state)
{
	int ends[2], status;
	char text[300] = "";
	assert_int_equal(pipe(ends), 0);
	void *first = fill_memory();
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = {"test_spill", "full", NULL};
		dup2(ends[1], STDERR_FILENO);
		execv("/proc/self/exe", argv);
		_exit(9);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_true(read(ends[0], text, sizeof text - 1) > 0);
	assert_memory_equal(text, "opscope: out of memory: the disk of /", 37);
	assert_non_null(strstr(text, " is full; --memory keeps the rest of the trace there (9437184 bytes more were needed). Set TMPDIR to a larger disk\n"));
	close(ends[0]);
	mem_free(first);
}

/* Of a limit that nobody asked for. */
static int run_unasked(void)
{
	spill_limit_unless_set(LIMIT);
	char *v = mem_zalloc(SHARE, 2);
	bool good = spill_bytes(v) == 2 * SHARE;
	memset(v, 3, 2 * SHARE);
	no_other_folder = disk_is_full = true;
	requests = 0;
	v = mem_realloc(v, 3 * SHARE, 1);
	good = good && requests == 1 && !spill_bytes(v) && v[0] == 3 && v[2 * SHARE - 1] == 3;
	mem_free(v);
	v = mem_zalloc(SHARE, 2);
	good = good && !spill_bytes(v);
	mem_free(v);
	return good ? 0 : 1;
}

/* $TMPDIR in memory, or nowhere, is passed over. */
static void a_limit_nobody_asked_for_ends_nothing(void **state)
{
	assert_int_equal(system("TMPDIR=/nowhere /proc/$PPID/exe unasked"), 0);
	assert_int_equal(system("TMPDIR=/dev/shm /proc/$PPID/exe unasked"), 0);
}

/* A disk counts in f_frsize; after a failure a limit is tried anew. */
static int run_small_disk(void)
{
	static const struct statfs small = {.f_type = 0xef53, .f_bsize = MB, .f_frsize = 4096, .f_bavail = 1000}, large = {.f_type = 0xef53, .f_bsize = 512, .f_frsize = 4096, .f_bavail = 10000};
	struct err e;
	disk = &small;
	const bool refused = spill_limit(LIMIT, &e) < 0;
	disk = &large;
	return refused && spill_limit(LIMIT, &e) == 0 && spill_is_due(0, LIMIT) ? 0 : 1;
}

static void a_disk_is_looked_at_each_time(void **state)
{
	assert_int_equal(system("/proc/$PPID/exe small_disk"), 0);
}

static unsigned said;
static char said_from[PATH_MAX], said_to[PATH_MAX];

static void say(const char *from, const char *to)
{
	said++;
	strcpy(said_from, from);
	strcpy(said_to, to);
}

/* A block that lies in two files: its child, its end and what comes after it. */
static bool is_whole_in_two(uint64_t *v, size_t n)
{
	int status;
	const pid_t pid = fork();
	if (pid == 0) {
		const bool good = v[0] == value_at(0, 4) && v[n - 1] == value_at(n - 1, 4);
		memset(v, 1, n * sizeof *v);
		_exit(good ? 0 : 1);
	}
	const bool good = waitpid(pid, &status, 0) == pid && status == 0;
	assert_written(v, n, 4);
	v = mem_realloc(v, n / 4, sizeof *v);
	assert_written(v, n / 4, 4);
	mem_free(v);
	return good;
}

/* The disk of $TMPDIR becomes full: the next folder has what comes, and one line is said. */
static int run_next_folder(void)
{
	static const struct statfs large = {.f_type = 0xef53, .f_bsize = 4096, .f_frsize = 4096, .f_bavail = 100000};
	char folder[] = "/tmp/opscope_spill_XXXXXX";
	struct err e;
	disk = &large;
	bool good = mkdtemp(folder) && setenv("TMPDIR", folder, 1) == 0 && spill_limit(LIMIT, &e) == 0;
	rmdir(folder); /* its file has no name */
	spill_tell(say);
	void *first = fill_memory();
	size_t n = 2 * MB / 8;
	uint64_t *v = mem_alloc(n, sizeof *v);
	good = good && spill_bytes(v) && !said;
	full_folder = folder;
	for (int i = 0; i < 3; i++) {
		v = mem_realloc(v, 2 * n, sizeof *v);
		n *= 2;
	}
	write_all(v, 0, n, 4);
	good = good && spill_bytes(v) && !spill_full() && said == 1 && strcmp(said_from, folder) == 0 && strcmp(said_to, "/var/tmp") == 0;
	full_folder = "/";
	good = good && !spill_new(MB, true) && spill_full() && strcmp(spill_full(), "/var/tmp") == 0;
	full_folder = NULL;
	good = is_whole_in_two(v, n) && good;
	void *next = spill_new(MB, true);
	good = good && next && said == 1;
	spill_release(next);
	mem_free(first);
	return good ? 0 : 1;
}

static void the_next_folder_has_room(void **state)
{
	assert_int_equal(system("/proc/$PPID/exe next_folder"), 0);
}

/* What was given back is taken again, by whoever asks for as much or less; what must be zero is. */
static void pieces_are_taken_again(void **state)
{
	enum { TURNS = 40, BYTES = 6 * MB }; /* half of the least piece is more than what memory has room for */
	void *first = fill_memory(), *stays = mem_zalloc(BYTES, 1);
	for (int turn = 0; turn < TURNS; turn++) {
		const size_t bytes = (size_t)(BYTES - turn % 3 * MB);
		char *v = mem_alloc(bytes, 1), *zero;
		assert_int_equal(spill_bytes(v), bytes);
		memset(v, 0x55, bytes);
		v = mem_realloc(v, bytes / 2, 1);
		zero = mem_zalloc(bytes / 2, 1);
		assert_true(spill_bytes(zero));
		for (size_t i = 0; i < bytes / 2; i++)
			if (zero[i] || v[i] != 0x55)
				fail_msg("byte %zu is another", i);
		mem_free(v);
		mem_free(zero);
		assert_true(spill_stat().st_size <= 3 * BYTES);
	}
	mem_free(stays);
	assert_int_equal(spill_stat().st_size, 0);
	mem_free(first);
}

static void a_file_without_holes_has_zeros(void **state)
{
	enum { TURNS = 6, BYTES = 4 * MB };
	void *first = fill_memory(), *stays = mem_zalloc(BYTES, 1);
	no_holes = true;
	for (int turn = 0; turn < TURNS; turn++) {
		char *v = mem_zalloc(BYTES, 1);
		assert_true(spill_bytes(v));
		for (size_t i = 0; i < BYTES; i++)
			if (v[i])
				fail_msg("byte %zu is not zero", i);
		memset(v, 0x55, BYTES);
		mem_free(v);
	}
	no_holes = false;
	mem_free(stays);
	mem_free(first);
}

/* They hold no more than the limit, and nothing once the disk is full. */
static void spare_pieces_are_few(void **state)
{
	enum { N = 120 };
	void *first = fill_memory(), *v[N];
	for (int i = 0; i < N; i++)
		memset(v[i] = spill_new(MB, false), 1, MB);
	for (int i = 0; i < N; i += 2)
		spill_release(v[i]);
	assert_true(spill_stat().st_blocks * 512 <= N / 2 * MB + LIMIT + MB);
	error_once = ENOSPC;
	void *more = spill_new(2 * MB, true);
	assert_non_null(more);
	assert_null(spill_full());
	spill_release(more);
	for (int i = 1; i < N; i += 2)
		spill_release(v[i]);
	assert_int_equal(spill_stat().st_size, 0);
	mem_free(first);
}

static void *grow_in_thread(void *unused)
{
	for (uint64_t turn = 0; turn < 10; turn++) {
		uint64_t *v = NULL;
		size_t n = 0;
		for (size_t to = MB / 8; to <= 4 * MB / 8; to *= 2) {
			v = mem_realloc(v, to, sizeof *v);
			write_all(v, n, to, turn);
			n = to;
		}
		assert_written(v, n, turn);
		mem_free(v);
	}
	return NULL;
}

static void threads_grow_blocks_at_once(void **state)
{
	pthread_t thread[3];
	void *first = fill_memory();
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, grow_in_thread, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	mem_free(first);
}

static void sizes_are_read(void **state)
{
	static const struct { const char *text; uint64_t bytes; } c[] = {
		{"1", UINT64_C(1) << 30}, {"1G", UINT64_C(1) << 30}, {"500M", UINT64_C(500) << 20}, {"1048576G", UINT64_C(1) << 50}, {"3K", 3 << 10}, {"2T", UINT64_C(2) << 40},
		{"", 0}, {"0", 0}, {"G", 0}, {"-1G", 0}, {"1.5G", 0}, {"1P", 0}, {"1GB", 0}, {"1048577M", 0}, {"99999999999999999999", 0},
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		uint64_t bytes = 0;
		assert_int_equal(size_read(str_from(c[i].text), &bytes), c[i].bytes != 0);
		assert_int_equal(bytes, c[i].bytes);
	}
}

int main(int argc, char **argv)
{
	struct err e;
	if (argc > 1 && strcmp(argv[1], "unasked") == 0)
		return run_unasked();
	if (argc > 1 && strcmp(argv[1], "small_disk") == 0)
		return run_small_disk();
	if (argc > 1 && strcmp(argv[1], "next_folder") == 0)
		return run_next_folder();
	if (spill_limit(LIMIT, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 77;
	}
	no_other_folder = true;
	if (argc > 1) {
		fill_memory();
		disk_is_full = true;
		mem_alloc(9, MB);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_and_first_blocks_stay_in_memory),
		cmocka_unit_test(a_new_block_is_zero),
		cmocka_unit_test(a_block_grows_and_shrinks),
		cmocka_unit_test(a_block_may_grow_page_by_page),
		cmocka_unit_test(a_block_moves_from_memory_to_the_file),
		cmocka_unit_test(pages_leave_the_process),
		cmocka_unit_test(the_file_never_has_a_name),
		cmocka_unit_test(what_children_held_is_given_back),
		cmocka_unit_test(a_request_that_fails_takes_nothing),
		cmocka_unit_test(pieces_are_taken_again), cmocka_unit_test(a_file_without_holes_has_zeros),
		cmocka_unit_test(spare_pieces_are_few),
		cmocka_unit_test(errors_are_told_apart),
		cmocka_unit_test(a_file_that_was_loaded_leaves_the_share),
		cmocka_unit_test(a_child_has_its_own),
		cmocka_unit_test(a_full_disk_is_no_memory),
		cmocka_unit_test(the_process_says_that_the_disk_is_full),
		cmocka_unit_test(a_limit_nobody_asked_for_ends_nothing),
		cmocka_unit_test(a_disk_is_looked_at_each_time),
		cmocka_unit_test(the_next_folder_has_room),
		cmocka_unit_test(threads_grow_blocks_at_once),
		cmocka_unit_test(sizes_are_read),
	};
	return RUN_TESTS(tests);
}
