#include "record/proc.h"

#include "base/mem.h"
#include "base/sort.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct proc_process {
	pid_t pid, parent;
	bool alive;
};

struct processes {
	struct proc_process *v;
	unsigned n, cap;
};

/* "PID (NAME) STATE PPID ...": the name may hold anything. */
static bool read_stat(pid_t pid, struct proc_process *p)
{
	char path[64], line[1024], state;
	int parent;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
	if (f)
		fclose(f);
	line[n] = 0;
	const char *end = strrchr(line, ')');
	if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2)
		return false;
	*p = (struct proc_process){.pid = pid, .parent = parent, .alive = state != 'Z' && state != 'X'};
	return true;
}

static bool proc_list(struct processes *l)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	struct proc_process p;
	if (!d)
		return false;
	while ((entry = readdir(d)))
		if (isdigit((unsigned char)*entry->d_name) && read_stat(atoi(entry->d_name), &p))
			MEM_PUSH(l->v, l->n, l->cap, p);
	closedir(d);
	return l->n > 0;
}

static void proc_tell(pid_t pid, void (*see)(void *context, pid_t pid, const char *program), void *context)
{
	char link[64], program[PATH_MAX];
	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, program, sizeof program - 1);
	program[n < 0 ? 0 : n] = 0;
	see(context, pid, program);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct proc_process *)a)->pid, y = ((const struct proc_process *)b)->pid;
	return COMPARE(x, y);
}

/* Up the parents; the chain has an end, as the list may be of different moments only in its length. */
static bool descends(const struct processes *l, const struct proc_process *p, pid_t root)
{
	for (unsigned i = 0; p && i <= l->n; i++) {
		if (p->parent == root)
			return true;
		p = bsearch(&(struct proc_process){.pid = p->parent}, l->v, l->n, sizeof *l->v, by_pid);
	}
	return false;
}

bool proc_descendants(pid_t root, void (*see)(void *context, pid_t pid, const char *program), void *context)
{
	struct processes l = {0};
	bool known = proc_list(&l);
	if (known)
		qsort(l.v, l.n, sizeof *l.v, by_pid);
	for (unsigned i = 0; i < l.n; i++)
		if (l.v[i].alive && descends(&l, &l.v[i], root))
			proc_tell(l.v[i].pid, see, context);
	mem_free(l.v);
	return known;
}
