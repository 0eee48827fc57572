#include "base/program.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int program_look(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return errno == EACCES ? EACCES : ENOENT;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

static void put_z(struct buf *b, struct str s)
{
	buf_str(b, s);
	buf_end_text(b);
}

int program_find(const char *name, struct buf *path)
{
	struct buf own = {0}, *b = path ? path : &own;
	const char *given = getenv("PATH");
	struct str dirs = str_from(given ? given : "/bin:/usr/bin"), dir;
	int why = *name ? ENOENT : EINVAL;
	buf_clear(b);
	if (strchr(name, '/')) {
		put_z(b, str_from(name));
		why = program_look(b->p);
	} else if (*name) {
		while (why && str_split(&dirs, ':', &dir)) {
			buf_clear(b);
			buf_str(b, dir.n ? dir : STR("."));
			buf_char(b, '/');
			put_z(b, str_from(name));
			int rc = program_look(b->p);
			why = rc == 0 ? 0 : why == EACCES ? why : rc;
		}
	}
	buf_release(&own);
	return why == EINVAL ? ENOENT : why;
}
