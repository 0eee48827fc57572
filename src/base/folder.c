#include "base/folder.h"

#include "base/buf.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_one(const char *path, mode_t mode, struct err *e)
{
	struct stat st;
	if (mkdir(path, mode) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, ERR_IO, "cannot make %s: %s", path, errno == EEXIST ? "it is no folder" : strerror(errno));
}

static void folder_close_it(void *f)
{
	folder_close(f);
}

bool folder_open(struct folder *f, const char *path)
{
	*f = (struct folder){.d = opendir(path)};
	f->error = f->d ? 0 : errno;
	if (f->error == ENOMEM)
		mem_fail(0);
	mem_undo_begin(&f->undo, folder_close_it, f);
	return f->d != NULL;
}

const char *folder_next(struct folder *f)
{
	errno = 0;
	struct dirent *e = f->d ? readdir(f->d) : NULL;
	if (f->d)
		f->error = errno;
	return e ? e->d_name : NULL;
}

void folder_close(struct folder *f)
{
	mem_undo_end(&f->undo);
	if (f->d)
		closedir(f->d);
	f->d = NULL;
}

int folder_make(const char *path, mode_t mode, struct err *e)
{
	struct buf b = {0};
	int rc = 0;
	buf_cstr(&b, path);
	while (b.n > 1 && b.p[b.n - 1] == '/')
		b.n--;
	buf_char(&b, 0);
	for (size_t i = 1; i < b.n && rc == 0; i++) {
		char was = b.p[i];
		if (was && was != '/')
			continue;
		b.p[i] = 0;
		rc = make_one(b.p, was ? 0777 : mode, e);
		b.p[i] = was;
	}
	buf_release(&b);
	if (rc == 0 && access(path, W_OK | X_OK) < 0)
		return err_set(e, ERR_IO, "cannot write to %s: %s", path, strerror(errno));
	return rc;
}
