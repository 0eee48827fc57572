/* glibc moved these functions in 2.34 and gave them new versions; asked for by their first ones they are found in old and new systems alike. Weak:
 * in a process without libpthread or libdl they may not be there at all. */
#ifndef OPSCOPE_COLLECT_GLIBC_H
#define OPSCOPE_COLLECT_GLIBC_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

/* Not for the sanitizers, which put functions of theirs in the place of these. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED)
#elif defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif

#ifdef OLDEST
__asm__(".symver pthread_create,pthread_create@" OLDEST);
__asm__(".symver dlopen,dlopen@" OLDEST);
__asm__(".symver dlsym,dlsym@" OLDEST);
__asm__(".symver dlclose,dlclose@" OLDEST);
#pragma weak pthread_create
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlclose
#define HAS_THREADS (&pthread_create != NULL)
#else
#define HAS_THREADS true
#endif

#endif
