/* The machine that this runs on, as captures and run directories name it. */
#ifndef OPSCOPE_BASE_MACHINE_H
#define OPSCOPE_BASE_MACHINE_H

#include <stddef.h>

/* Its name as it can stand in a file's, NUL-terminated and cut to `room` bytes: '/' is '_'; "host" where it has none. */
enum { MACHINE_NAME_BYTES = 72 }; /* enough on Linux */
void machine_name(char *to, size_t room);
/* What differs from one start of the system to the next (/proc/sys/kernel/random/boot_id), NUL-terminated; "" = unknown. */
void machine_boot_id(char *to, size_t room);

#endif
