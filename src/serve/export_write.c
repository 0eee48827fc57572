#include "serve/export_write.h"

#include "base/mem.h"
#include "io/atomic.h"
#include "io/left.h"
#include "serve/assets.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int serve_export_write_fail(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* 1: holds something; 0: empty; -1: ERR_IO. */
static int holds_something(const char *path, struct err *e)
{
	DIR *d = opendir(path);
	if (!d)
		return serve_export_write_fail(path, "cannot be read", e);
	int found = 0;
	for (struct dirent *x = readdir(d); x && !found; x = readdir(d))
		found = strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0;
	closedir(d);
	return found;
}

/* The folder that `path` stands in, without slashes at the end; "." when it names none. */
static struct str serve_export_write_folder_of(const char *path, struct buf *b)
{
	struct str s = str_from(path);
	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	while (s.n && s.p[s.n - 1] != '/')
		s.n--;
	buf_str(b, s.n ? s : STR("./"));
	buf_char(b, 0);
	return (struct str){b->p, b->n - 1};
}

static int check_folder(const char *out, struct err *e)
{
	struct buf b = {0};
	struct str folder = serve_export_write_folder_of(out, &b);
	int rc = access(folder.p, W_OK | X_OK) < 0 ? serve_export_write_fail(out, "cannot create", e) : 0;
	buf_release(&b);
	return rc;
}

struct pages {
	const struct asset *script, *style, *icon;
};

static int find_pages(struct pages *p, struct err *e)
{
	*p = (struct pages){asset_of("/main.js"), asset_of("/main.css"), asset_of("/icon.svg")};
	return p->script && p->style && p->icon ? 0 : err_set(e, ERR_LIMIT, "this opscope was built without the viewer's pages (npm was not there)");
}

int export_check(const char *out, bool force, bool *directory, struct err *e)
{
	struct str path = str_from(out);
	struct stat st;
	struct pages pages;
	bool exists = stat(out, &st) == 0;
	bool html = str_ends(path, STR(".html")) || str_ends(path, STR(".htm"));
	if (!path.n)
		return err_set(e, ERR_USAGE, "--export: a directory or a file NAME.html was expected");
	*directory = exists ? S_ISDIR(st.st_mode) : !html;
	if (exists && !*directory && !html)
		return err_set(e, ERR_USAGE, "%s: not a directory; a directory or a file NAME.html was expected", out);
	if (find_pages(&pages, e) < 0)
		return -1;
	if (!exists || !*directory)
		return check_folder(out, e);
	int found = holds_something(out, e);
	if (found > 0 && !force)
		return err_set(e, ERR_USAGE, "%s: the directory is not empty; --force writes into it", out);
	return found < 0 ? -1 : access(out, W_OK | X_OK) < 0 ? serve_export_write_fail(out, "cannot create", e) : 0;
}

void export_block_name(const struct export_block *k, struct buf *out)
{
	buf_printf(out, "data-%016llx.js", (unsigned long long)k->hash);
}

/* The page up to where blocks may follow. Its one script is named by its hash: nothing else on the page can run, and scripts of a directory
 * only because that one asks for them. */
