// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void destroy(GovernorMember *member)
{
    int error = errno;

    state_clear(member);
    free(member->socket_path);
    free(member);
    errno = error;
}

static int join(GovernorMember *member)
{
    int error;

    pthread_mutex_lock(&member->link_lock);
    error = link_join(member);
    pthread_mutex_unlock(&member->link_lock);
    return error;
}

/* How long an arbiter that restarts may take. */
#define START_NS (2 * NS_PER_S)
#define LOOK_US  10000

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool has_mark(const char *socket_path)
{
    const char *end = strrchr(socket_path, '/');
    char mark[PATH_MAX];

    return end &&
           snprintf(mark, sizeof(mark), "%.*s/" GOVERNOR_REQUIRED_MARK, (int)(end - socket_path),
                    socket_path) < (int)sizeof(mark) &&
           is_there(mark);
}

/* A socket that nobody listens on is that of an arbiter that comes back. */
static bool is_worth_waiting(const GovernorMember *member, int error, bool required)
{
    return error == ECONNREFUSED ? is_there(member->socket_path) : error == ENOENT && required;
}

/* Doors try again at each call, so a process waits once for an arbiter that is gone. 0: it has not
 * begun. */
static _Atomic uint64_t wait_until;

static bool waits_still(void)
{
    uint64_t none = 0;

    atomic_compare_exchange_strong(&wait_until, &none, clock_now() + START_NS);
    return clock_now() < wait_until;
}

static int start(GovernorMember *member, bool required)
{
    int error;

    required |= has_mark(member->socket_path);
    while ((error = join(member)) && is_worth_waiting(member, error, required) && waits_still())
        usleep(LOOK_US);
    if (!error)
        wait_until = 0;
    if (error && required)
        return error;
    return link_start(member) ? 0 : errno;
}

GovernorMember *governor_member_new(const char *socket_path, bool required)
{
    GovernorMember *member = calloc(1, sizeof(*member));
    int error = 0;

    if (!member)
        return NULL;
    member->socket_path = socket_path ? strdup(socket_path) : NULL;
    if ((socket_path && !member->socket_path) || !state_init(member)) {
        destroy(member);
        return NULL;
    }
    error = socket_path ? start(member, required) : 0;
    if (!error)
        return member;
    link_stop(member);
    errno = error;
    destroy(member);
    return NULL;
}

uint32_t governor_member_engines(const GovernorMember *member)
{
    uint32_t engines;

    fork_check(member);
    engines = atomic_load_explicit(&member->grant->engines, memory_order_relaxed);
    return engines ? engines : GOVERNOR_ENGINES_ALL;
}

void governor_member_free(GovernorMember *member)
{
    if (!member)
        return;
    fork_check(member);
    link_stop(member);
    destroy(member);
}
