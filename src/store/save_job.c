#include "store/save_job.h"

#include "base/hash.h"
#include "store/save_work.h"

struct save *save_job_begin(const char *path, mode_t mode, struct str input, struct err *e)
{
	struct save *s = save_begin_tables(path, mode, 0, SAVE_JOB_APPLICATION_ID, SAVE_JOB_VERSION,
	                                   SAVE_META "; CREATE TABLE " SAVE_JOB_PIECES "(id INTEGER PRIMARY KEY, recording TEXT, rank INTEGER, checksum INTEGER, data BLOB)", e);
	if (s && (save_fact(s, "opscope", STR(OPSCOPE_VERSION), 0, e) || save_fact(s, "input", input, 0, e))) {
		save_abort(s);
		return NULL;
	}
	return s;
}

int save_job_piece(struct save *s, struct str recording, int64_t rank, struct str bytes, struct err *e)
{
	sqlite3_stmt *st = save_prepare(s, "INSERT INTO " SAVE_JOB_PIECES " VALUES(NULL, ?1, ?2, ?3, ?4)", e);
	if (!st)
		return -1;
	save_bind_str(st, 1, recording);
	sqlite3_bind_int64(st, 2, rank);
	sqlite3_bind_int64(st, 3, (int64_t)hash_bytes(bytes.p, bytes.n));
	sqlite3_bind_blob64(st, 4, bytes.p, bytes.n, SQLITE_STATIC);
	int rc = save_step(s, st, e);
	sqlite3_finalize(st);
	return rc;
}
