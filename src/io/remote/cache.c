/* Local copies of what must be read by place: CACHE/opscope/remote/ADDRESS-VERSION/NAME, where ADDRESS and VERSION are numbers. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/hash.h"
#include "base/mem.h"
#include "io/atomic.h"
#include "io/remote/own.h"

static int cache_put_root(struct buf *b, struct err *e)
{
	const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (given && *given == '/')
		buf_printf(b, "%s/opscope/remote", given);
	else if (home && *home)
		buf_printf(b, "%s/.cache/opscope/remote", home);
	else
		return err_set(e, ERR_IO, "neither XDG_CACHE_HOME nor HOME says where a copy may lie");
	return 0;
}

/* One kept copy: a folder with a file. */
struct cache_entry {
	struct str folder;
	uint64_t bytes;
	int64_t used_s;
};

struct cache_list {
	struct cache_entry *v;
	size_t n, cap;
	struct arena arena;
};

static void cache_measure(struct cache_entry *x, const char *folder)
{
	struct folder f;
	const char *name;
	if (folder_open(&f, folder))
		while ((name = folder_next(&f))) {
			struct stat st;
			if (fstatat(dirfd(f.d), name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
				continue;
			x->bytes += (uint64_t)st.st_size;
			x->used_s = st.st_mtim.tv_sec > x->used_s ? st.st_mtim.tv_sec : x->used_s;
		}
	folder_close(&f);
}

static void cache_read(struct cache_list *l, const char *root)
{
	struct folder f;
	const char *name;
	if (folder_open(&f, root))
		while ((name = folder_next(&f))) {
			if (strlen(name) != 33 || name[16] != '-')
				continue;
			struct cache_entry x = {.folder = arena_printf(&l->arena, "%s/%s", root, name)};
			cache_measure(&x, x.folder.p);
			MEM_PUSH(l->v, l->n, l->cap, x);
		}
	folder_close(&f);
}

/* Files that others have open stay readable to them. */
static void cache_remove(const char *folder)
{
	struct folder f;
	const char *name;
	if (folder_open(&f, folder))
		while ((name = folder_next(&f)))
			unlinkat(dirfd(f.d), name, 0);
	folder_close(&f);
	rmdir(folder);
}

static int cache_by_use(const void *a, const void *b)
{
	const struct cache_entry *x = a, *y = b;
	return x->used_s < y->used_s ? -1 : x->used_s > y->used_s ? 1 : str_cmp(x->folder, y->folder);
}

/* Sees to room for `bytes` more; `entry` is to be, and other versions of the same address go. */
static void cache_make_room(const char *root, struct str entry, uint64_t bytes)
{
	struct cache_list l = {0};
	uint64_t all = bytes;
	cache_read(&l, root);
	if (l.n)
		qsort(l.v, l.n, sizeof *l.v, cache_by_use);
	for (size_t i = 0; i < l.n; i++)
		all += l.v[i].bytes;
	for (size_t i = 0; i < l.n; i++) {
		const struct str name = {l.v[i].folder.p + strlen(root) + 1, 33};
		if (str_eq(name, entry) || (all <= REMOTE_CACHE_BYTES && memcmp(name.p, entry.p, 17) != 0))
			continue;
		cache_remove(l.v[i].folder.p);
		all -= l.v[i].bytes;
	}
	mem_free(l.v);
	arena_release(&l.arena);
}

static int cache_fill(struct remote *r, const char *path, struct err *e)
{
	enum { PIECE = 128 << 10 };
	struct atomic_file f;
	struct buf piece = {0};
	ssize_t got;
	int rc = 0;
	if (atomic_begin_as(&f, path, 0600, e))
		return -1;
	while (rc == 0 && (got = remote_read(r, buf_room(&piece, PIECE), PIECE)) > 0)
		rc = atomic_write(&f, (struct str){piece.p, (size_t)got}, e);
	if (rc == 0 && got < 0)
		rc = err_set(e, ERR_IO, STR_FMT ": %s", STR_ARG(remote_place_of(r)->name), remote_error(r));
	buf_release(&piece);
	return rc == 0 ? atomic_commit(&f, e) : atomic_abort(&f);
}

/* The last part of the key, or of the address; only what no file system minds. */
static void cache_put_name(struct buf *b, const struct remote *r)
{
	enum { NAME_MOST = 200 };
	const struct remote_place *at = remote_place_of(r);
	struct str name = at->scheme == REMOTE_WEB ? at->name : at->key;
	const char *slash = memrchr(name.p, '/', name.n);
	if (slash)
		name = (struct str){slash + 1, name.n - (size_t)(slash + 1 - name.p)};
	if (name.n > NAME_MOST) /* its end, with the suffix */
		name = (struct str){name.p + name.n - NAME_MOST, NAME_MOST};
	if (!name.n || name.p[0] == '.')
		buf_char(b, '_');
	buf_str(b, name);
}

int remote_local(struct remote *r, struct buf *path, struct err *e)
{
	const struct str address = remote_place_of(r)->name;
	const char *version = remote_version(r);
	struct buf root = {0}, entry = {0};
	struct stat st;
	int rc = cache_put_root(&root, e);
	if (rc < 0)
		return err_prefix(e, STR_FMT, STR_ARG(address));
	buf_end_text(&root);
	buf_printf(&entry, "%016" PRIx64 "-%016" PRIx64, hash_bytes(address.p, address.n), hash_u64(hash_bytes(version, strlen(version)) + remote_bytes(r)));
	buf_printf(path, "%s/" STR_FMT, root.p, STR_ARG(buf_view(&entry)));
	rc = folder_make((buf_end_text(path), path->p), 0700, e);
	buf_char(path, '/');
	cache_put_name(path, r);
	buf_end_text(path);
	const bool there = rc == 0 && *version && remote_bytes(r) && lstat(path->p, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == remote_bytes(r);
	if (there) {
		utimensat(AT_FDCWD, path->p, NULL, 0);
	} else if (rc == 0) {
		cache_make_room(root.p, buf_view(&entry), remote_bytes(r));
		rc = cache_fill(r, path->p, e);
	}
	buf_release(&root);
	buf_release(&entry);
	return rc < 0 ? err_prefix(e, STR_FMT ": its local copy", STR_ARG(address)) : 0;
}
