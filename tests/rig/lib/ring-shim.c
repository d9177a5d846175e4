// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD for the outer QEMU's render server: the rig's GPU. L1's Mesa can lose the wake-up of a
 * ring's thread (see engine/venus_rings.h), and QEMU doesn't look after it as our engine does. So
 * such a thread wakes up by itself now and then, as condition variables allow. In other threads the
 * library does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define PATIENCE_S 2

static bool is_ring(void)
{
    static _Thread_local int known; /* 0: not yet; 1: no; 2: yes */

    if (!known) {
        char name[16] = "";

        prctl(PR_GET_NAME, name);
        known = strncmp(name, "vkr-ring-", 9) ? 1 : 2;
    }
    return known == 2;
}

/* By default they go by CLOCK_REALTIME, and virglrenderer's do. */
static int wait_a_while(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct timespec until;
    int error;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    error = pthread_cond_timedwait(condition, mutex, &until);
    return error == ETIMEDOUT ? 0 : error;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *);

    if (is_ring())
        return wait_a_while(condition, mutex);
    if (!next)
        next = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(RTLD_NEXT, "pthread_cond_wait",
                                                                    "GLIBC_2.3.2");
    return next(condition, mutex);
}
