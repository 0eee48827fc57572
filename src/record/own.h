/* The own backend: the program runs with our library in it (collect/), which it finds by environment variables. */
#ifndef OPSCOPE_RECORD_OWN_H
#define OPSCOPE_RECORD_OWN_H

#include "record/record.h"

#define OWN_LIBRARY "libopscope-inject.so"

/* Where the library is: OPSCOPE_INJECT if that is set, else beside the program, in the build tree, in the library folder. ERR_IO, with where it was
 * looked for, when it is nowhere. */
int own_find_library(struct buf *path, struct err *e);

/* Whether another profiler has already said that it wants to be loaded: ERR_DATA names it. NULL-terminated list of NAME=VALUE that the program will
 * get on top of our environment. */
int own_check_environment(char *const *env, struct err *e);

/* Sets up what the program gets: docs/record.md lists the variables. */
void own_environment(const struct record_spec *spec, const char *library, struct words *env);

/* Folders of the Python that this program is, or belongs to, in which a libcupti may lie: OPSCOPE_CUPTI_PATH. */
void own_cupti_folders(const char *program, struct words *folders);

/* Runs it; -1 when it could not be started. Segments are in spec->dir afterwards. */
int own_run(const struct record_spec *spec, const char *library, struct record_result *r, struct err *e);

#endif