static int serve_export_write_put_head(struct buf *b, bool directory, struct err *e)
{
	struct pages p;
	struct buf text = {0};
	if (find_pages(&p, e) < 0)
		return -1;
	buf_cstr(b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
	buf_printf(b, "script-src 'sha256-%s'%s; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'\">\n",
	           p.script->sha256, directory ? " 'strict-dynamic'" : "");
	buf_cstr(b, "<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>opscope</title>\n");
	int rc = asset_unpack(p.icon, &text);
	buf_cstr(b, "<link rel=\"icon\" href=\"data:image/svg+xml;base64,");
	export_base64(buf_view(&text), b);
	buf_cstr(b, "\">\n<style>");
	rc |= asset_unpack(p.style, b);
	buf_cstr(b, "</style>\n<body>\n<noscript>This report is drawn by a script, which this browser does not run.</noscript>\n<script type=\"module\">");
	rc |= asset_unpack(p.script, b);
	buf_cstr(b, "</script>\n");
	buf_release(&text);
	return rc < 0 ? err_set(e, ERR_LIMIT, "the viewer's pages in this opscope are damaged") : 0;
}

/* A block as it stands in the page. */
static void serve_export_write_put_inline(struct buf *b, const char *id, struct str text)
{
	buf_printf(b, "<script type=\"text/plain\" id=\"opscope-%s\">", id);
	buf_str(b, text);
	buf_cstr(b, "</script>\n");
}

static int serve_export_write_put_page(struct buf *b, bool directory, const struct export_pack *x, struct str index, struct err *e)
{
	if (serve_export_write_put_head(b, directory, e) < 0)
		return -1;
	for (unsigned i = 0; i < x->n && !directory; i++) {
		char id[16];
		snprintf(id, sizeof id, "%u", i);
		serve_export_write_put_inline(b, id, buf_view(&x->block[i].text));
	}
	serve_export_write_put_inline(b, "index", index);
	buf_cstr(b, "</body>\n</html>\n");
	return 0;
}

/* ERR_IO. */
static int serve_export_write_file(const char *path, struct str text, struct err *e)
{
	struct atomic_file f;
	if (atomic_begin(&f, path, e) < 0)
		return -1;
	return atomic_write(&f, text, e) < 0 ? atomic_abort(&f) : atomic_commit(&f, e);
}

static struct str path_in(const char *folder, struct str name, struct buf *b)
{
	buf_clear(b);
	buf_cstr(b, folder);
	buf_char(b, '/');
	buf_str(b, name);
	buf_char(b, 0);
	return (struct str){b->p, b->n - 1};
}

static int write_block(const char *path, const struct export_block *k, struct str name, uint64_t *bytes, struct err *e)
{
	struct buf text = {0};
	buf_printf(&text, "opscopeBlock(\"" STR_FMT "\",\"", STR_ARG(name));
	buf_str(&text, buf_view(&k->text));
	buf_cstr(&text, "\");\n");
	int rc = serve_export_write_file(path, buf_view(&text), e);
	*bytes += text.n;
	buf_release(&text);
	return rc;
}

static bool is_ours(const char *name)
{
	return strlen(name) == strlen("data-0123456789abcdef.js") && strncmp(name, "data-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == 16 &&
	       strcmp(name + 21, ".js") == 0;
}

static bool serve_export_write_is_of(const struct export_pack *x, const char *file)
{
	bool found = false;
	for (unsigned i = 0; i < x->n && !found; i++) {
		struct buf name = {0};
		export_block_name(&x->block[i], &name);
		found = str_eqc(buf_view(&name), file);
		buf_release(&name);
	}
	return found;
}

static bool serve_export_write_is_same(const char *path, const struct stat *file)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

bool export_replaces(const char *out, bool directory, const struct stat *file)
{
	DIR *d = directory ? opendir(out) : NULL;
	struct buf path = {0};
	bool found = !directory && serve_export_write_is_same(out, file);
	for (struct dirent *f = d ? readdir(d) : NULL; f && !found; f = readdir(d))
		found = (strcmp(f->d_name, "index.html") == 0 || is_ours(f->d_name)) && serve_export_write_is_same(path_in(out, str_from(f->d_name), &path).p, file);
	buf_release(&path);
	if (d)
		closedir(d);
	return found;
}

/* Blocks in the folder that are not of *x: of the report that stood there. */
static void remove_old_blocks(const char *folder, const struct export_pack *x)
{
	DIR *d = opendir(folder);
	struct buf path = {0};
	for (struct dirent *f = d ? readdir(d) : NULL; f; f = readdir(d))
		if (is_ours(f->d_name) && !serve_export_write_is_of(x, f->d_name))
			unlink(path_in(folder, str_from(f->d_name), &path).p);
	buf_release(&path);
	if (d)
		closedir(d);
}

static void serve_export_write_put_ends(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigaddset(ends, SIGHUP);
}

/* Whether a signal waits for the end of write_folder. */
static bool is_interrupted(void)
{
	sigset_t pending, ends, both;
	serve_export_write_put_ends(&ends);
	return sigpending(&pending) == 0 && sigandset(&both, &pending, &ends) == 0 && !sigisemptyset(&both);
}

/* When it fails, the folder is as it was. */
static int serve_export_write_fill(const char *folder, const struct export_pack *x, struct str page, uint64_t *bytes, struct err *e)
{
	struct buf path = {0};
	uint8_t *made = NEW_ARRAY(x->n + 1, uint8_t);
	int rc = 0;
	for (unsigned i = 0; i < x->n && rc == 0; i++) {
		struct buf name = {0};
		export_block_name(&x->block[i], &name);
		const char *at = path_in(folder, buf_view(&name), &path).p;
		made[i] = access(at, F_OK) < 0;
		rc = is_interrupted() ? err_set(e, ERR_IO, "%s: interrupted", folder) : write_block(at, &x->block[i], buf_view(&name), bytes, e);
		buf_release(&name);
	}
	if (rc == 0)
		rc = serve_export_write_file(path_in(folder, STR("index.html"), &path).p, page, e);
	*bytes += page.n;
	for (unsigned i = 0; i < x->n && rc < 0; i++) {
		struct buf name = {0};
		export_block_name(&x->block[i], &name);
		if (made[i])
			unlink(path_in(folder, buf_view(&name), &path).p);
		buf_release(&name);
	}
	mem_free(made);
	buf_release(&path);
	return rc;
}

/* Beside its place, and then renamed to it. */
static int serve_export_write_make_folder(const char *out, const struct export_pack *x, struct str page, uint64_t *bytes, struct err *e)
{
	struct buf b = {0}, path = {0};
	char *made;
	int fd = left_make_folder(serve_export_write_folder_of(out, &b).p, &made), rc = fd < 0 ? serve_export_write_fail(out, "cannot create", e) : 0;
	buf_release(&b);
	if (fd < 0)
		return rc;
	mode_t mask = umask(0);
	umask(mask);
	rc = serve_export_write_fill(made, x, page, bytes, e);
	if (rc == 0 && (chmod(made, 0777 & ~mask) < 0 || rename(made, out) < 0)) {
		rc = serve_export_write_fail(out, "cannot create", e);
		remove_old_blocks(made, &(struct export_pack){0});
		unlink(path_in(made, STR("index.html"), &path).p);
	}
	if (rc < 0)
		rmdir(made);
	close(fd);
	buf_release(&path);
	mem_free(made);
	return rc;
}

/* A report that stands there does so until the new page does; then its blocks go. */
static int renew_folder(const char *out, const struct export_pack *x, struct str page, uint64_t *bytes, struct err *e)
{
	int rc = serve_export_write_fill(out, x, page, bytes, e);
	if (rc == 0)
		remove_old_blocks(out, x);
	return rc;
}

/* An interruption waits for the file that is being written, and leaves nothing behind. */
static int write_folder(const char *out, const struct export_pack *x, struct str page, uint64_t *bytes, struct err *e)
{
	sigset_t wait, before;
	serve_export_write_put_ends(&wait);
	pthread_sigmask(SIG_BLOCK, &wait, &before);
	int rc = access(out, F_OK) == 0 ? renew_folder(out, x, page, bytes, e) : serve_export_write_make_folder(out, x, page, bytes, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int export_write(const char *out, bool directory, const struct export_pack *x, struct str index, uint64_t *bytes, struct err *e)
{
	struct buf page = {0};
	*bytes = 0;
	int rc = serve_export_write_put_page(&page, directory, x, index, e);
	if (rc == 0)
		rc = directory ? write_folder(out, x, buf_view(&page), bytes, e) : serve_export_write_file(out, buf_view(&page), e);
	*bytes += directory ? 0 : page.n;
	buf_release(&page);
	return rc;
}
