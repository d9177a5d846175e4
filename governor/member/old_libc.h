/* SPDX-License-Identifier: MIT */
/*
 * The compiler includes this first in everything that is loaded into a container's programs, so
 * that one build of it is loaded by every glibc from 2.17 on, and by musl. If a container's C
 * library cannot load the Vulkan layer, Vulkan goes on without it, and the program has the whole
 * GPU. tests/old-libc/ checks what the built libraries need.
 *
 * - Functions that glibc has moved or changed since are taken by their old versions. musl ignores
 *   versions.
 * - fstat() was a static function that called __fxstat(), which musl lacks.
 * - pthread_atfork() is a static function of glibc's, which calls __register_atfork(). musl has a
 *   function of that name.
 * - The checks of _FORTIFY_SOURCE are functions that musl lacks; it must be off.
 */
#ifndef GOVERNOR_OLD_LIBC_H
#define GOVERNOR_OLD_LIBC_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLD_LIBC(name, since) __asm__(".symver " #name "," #name "@GLIBC_" since)
#else
/* Where glibc came later, its first version there is 2.17. */
#define OLD_LIBC(name, since) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif

OLD_LIBC(dladdr, "2.2.5");
OLD_LIBC(dlopen, "2.2.5");
OLD_LIBC(dlsym, "2.2.5");
OLD_LIBC(pthread_condattr_setclock, "2.3.3");
OLD_LIBC(pthread_create, "2.2.5");
OLD_LIBC(pthread_detach, "2.2.5");
OLD_LIBC(pthread_getspecific, "2.2.5");
OLD_LIBC(pthread_join, "2.2.5");
OLD_LIBC(pthread_key_create, "2.2.5");
OLD_LIBC(pthread_key_delete, "2.2.5");
OLD_LIBC(pthread_mutex_trylock, "2.2.5");
OLD_LIBC(pthread_once, "2.2.5");
OLD_LIBC(pthread_rwlock_rdlock, "2.2.5");
OLD_LIBC(pthread_rwlock_unlock, "2.2.5");
OLD_LIBC(pthread_rwlock_wrlock, "2.2.5");
OLD_LIBC(pthread_setspecific, "2.2.5");
OLD_LIBC(pthread_sigmask, "2.2.5");

/* The kernel's structure is that of both libraries. */
static inline int old_libc_fstat(int fd, struct stat *status)
{
    return (int)syscall(SYS_fstat, fd, status);
}

typedef void (*OldLibcForkHandler)(void);
extern int __register_atfork(OldLibcForkHandler prepare, OldLibcForkHandler parent,
                             OldLibcForkHandler child, void *library) __attribute__((weak));
/* Of the library that is linked, by which glibc forgets the handlers when it is unloaded. */
extern void *__dso_handle __attribute__((visibility("hidden")));
#pragma weak pthread_atfork

static inline int old_libc_atfork(OldLibcForkHandler prepare, OldLibcForkHandler parent,
                                  OldLibcForkHandler child)
{
    if (__register_atfork)
        return __register_atfork(prepare, parent, child, __dso_handle);
    return pthread_atfork ? pthread_atfork(prepare, parent, child) : ENOSYS;
}

#define fstat          old_libc_fstat
#define pthread_atfork old_libc_atfork

#endif /* GOVERNOR_OLD_LIBC_H */
