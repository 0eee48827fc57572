/* Of a program that was built without libcurl: addresses are known, and cannot be read. */
#include "io/remote/remote.h"

static int none_fail(const char *path, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s: this program was built without libcurl, which reads addresses", remote_name(path));
}

struct remote *remote_open(const char *path, struct err *e)
{
	none_fail(path, e);
	return NULL;
}

int remote_is_folder(const char *path, struct err *e)
{
	return none_fail(path, e);
}

int remote_list(const char *folder, remote_list_fn *fn, void *context, struct err *e)
{
	(void)fn;
	(void)context;
	return none_fail(folder, e);
}

/* There is no struct remote, of which these would be asked. */
struct str remote_peek(struct remote *r, size_t n)
{
	(void)r;
	(void)n;
	return (struct str){"", 0};
}

ssize_t remote_read(struct remote *r, char *p, size_t n)
{
	(void)r;
	(void)p;
	(void)n;
	return -1;
}

const char *remote_error(const struct remote *r)
{
	(void)r;
	return NULL;
}

uint64_t remote_bytes(const struct remote *r)
{
	(void)r;
	return 0;
}

int remote_local(struct remote *r, struct buf *path, struct err *e)
{
	(void)r;
	(void)path;
	return none_fail("", e);
}

void remote_stop(struct remote *r)
{
	(void)r;
}

void remote_close(struct remote *r)
{
	(void)r;
}
