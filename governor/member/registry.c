// SPDX-License-Identifier: MIT
/*
 * One process is one member of a slice, however many doors it uses. With a membership for each
 * door, doors of one process would divide the slice among themselves, and memory that goes from one
 * to the other would be charged twice.
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
 * In a child, no thread exists that would release the lock. The lock is not taken before a fork,
 * because doors call with their own locks held. The list is consistent at any moment, because it
 * changes by one store.
 */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static struct shared_member *find_shared(const char *path)
{
    struct shared_member *at = shared;

    while (at && strcmp(at->path, path))
        at = at->next;
    return at;
}

/* Under lock. NULL: errno. */
static struct shared_member *add_shared(const char *path, bool required)
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
    one = find_shared(socket_path);
    if (!one)
        one = add_shared(socket_path, required);
    if (one) {
        one->users++;
        member = one->member;
    }
    pthread_mutex_unlock(&lock);
    return member;
}

/* Removes @member's entry if this was its last user; NULL: it has others. */
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
