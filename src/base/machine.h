/* The machine that this runs on, as captures and run directories name it. */
#ifndef OPSCOPE_BASE_MACHINE_H
#define OPSCOPE_BASE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its name as it can stand in a file's, NUL-terminated and cut to `room` bytes: '/' is '_'; "host" where it has none. */
enum { MACHINE_NAME_BYTES = 72 }; /* enough on Linux */
void machine_name(char *to, size_t room);
/* What differs from one start of the system to the next (/proc/sys/kernel/random/boot_id), NUL-terminated; "" = unknown. */
void machine_boot_id(char *to, size_t room);
/* Whether the process of that number is there, and has been for `age_ns` (CLOCK_MONOTONIC_RAW; 0 = however short): a number may have gone to another one since.
 * One that has ended and was not waited for is not there. What /proc does not tell is taken to be so. */
bool machine_process_lives(int pid, int64_t age_ns);

#endif
