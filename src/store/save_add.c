/* Adding to an .opscope file. Everything happens in a copy beside it, which then takes its place: readers, who open the file as one that
 * does not change, never see half of it, and neither a crash nor a full disk can harm it. */
#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/load.h"
#include "store/save_work.h"
#include "store/vtab.h"

static int save_add_fail(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s: %s", path, what, errno == ENOSPC ? "no space left" : strerror(errno));
}

/* Opens the file and waits for its lock. Whoever had it may have put another file in its place. */
static int lock_file(const char *path, struct err *e)
{
	struct stat is, was;
	for (;;) {
		int fd = file_open_regular(path, 0, NULL, e), rc;
		if (fd < 0)
			return -1;
		while ((rc = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
			;
		if (rc < 0 && errno != ENOLCK && errno != EOPNOTSUPP) {
			save_add_fail(path, "cannot lock", e);
			close(fd);
			return -1;
		}
		if (fstat(fd, &was) == 0 && stat(path, &is) == 0 && is.st_dev == was.st_dev && is.st_ino == was.st_ino)
			return fd;
		close(fd);
	}
}

/* Another program's unfinished transaction would be lost. */
static int refuse_journal(const char *path, struct err *e)
{
	static const char *const ends[] = {"-wal", "-journal"};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		struct buf name = {0};
		struct stat st;
		buf_printf(&name, "%s%s", path, ends[i]);
		buf_char(&name, 0);
		bool there = stat(name.p, &st) == 0 && st.st_size > 0;
		buf_release(&name);
		if (there)
			return err_set(e, ERR_IO, "%s: %s%s lies beside it: another program is writing to it, or was stopped while it did", path, path, ends[i]);
	}
	return 0;
}

static int copy_bytes(int from, int to, const char *path, struct err *e)
{
	enum { PIECE = 1 << 20 };
	ssize_t n;
	while ((n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0)) > 0 || (n < 0 && errno == EINTR))
		;
	if (n == 0)
		return 0;
	if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP && errno != EBADF)
		return save_add_fail(path, "cannot copy", e);
	char *bytes = mem_alloc(PIECE, 1);
	while ((n = read(from, bytes, PIECE)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && fd_write_all(to, (struct str){bytes, (size_t)n}) < 0) {
			n = -1;
			break;
		}
	mem_free(bytes);
	return n == 0 ? 0 : save_add_fail(path, "cannot copy", e);
}

static int query_int(struct save *s, const char *sql, int64_t *v, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, sql, e);
	int rc = st ? sqlite3_step(st) : SQLITE_ERROR;
	*v = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	if (st && rc != SQLITE_ROW && rc != SQLITE_DONE)
		save_fail(s, e);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

/* Nothing that a stranger wrote into the schema runs. */
static int open_copy(struct save *s, struct err *e)
{
	static const struct { int what, on; } settings[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	};
	if (save_open(s, e))
		return -1;
	if (save_run(s, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=OFF", e))
		return -1;
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		sqlite3_db_config(s->db, settings[i].what, settings[i].on, NULL);
	return save_run(s, "BEGIN", e);
}

/* Is it still the data that the profile holds? */
static int check_content(struct save *s, const struct profile *p, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "SELECT id, checksum FROM store_chunk ORDER BY id", e);
	uint64_t content = 0;
	int rc = SQLITE_ERROR;
	while (st && (rc = sqlite3_step(st)) == SQLITE_ROW)
		content = load_content(content, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1));
	if (st && rc != SQLITE_DONE)
		save_fail(s, e);
	sqlite3_finalize(st);
	if (rc != SQLITE_DONE)
		return -1;
	return content == p->content ? 0 : err_set(e, ERR_DATA, "%s: other data has taken its place meanwhile: open it again", s->file.path);
}

/* All rows so far are those of aggregation 1. */
static int upgrade(struct save *s, struct err *e)
{
	struct buf names = {0}, sql = {0};
	struct table none;
	char program[AGGREGATION_TEXT_MAX + 1] = "";
	sqlite3_stmt *st = save_prepare(s, "SELECT value FROM meta WHERE key='opscope'", e);
	if (st && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		snprintf(program, sizeof program, "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	int rc = st ? save_report_tables(s, &names, e) : -1;
	for (size_t i = 0; !rc && i < names.n; i += strlen(names.p + i) + 1) {
		table_init(&none, "", "");
		TABLE_COLUMN(&none, .id = "aggregation", .title = "", .type = CELL_I64);
		rc = save_table(s, names.p + i, &none, ID_NONE, e);
		table_release(&none);
		buf_clear(&sql);
		buf_cstr(&sql, "UPDATE ");
		vtab_put_name(&sql, names.p + i);
		buf_cstr(&sql, " SET aggregation=1");
		buf_char(&sql, 0);
		rc = rc ? rc : save_run(s, sql.p, e);
	}
	struct aggregation first = load_first_aggregation(str_from(program));
	rc = rc ? rc : save_aggregation(s, &first, e);
	rc = rc ? rc : save_fact(s, "version_original", (struct str){0}, 1, e);
	buf_release(&names);
	buf_release(&sql);
	return rc;
}

static int check_and_upgrade(struct save *s, const struct profile *p, struct err *e)
{
	int64_t id, version, last = 0;
	char sql[64];
	if (query_int(s, "PRAGMA application_id", &id, e) || query_int(s, "PRAGMA user_version", &version, e))
		return -1;
	if (id != SAVE_APPLICATION_ID)
		return err_set(e, ERR_FORMAT, "%s: not an .opscope file: `opscope import` makes them", s->file.path);
	if (load_check_version(version, s->file.path, e) || check_content(s, p, e))
		return -1;
	if (query_int(s, "SELECT count(*) FROM sqlite_schema WHERE name='meta' AND sql='" SAVE_META "'", &id, e))
		return -1;
	if (!id)
		return err_set(e, ERR_FORMAT, "%s: the table meta is not as opscope makes it: import the trace again", s->file.path);
	if (version < SAVE_VERSION_LIST && upgrade(s, e))
		return -1;
	if (version < SAVE_VERSION_PACKED && save_run(s, "ALTER TABLE store_chunk ADD COLUMN packing INTEGER", e))
		return -1;
	if (query_int(s, "SELECT value FROM meta WHERE key='last_aggregation'", &last, e))
		return -1;
	s->last_id = last > 0 && last < INT64_MAX ? last : 0;
	for (unsigned i = 0; i < p->n_aggregations; i++)
		s->last_id = p->aggregation[i].id > s->last_id ? p->aggregation[i].id : s->last_id;
	snprintf(sql, sizeof sql, "PRAGMA user_version=%d", SAVE_VERSION);
	return save_run(s, sql, e) || save_fact(s, "opscope_current", STR(OPSCOPE_VERSION), 0, e) ? -1 : 0;
}

struct save *save_add(const char *path, const struct profile *p, struct err *e)
{
	struct save *s = NEW(struct save);
	s->lock_fd = -1;
	save_undo_begin(s);
	s->lock_fd = lock_file(path, e);
	if (s->lock_fd < 0 || refuse_journal(path, e) || atomic_begin(&s->file, path, e)) {
		save_release(s);
		return NULL;
	}
	if (copy_bytes(s->lock_fd, s->file.fd, path, e) || open_copy(s, e) || check_and_upgrade(s, p, e)) {
		save_abort(s);
		return NULL;
	}
	return s;
}
