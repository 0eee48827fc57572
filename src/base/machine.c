#include "base/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void machine_name(char *to, size_t room)
{
	struct utsname u;
	snprintf(to, room, "%s", uname(&u) == 0 && *u.nodename ? u.nodename : "host");
	for (char *p = to; *p; p++)
		if (*p == '/')
			*p = '_';
}

void machine_boot_id(char *to, size_t room)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, to, room - 1) : 0;
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = 0;
	to[strcspn(to, "\n")] = 0;
}
