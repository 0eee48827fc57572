#include "cli/record.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/now.h"
#include "base/search.h"
#include "base/secret.h"
#include "input/input.h"
#include "io/atomic.h"
#include "io/follow.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A recording tells what a program was given and where it ran: its owner alone may read it. */
enum { MAX_RUN_FILE = 1 << 20, MAX_NUMBER = 100000, DIR_MODE = 0700, FILE_MODE = 0600 };
#define RUN_FILE_START "{\"opscope_run\": 1,\n"
#define RUN_FILE_SUFFIX ".run.json"

/* --- what lies in a run directory ------------------------------------------------------------------------------- */

/* "-DIGITS" at the end of *s is cut off. */
static bool cut_number(struct str *s)
{
	size_t n = s->n;
	while (n && isdigit((unsigned char)s->p[n - 1]))
		n--;
	if (n == s->n || n < 2 || s->p[n - 1] != '-')
		return false;
	s->n = n - 1;
	return true;
}

static bool is_of_process(const char *name, struct str suffix)
{
	struct str s = str_from(name);
	if (!str_ends(s, suffix))
		return false;
	s.n -= suffix.n;
	return cut_number(&s) && cut_number(&s);
}

static bool is_segment(const char *name) { return is_of_process(name, STR(".seg")); }
static bool is_absent(const char *name) { return is_of_process(name, STR(".none")); }

static bool is_run_file(const char *name)
{
	struct str s = str_from(name);
	if (!str_ends(s, STR(RUN_FILE_SUFFIX)))
		return false;
	s.n -= STR(RUN_FILE_SUFFIX).n;
	return cut_number(&s);
}

static bool is_of_nsys(const char *name)
{
	static const char *const names[] = {"nsys.nsys-rep", "nsys.qdrep", "nsys.qdstrm", "nsys.sqlite", "nsys-export.log"};
	return ANY_WHERE(i, 0, sizeof names / sizeof names[0], strcmp(name, names[i]) == 0);
}

static int cli_record_dir_is_capture(const struct dirent *d)
{
	return is_segment(d->d_name) || is_absent(d->d_name) || is_run_file(d->d_name) || is_of_nsys(d->d_name);
}

static unsigned cli_record_dir_count(const char *path, bool (*is)(const char *name))
{
	DIR *d = opendir(path);
	struct dirent *entry;
	unsigned n = 0;
	while (d && (entry = readdir(d)))
		n += is(entry->d_name);
	if (d)
		closedir(d);
	return n;
}

unsigned run_dir_segments(const char *path) { return cli_record_dir_count(path, is_segment); }
unsigned run_dir_absent(const char *path) { return cli_record_dir_count(path, is_absent); }

/* What another recorder of ours leaves there (opscope.on_demand) is found by its name. */
static bool is_recording(const char *name) { return is_segment(name) || str_ends(str_from(name), STR(".pt.trace.json.gz")); }

unsigned run_dir_recordings(const char *path) { return cli_record_dir_count(path, is_recording); }

