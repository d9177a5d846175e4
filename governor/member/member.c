// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int start(GovernorMember *member, bool required)
{
    int error = join(member);

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
