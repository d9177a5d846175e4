// SPDX-License-Identifier: MIT
/*
 * One process is one member of a slice. Its doors are libraries of their own, and this one is what
 * they have in common: a ledger each would divide the slice among a process's doors, and charge
 * twice what goes from one to the other.
 */
#include "member_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shared_member {
    struct shared_member *next;
    char *path;
    GovernorMember *member;
    unsigned int users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct shared_member *shared;

/*
 * A child must not find the lock held by a thread that it doesn't have. The lock isn't taken before
 * a fork: doors ask with locks of their own held. The list is whole at every moment, for it changes
 * by one store.
 */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static struct shared_member *find(const char *path)
{
    struct shared_member *at = shared;

    while (at && strcmp(at->path, path))
        at = at->next;
    return at;
}

/* Under lock. NULL: errno. */
static struct shared_member *add(const char *path, bool required)
{
    struct shared_member *one = calloc(1, sizeof(*one));

    if (!one)
        return NULL;
    one->path = strdup(path);
    one->member = one->path ? governor_member_new(path, required) : NULL;
    if (!one->member) {
        int error = errno;

        free(one->path);
        free(one);
        errno = error;
        return NULL;
    }
    one->next = shared;
    shared = one;
    return one;
}

GovernorMember *governor_member_get(const char *socket_path, bool required)
{
    GovernorMember *member = NULL;
    struct shared_member *one;

    if (!socket_path)
        return governor_member_new(NULL, required);
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    one = find(socket_path);
    if (!one)
        one = add(socket_path, required);
    if (one) {
        one->users++;
        member = one->member;
    }
    pthread_mutex_unlock(&lock);
    return member;
}

/* The one of @member whose last user this was, taken out; NULL: it has others. */
static struct shared_member *take_last(const GovernorMember *member, bool *is_shared)
{
    struct shared_member **at = &shared;
    struct shared_member *one;

    while (*at && (*at)->member != member)
        at = &(*at)->next;
    one = *at;
    *is_shared = one != NULL;
    if (!one || --one->users)
        return NULL;
    *at = one->next;
    return one;
}

void governor_member_put(GovernorMember *member)
{
    struct shared_member *last;
    bool is_shared;

    if (!member)
        return;
    pthread_mutex_lock(&lock);
    last = take_last(member, &is_shared);
    pthread_mutex_unlock(&lock);
    if (last) {
        free(last->path);
        free(last);
    }
    if (last || !is_shared)
        governor_member_free(member);
}
