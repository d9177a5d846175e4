// SPDX-License-Identifier: MIT
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static GovernorMember *member;
static unsigned int users;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child may create instances of its own: it must not find the lock held by a thread that it
 * doesn't have. */
static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static GovernorMember *join(void)
{
    const char *path = getenv("VGPU_GOVERNOR_SOCKET");
    const char *required = getenv("VGPU_GOVERNOR_REQUIRED");
    GovernorMember *joined;

    if (!path || !*path)
        path = DEFAULT_SOCKET;
    joined = governor_member_new(path, required && !strcmp(required, "1"));
    if (!joined) {
        fprintf(
            stderr,
            "vgpu-governor: can't join the slice at %s: %s; VGPU_GOVERNOR_REQUIRED is set, so this "
            "program gets no GPU (is vgpu-arbiter running?)\n",
            path, strerror(errno));
    }
    return joined;
}

GovernorMember *process_member_get(void)
{
    GovernorMember *got;

    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!member)
        member = join();
    if (member)
        users++;
    got = member;
    pthread_mutex_unlock(&lock);
    return got;
}

void process_member_put(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        governor_member_free(member);
        member = NULL;
    }
    pthread_mutex_unlock(&lock);
}
