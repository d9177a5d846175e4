// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void destroy_member(GovernorMember *member)
{
    int error = errno;

    state_clear(member);
    free(member->socket_path);
    free(member);
    errno = error;
}

/*
 * How long a process waits at its start: for an arbiter that is not there, because it restarts;
 * and, if it may not run without, for one that is there and does not answer, because the host is
 * busy.
 */
#define ABSENT_NS (2 * NS_PER_S)
#define SILENT_NS (30 * NS_PER_S)
#define LOOK_US   10000

/* Doors try again at each call, so a process waits once. 0: it has not begun. */
static _Atomic uint64_t waits_since;

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
static bool is_worth_waiting(const GovernorMember *member, int error, bool required,
                             uint64_t waited_ns)
{
    switch (error) {
    case ECONNREFUSED:
        return waited_ns < ABSENT_NS && is_there(member->socket_path);
    case ENOENT:
        return waited_ns < ABSENT_NS && required;
    case ETIMEDOUT:
        return waited_ns < SILENT_NS && required;
    default:
        return false;
    }
}

/* 0, or an errno. @since: the process waits from then on. */
static int join_arbiter(GovernorMember *member, bool required, uint64_t since)
{
    uint64_t soon = clock_now() + JOIN_NS, until = since + SILENT_NS;
    int error;

    pthread_mutex_lock(&member->link_lock);
    error = link_join(member, required && until > soon ? until : soon);
    pthread_mutex_unlock(&member->link_lock);
    return error;
}

static int start_member(GovernorMember *member, bool required)
{
    uint64_t since = 0, now = clock_now();
    int error;

    if (atomic_compare_exchange_strong(&waits_since, &since, now))
        since = now;
    required |= has_mark(member->socket_path);
    while ((error = join_arbiter(member, required, since)) &&
           is_worth_waiting(member, error, required, clock_now() - since))
        usleep(LOOK_US);
    if (!error)
        waits_since = 0;
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
        destroy_member(member);
        return NULL;
    }
    error = socket_path ? start_member(member, required) : 0;
    if (!error)
        return member;
    link_stop(member);
    errno = error;
    destroy_member(member);
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
    destroy_member(member);
}