unsigned run_dir_asked(const char *path, struct buf *list)
{
	struct dirent **entry;
	struct buf folder = {0};
	unsigned found = 0;
	int n = scandir(path, &entry, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		buf_clear(&folder);
		buf_printf(&folder, "%s/%s", path, entry[i]->d_name);
		buf_end_text(&folder);
		bool is = entry[i]->d_name[0] != '.' && run_dir_recordings(folder.p);
		if (is && list)
			buf_printf(list, " %s", folder.p);
		found += is;
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	buf_release(&folder);
	return found;
}

uint64_t run_dir_bytes(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	struct stat st;
	uint64_t bytes = 0;
	while (d && (entry = readdir(d)))
		if (is_segment(entry->d_name) && fstatat(dirfd(d), entry->d_name, &st, 0) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	if (d)
		closedir(d);
	return bytes;
}

/* Of a run file, up to MAX_RUN_FILE bytes; empty when it is none. */
static void read_run_file(const char *dir, const char *name, struct buf *out)
{
	struct buf path = {0};
	buf_clear(out);
	buf_printf(&path, "%s/%s", dir, name);
	buf_end_text(&path);
	struct stat st;
	int fd = file_open_regular(path.p, 0, &st, NULL);
	char piece[4096];
	for (ssize_t n; fd >= 0 && out->n < MAX_RUN_FILE && (n = read(fd, piece, sizeof piece)) > 0;)
		buf_put(out, piece, (size_t)n);
	if (fd >= 0)
		close(fd);
	if (!str_starts(buf_view(out), STR(RUN_FILE_START)))
		buf_clear(out);
	buf_release(&path);
}

/* --- the run file ----------------------------------------------------------------------------------------------- */

static void put_text_line(struct buf *b, const char *key, const char *value)
{
	buf_printf(b, " \"%s\": ", key);
	json_put_string(b, str_from(value));
	buf_cstr(b, ",\n");
}

/* Without the secrets among its words. */
static void put_command(struct buf *b, const struct record_spec *s)
{
	struct buf words = {0};
	for (int i = 0; i < s->argc; i++)
		buf_put(&words, s->argv[i], strlen(s->argv[i]) + 1);
	buf_cstr(b, " \"command\": [");
	size_t n = secret_mask(words.p, words.n);
	for (size_t at = 0; at < n; at += strlen(words.p + at) + 1) {
		buf_cstr(b, at ? ", " : "");
		json_put_string(b, str_from(words.p + at));
	}
	buf_cstr(b, "],\n");
	buf_release(&words);
}

/* wait_status NULL: it runs. Each key has a line of its own, which is how other processes look for it. */
static int write_run_file(const struct run_dir *d, const struct record_options *o, const char *backend, const struct record_job *job,
                          const int *wait_status, struct err *e)
{
	struct buf b = {0};
	char host[MACHINE_NAME_BYTES];
	struct atomic_file f;
	char *cwd = getcwd(NULL, 0);
	machine_name(host, sizeof host);
	buf_cstr(&b, RUN_FILE_START);
	put_text_line(&b, "version", OPSCOPE_VERSION);
	put_text_line(&b, "job", job->id);
	put_text_line(&b, "member", job->member);
	put_text_line(&b, "host", host);
	buf_printf(&b, " \"pid\": %d,\n", (int)getpid());
	put_text_line(&b, "backend", backend);
	put_command(&b, &o->spec);
	put_text_line(&b, "cwd", cwd ? cwd : "");
	buf_printf(&b, " \"start_ns\": %lld,\n", (long long)d->start_ns);
	if (wait_status)
		buf_printf(&b, " \"end_ns\": %lld,\n \"status\": %d}\n", (long long)now_realtime_ns(), launch_status(*wait_status));
	else
		buf_cstr(&b, " \"end_ns\": null,\n \"status\": null}\n");
	free(cwd);
	int rc = atomic_begin(&f, d->run_file.p, e);
	if (rc == 0)
		rc = fchmod(f.fd, FILE_MODE) < 0 || atomic_write(&f, buf_view(&b), e) ? atomic_abort(&f) : atomic_commit(&f, e);
	buf_release(&b);
	return rc;
}

static bool has_line(const struct buf *file, const char *key, const char *value)
{
	struct buf line = {0};
	buf_char(&line, '\n');
	put_text_line(&line, key, value);
	bool has = str_has(buf_view(file), buf_view(&line));
	buf_release(&line);
	return has;
}

/* The process that wrote it may have been killed: then it has no end, and is not there. */
static bool is_live(const struct buf *file)
{
	char host[MACHINE_NAME_BYTES];
	ptrdiff_t at = str_find(buf_view(file), STR("\n \"pid\": "));
	if (!str_has(buf_view(file), STR("\n \"end_ns\": null")) || at < 0)
		return false;
	machine_name(host, sizeof host);
	if (!has_line(file, "host", host))
		return true; /* that of another machine is not known */
	return machine_process_lives(atoi(file->p + at + 9), 0);
}

static bool any_run(const char *path, bool live)
{
	struct buf file = {0};
	DIR *d = opendir(path);
	struct dirent *entry;
	bool any = false;
	while (d && !any && (entry = readdir(d))) {
		if (!is_run_file(entry->d_name))
			continue;
		read_run_file(path, entry->d_name, &file);
		any = file.n && (!live || is_live(&file));
	}
	if (d)
		closedir(d);
	buf_release(&file);
	return any;
}

bool run_dir_has_run(const char *path)
{
	return any_run(path, false);
}

int64_t run_dir_start(const char *path)
{
	const struct str key = STR("\n \"start_ns\": ");
	struct buf file = {0};
	DIR *d = opendir(path);
	struct dirent *entry;
	int64_t first = 0;
	while (d && (entry = readdir(d))) {
		if (!is_run_file(entry->d_name))
			continue;
		read_run_file(path, entry->d_name, &file);
		ptrdiff_t at = str_find(buf_view(&file), key);
		int64_t start = at < 0 ? 0 : strtoll(file.p + at + key.n, NULL, 10);
		first = start > 0 && (!first || start < first) ? start : first;
	}
	if (d)
		closedir(d);
	buf_release(&file);
	return first;
}

/* Whether a process that was recorded is still there: who recorded it may have been killed. */
static bool any_process(const char *path)
{
	struct buf file = {0};
	DIR *d = opendir(path);
	struct dirent *entry;
	bool any = false;
	while (d && !any && (entry = readdir(d))) {
		if (!is_segment(entry->d_name))
			continue;
		buf_clear(&file);
		buf_printf(&file, "%s/%s", path, entry->d_name);
		buf_end_text(&file);
		struct err unread;
		struct stat st;
		bool is_file = stat(file.p, &st) == 0 && S_ISREG(st.st_mode); /* a FIFO would be waited for */
		const struct input *i = is_file ? input_recognise(file.p, &unread) : NULL;
		any = i && i->lives && i->lives(file.p);
	}
	if (d)
		closedir(d);
	buf_release(&file);
	return any;
}

bool run_dir_is_live(const char *path)
{
	return any_run(path, true) || any_process(path);
}

/* --- captures that are there already ---------------------------------------------------------------------------- */

struct contents {
	unsigned captures;
	unsigned same_job;   /* run files of other members of our job */
	unsigned same_member; /* of ourselves */
	unsigned strange;    /* files named like those of nsys, without a run file */
};

static void cli_record_dir_look(const char *path, const struct record_job *job, struct contents *c)
{
	struct dirent **entry;
	struct buf file = {0};
	unsigned of_nsys = 0, runs = 0;
	*c = (struct contents){0};
	int n = scandir(path, &entry, cli_record_dir_is_capture, alphasort);
	for (int i = 0; i < n; i++) {
		c->captures++;
		of_nsys += is_of_nsys(entry[i]->d_name);
		if (is_run_file(entry[i]->d_name)) {
			read_run_file(path, entry[i]->d_name, &file);
			bool same = *job->id && has_line(&file, "job", job->id), self = same && has_line(&file, "member", job->member);
			runs += file.n > 0;
			c->same_job += same && !self;
			c->same_member += self;
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	c->strange = runs ? 0 : of_nsys;
	buf_release(&file);
}

static void remove_captures(const char *path)
{
	struct dirent **entry;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = scandir(path, &entry, cli_record_dir_is_capture, alphasort);
	for (int i = 0; i < n; i++) {
		if (dir >= 0)
			unlinkat(dir, entry[i]->d_name, 0);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	if (dir >= 0)
		close(dir);
}

/* Ranks of one job join; everything else must be gone first. */
static int cli_record_dir_make_room(const char *path, const struct record_options *o, const struct record_job *job, struct err *e)
{
	struct contents c;
	cli_record_dir_look(path, job, &c);
	if (!c.captures || (c.same_job && !c.same_member))
		return 0;
	if (c.strange)
		return err_set(e, ERR_DATA, "%s: files of nsys are there that opscope record did not write: choose another directory", path);
	if (!o->force)
		return err_set(e, ERR_DATA, "%s: there are captures already: --force removes them, --output=NAME chooses another directory%s", path,
		               job->has_rank && !*job->id ? "; ranks of one job share one when OPSCOPE_JOB names the job" : "");
	remove_captures(path);
	return 0;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* What is recorded goes to where the path leads, and --force removes captures there. A directory that nobody named is there already: opscope made it for this user, or another user
 * laid a trap. */
static int check_hidden(const char *path, struct err *e)
{
	struct stat st;
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		return 0;
	return err_set(e, ERR_IO, "%s: a directory of your own was expected where the run is recorded: remove it, or choose another --output=NAME", path);
}

/* Ranks of one job share it. */
static int check_of_job(const char *path, struct err *e)
{
	struct stat st;
	if (lstat(path, &st) == 0 && follow_may_touch(path, st.st_uid))
		return 0;
	return err_set(e, ERR_IO, "%s: another user's, in a folder where everyone may write: --output=DIR chooses another place", path);
}

static int check_asked(const char *path, struct err *e)
{
	char *end;
	struct stat st;
	enum followed found = follow_links(path, &end, &st, e);
	mem_free(end);
	return found == FOLLOWED_FAILED ? err_prefix(e, "--output") : 0;
}

/* The first of opscope-1, opscope-2, ... that is not there; of a job, opscope-JOB. */
static int make_default(struct run_dir *d, const struct record_job *job, struct err *e)
{
	for (int i = 1; i <= MAX_NUMBER; i++) {
		buf_clear(&d->path);
		if (*job->id)
			buf_printf(&d->path, "opscope-%s", job->id);
		else
			buf_printf(&d->path, "opscope-%d", i);
		for (size_t k = 0; k < d->path.n; k++)
			if (!isalnum((unsigned char)d->path.p[k]) && !strchr("-._", d->path.p[k]))
				d->path.p[k] = '_';
		buf_end_text(&d->path);
		d->made = mkdir(d->path.p, DIR_MODE) == 0;
		if (d->made)
			return 0;
		if (*job->id && errno == EEXIST)
			return check_of_job(d->path.p, e);
		if (errno != EEXIST)
			break;
	}
	return err_set(e, ERR_IO, "cannot make the run directory %s: %s; --output=DIR chooses another place", d->path.p, strerror(errno));
}

static int check_into(struct run_dir *d, const struct record_options *o, const struct record_job *job, struct err *e)
{
	struct stat st;
	if (job->has_rank)
		return err_set(e, ERR_USAGE, "--output=%s: the ranks of a job share a directory; `opscope import DIR -o %s` makes a file of it", o->output, o->output);
	if (stat(o->output, &st) == 0 && !o->force)
		return err_set(e, ERR_DATA, "%s is there already: --force replaces it, --output=NAME chooses another name", o->output);
	buf_cstr(&d->into, o->output);
	buf_end_text(&d->into);
	return 0;
}

static int make_asked(struct run_dir *d, const struct record_options *o, const struct record_job *job, struct err *e)
{
	struct stat st;
	bool into = str_ends(str_from(o->output), STR(".opscope")) && !(stat(o->output, &st) == 0 && S_ISDIR(st.st_mode));
	if (into && check_into(d, o, job, e) < 0)
		return -1;
	buf_printf(&d->path, into ? "%s.run" : "%s", o->output);
	while (d->path.n > 1 && d->path.p[d->path.n - 1] == '/') /* a link with a '/' behind it would be looked through */
		d->path.n--;
	buf_end_text(&d->path);
	bool exists = mkdir(d->path.p, DIR_MODE) < 0 && errno == EEXIST;
	d->made = !exists;
	if (exists && (into ? check_hidden(d->path.p, e) : check_asked(d->path.p, e)) < 0)
		return -1;
	return folder_make(d->path.p, DIR_MODE, e) < 0 ? err_prefix(e, "--output") : 0;
}

static void make_absolute(struct run_dir *d)
{
	char *real = realpath(d->path.p, NULL);
	if (real) {
		buf_clear(&d->path);
		buf_cstr(&d->path, real);
		buf_end_text(&d->path);
	}
	free(real);
}

/* Held by one rank at a time, so that --force of the one does not remove what the other has just written. Where the file system has no locks, it is
 * done without. */
static int lock(const struct run_dir *d, const struct record_job *job)
{
	struct buf path = {0};
	if (!*job->id)
		return -1;
	buf_printf(&path, "%s/.lock", d->path.p);
	buf_end_text(&path);
	int fd = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
	while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	buf_release(&path);
	return fd;
}

/* Who asks hears the path of the run directory in a line of text. */
static int check_line(const struct run_dir *d, struct err *e)
{
	for (size_t i = 0; i < d->path.n && d->path.p[i]; i++)
		if (iscntrl((unsigned char)d->path.p[i]))
			return err_set(e, ERR_DATA, "%s: the run directory has a control character (a newline, say) in its path: nobody could ask for a recording; --output=DIR chooses another one", d->path.p);
	return 0;
}

int run_dir_open(struct run_dir *d, const struct record_options *o, const char *backend, const struct record_job *job, struct err *e)
{
	char host[MACHINE_NAME_BYTES];
	*d = (struct run_dir){.start_ns = now_realtime_ns()};
	if ((o->output ? make_asked(d, o, job, e) : make_default(d, job, e)) < 0)
		return -1;
	make_absolute(d);
	if (o->on_demand && check_line(d, e) < 0) {
		if (d->made)
			rmdir(d->path.p);
		return -1;
	}
	machine_name(host, sizeof host);
	buf_printf(&d->run_file, "%s/%s-%d" RUN_FILE_SUFFIX, d->path.p, host, (int)getpid());
	buf_end_text(&d->run_file);
	int fd = lock(d, job);
	d->made &= !*job->id; /* other ranks may be about to use it */
	int rc = cli_record_dir_make_room(d->path.p, o, job, e);
	if (rc == 0)
		rc = write_run_file(d, o, backend, job, NULL, e);
	if (fd >= 0)
		close(fd);
	return rc;
}

int run_dir_end(const struct run_dir *d, const struct record_options *o, const char *backend, const struct record_job *job, int wait_status, struct err *e)
{
	return write_run_file(d, o, backend, job, &wait_status, e);
}

/* Besides run files. */
static bool cli_record_dir_has_any(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	bool any = false;
	while (d && !any && (entry = readdir(d)))
		any = is_segment(entry->d_name) || is_of_nsys(entry->d_name);
	if (d)
		closedir(d);
	return any;
}

void run_dir_forget(const struct run_dir *d)
{
	if (cli_record_dir_has_any(d->path.p) || run_dir_asked(d->path.p, NULL))
		return;
	unlink(d->run_file.p);
	if (d->made)
		rmdir(d->path.p);
}

void run_dir_remove(const struct run_dir *d)
{
	remove_captures(d->path.p);
	if (d->made)
		rmdir(d->path.p);
}

void run_dir_release(struct run_dir *d)
{
	buf_release(&d->path);
	buf_release(&d->run_file);
	buf_release(&d->into);
}
