#include "io/sqlvfs.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITABLE = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE };

struct sqlvfs_file {
	sqlite3_file base;
	int fd;
	int error; /* errno of the last read that failed; 0 = none has */
};

static int file_close(sqlite3_file *f)
{
	close(((struct sqlvfs_file *)f)->fd);
	return SQLITE_OK;
}

/* SQLite expects zeros behind the end. */
static int file_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	struct sqlvfs_file *x = (struct sqlvfs_file *)f;
	int have = 0;
	while (have < n) {
		ssize_t got = pread(x->fd, (char *)to + have, (size_t)(n - have), at + have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			x->error = errno;
			return SQLITE_IOERR_READ;
		}
		if (got == 0)
			break;
		have += (int)got;
	}
	if (have == n)
		return SQLITE_OK;
	memset((char *)to + have, 0, (size_t)(n - have));
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 n)
{
	return SQLITE_READONLY;
}

static int file_sync(sqlite3_file *f, int flags)
{
	return SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *n)
{
	struct stat st;
	struct sqlvfs_file *x = (struct sqlvfs_file *)f;
	if (fstat(x->fd, &st) < 0) {
		x->error = errno;
		return SQLITE_IOERR_FSTAT;
	}
	*n = st.st_size;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *f, int kind)
{
	return SQLITE_OK;
}

static int file_reserved(sqlite3_file *f, int *is)
{
	*is = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int what, void *value)
{
	if (what != SQLITE_FCNTL_LAST_ERRNO)
		return SQLITE_NOTFOUND;
	*(int *)value = ((struct sqlvfs_file *)f)->error;
	return SQLITE_OK;
}

static int file_zero(sqlite3_file *f)
{
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_zero,
	.xDeviceCharacteristics = file_zero,
};

static sqlite3_vfs *system_files, own;

/* What SQLite puts aside while it works is the system's. The names have had their links followed: a link is a WAL of another database. */
static int sqlvfs_open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *got)
{
	struct sqlvfs_file *x = (struct sqlvfs_file *)f;
	if (!name || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)))
		return system_files->xOpen(system_files, name, f, flags, got);
	*x = (struct sqlvfs_file){.fd = file_open_regular(name, O_NOFOLLOW, NULL, NULL)};
	if (x->fd < 0)
		return SQLITE_CANTOPEN;
	x->base.pMethods = &methods;
	if (got)
		*got = (flags & ~WRITABLE) | SQLITE_OPEN_READONLY;
	return SQLITE_OK;
}

static int register_own(void)
{
	system_files = sqlite3_vfs_find("unix");
	if (!system_files)
		return SQLITE_NOMEM;
	own = *system_files;
	own.zName = SQLVFS;
	own.pNext = NULL;
	own.xOpen = sqlvfs_open_file;
	if (own.szOsFile < (int)sizeof(struct sqlvfs_file))
		own.szOsFile = sizeof(struct sqlvfs_file);
	return sqlite3_vfs_register(&own, 0);
}

static bool registered;

/* A library that has this in it may be unloaded, and SQLite stay. */
static void __attribute__((destructor)) unregister_own(void)
{
	if (registered)
		sqlite3_vfs_unregister(&own);
}

bool sqlvfs_register(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	registered = registered || register_own() == SQLITE_OK;
	bool is = registered;
	pthread_mutex_unlock(&lock);
	return is;
}
