#include "store/load_job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "io/sqldb.h"
#include "store/save_job.h"

enum { LOAD_JOB_ID = 68, LOAD_JOB_VERSION = 60, LOAD_JOB_HEAD = 100 }; /* https://www.sqlite.org/fileformat.html, 1.3 */

struct load_job_file {
	struct sqldb db;
	struct sqlscan scan;
	bool is_scanning;
	unsigned at;             /* pieces that the scan has handed out */
	struct arena arena;
	char *path;
};

static uint32_t load_job_number(struct str head, size_t at)
{
	const unsigned char *p = (const unsigned char *)head.p + at;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool load_job_sniff(struct str head)
{
	return head.n >= LOAD_JOB_HEAD && memcmp(head.p, "SQLite format 3", 16) == 0 && load_job_number(head, LOAD_JOB_ID) == SAVE_JOB_APPLICATION_ID;
}

/* The first bytes of a regular file; none of any other, and of one that is not there. -1 and *e where they cannot be read. */
static int load_job_read_head(const char *path, char to[LOAD_JOB_HEAD], struct str *head, struct err *e)
{
	struct stat st;
	size_t n = 0;
	*head = (struct str){to, 0};
	if (stat(path, &st) != 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_set(e, ERR_IO, "%s: cannot look at it: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
	ssize_t more;
	while (n < LOAD_JOB_HEAD && (more = pread(fd, to + n, LOAD_JOB_HEAD - n, (off_t)n)) != 0) {
		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0) {
			err_set(e, ERR_IO, "%s: cannot read: %s", path, strerror(errno));
			close(fd);
			return -1;
		}
		n += (size_t)more;
	}
	close(fd);
	head->n = n;
	return 0;
}

int load_job_look(const char *path, struct err *e)
{
	char bytes[LOAD_JOB_HEAD];
	struct str head;
	return load_job_read_head(path, bytes, &head, e) < 0 ? -1 : load_job_sniff(head);
}

bool load_job_is(const char *path)
{
	struct err e;
	return load_job_look(path, &e) > 0;
}

static int load_job_damaged(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_FORMAT, "%s: the .opscope file is damaged: %s; import the job again", path, what);
}

static int load_job_check_version(const char *path, struct err *e)
{
	char bytes[LOAD_JOB_HEAD] = {0};
	struct str head;
	if (load_job_read_head(path, bytes, &head, e) < 0)
		return -1;
	uint32_t version = load_job_number(head, LOAD_JOB_VERSION);
	if (version != SAVE_JOB_VERSION)
		return err_set(e, ERR_FORMAT, "%s: a job of file version %u, this opscope reads %d; import the job again", path, version, SAVE_JOB_VERSION);
	return 0;
}

static int load_job_list(struct load_job *l, struct err *e)
{
	static const char *const columns[] = {"recording", "rank", NULL};
	struct load_job_file *f = l->file;
	struct sqlscan scan;
	unsigned cap = 0;
	if (sqlscan_open(&scan, &f->db, SAVE_JOB_PIECES, columns, e) < 0)
		return f->db.failed.code ? -1 : load_job_damaged(f->path, "it has no list of ranks", e);
	while (sqlscan_next(&scan)) {
		int64_t rank = 0;
		if (!sqlscan_i64(&scan, 1, &rank))
			scan.damaged = true;
		MEM_PUSH(l->piece, l->n, cap, (struct load_job_piece){arena_str(&f->arena, sqlscan_str(&scan, 0)).p, rank});
	}
	bool damaged = scan.damaged;
	sqlscan_close(&scan);
	return f->db.failed.code ? (*e = f->db.failed, -1) : damaged || !l->n ? load_job_damaged(f->path, "its list of ranks cannot be read", e) : 0;
}

struct load_job *load_job_open(const char *path, struct err *e)
{
	struct load_job *l = NEW(struct load_job);
	bool stale;
	l->file = NEW(struct load_job_file);
	l->file->path = memcpy(NEW_ARRAY_RAW(strlen(path) + 1, char), path, strlen(path) + 1);
	if (load_job_check_version(path, e) < 0 || sqldb_open(&l->file->db, l->file->path, &stale, e) < 0) {
		mem_free(l->file->path);
		mem_free(l->file);
		mem_free(l);
		return NULL;
	}
	if (load_job_list(l, e) == 0)
		return l;
	load_job_close(l);
	return NULL;
}

/* One that is at its first piece. */
static int load_job_scan(struct load_job_file *f, struct err *e)
{
	static const char *const columns[] = {"checksum", "data", NULL};
	if (f->is_scanning)
		sqlscan_close(&f->scan);
	f->at = 0;
	f->is_scanning = sqlscan_open(&f->scan, &f->db, SAVE_JOB_PIECES, columns, e) == 0;
	return f->is_scanning ? 0 : -1;
}

int load_job_bytes(struct load_job *l, unsigned i, struct str *bytes, struct err *e)
{
	struct load_job_file *f = l->file;
	if ((!f->is_scanning || f->at > i) && load_job_scan(f, e) < 0)
		return -1;
	bool there = true;
	while (there && f->at <= i) {
		there = sqlscan_next(&f->scan);
		f->at++;
	}
	int64_t checksum;
	if (f->db.failed.code)
		return *e = f->db.failed, -1;
	if (!there || f->scan.damaged || !sqlscan_i64(&f->scan, 0, &checksum))
		return load_job_damaged(f->path, "a rank is missing", e);
	*bytes = sqlscan_str(&f->scan, 1);
	return (uint64_t)checksum == hash_bytes(bytes->p ? bytes->p : "", bytes->n) ? 0 : load_job_damaged(f->path, "a rank does not match its checksum", e);
}

void load_job_close(struct load_job *l)
{
	struct err e;
	if (!l)
		return;
	if (l->file->is_scanning)
		sqlscan_close(&l->file->scan);
	(void)!sqldb_close(&l->file->db, &e);
	arena_release(&l->file->arena);
	mem_free(l->file->path);
	mem_free(l->file);
	mem_free(l->piece);
	mem_free(l);
}
