#include "io/memory_limit.h"

#include "base/str.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t memory_limit_least(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* The number in a file; 0 = none: there is no such file, or it says "max". */
static uint64_t memory_limit_number_in(const char *path)
{
	char text[32] = "";
	int64_t n;
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	struct str s = {text, fread(text, 1, sizeof text - 1, f)};
	fclose(f);
	while (s.n && s.p[s.n - 1] == '\n')
		s.n--;
	return str_to_i64(s, &n) && n > 0 ? (uint64_t)n : 0;
}

/* Of a group and of all that it is in. In a container the path may be the one outside, of which only the top is to be seen. */
static uint64_t limit_of_group(const char *root, const char *mount, struct str group, const char *file)
{
	uint64_t limit = 0;
	char path[PATH_MAX];
	for (;;) {
		while (group.n && group.p[group.n - 1] == '/')
			group.n--;
		snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s" STR_FMT "/%s", root, mount, STR_ARG(group), file);
		limit = memory_limit_least(limit, memory_limit_number_in(path));
		if (!group.n)
			return limit;
		while (group.n && group.p[group.n - 1] != '/')
			group.n--;
	}
}

/* A line of /proc/self/cgroup: "4:cpu,memory:/a/b", or "0::/a/b" of version 2. */
static uint64_t limit_of_line(const char *root, struct str line)
{
	struct str number, controllers, controller;
	if (!str_split(&line, ':', &number) || !str_split(&line, ':', &controllers) || !line.p)
		return 0;
	if (!controllers.n)
		return memory_limit_least(limit_of_group(root, "", line, "memory.max"), limit_of_group(root, "unified", line, "memory.max"));
	while (str_split(&controllers, ',', &controller))
		if (str_eqc(controller, "memory"))
			return limit_of_group(root, "memory", line, "memory.limit_in_bytes");
	return 0;
}

static uint64_t limit_of_groups(const char *root)
{
	uint64_t limit = 0;
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	for (ssize_t n; (n = getline(&line, &room, f)) > 0;)
		limit = memory_limit_least(limit, limit_of_line(root, (struct str){line, (size_t)n - (line[n - 1] == '\n')}));
	free(line);
	fclose(f);
	return limit;
}

uint64_t memory_limit(const char *root)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return memory_limit_least(pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0, limit_of_groups(root));
}
