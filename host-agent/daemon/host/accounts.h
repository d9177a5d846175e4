/* SPDX-License-Identifier: MIT */
/*
 * Users and groups of the host that somebody names, from all of its sources (nsswitch.conf(5)). A
 * thread asks for them, as a directory server may be slow.
 */
#ifndef VGPUD_HOST_ACCOUNTS_H
#define VGPUD_HOST_ACCOUNTS_H

#include <glib.h>
#include <sys/types.h>

typedef struct Accounts Accounts;

/* @changed is called with @data after each answer. */
Accounts *accounts_new(void (*changed)(void *data), void *data);

void accounts_free(Accounts *accounts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Accounts, accounts_free)

/* "@GROUP": its members. */
gboolean account_is_group(const char *name);

/*
 * Looks @names up, of users and groups, and takes them: now, again while there is one that was not
 * found, and from time to time if there are groups. One that can't be looked up stays as it was.
 */
void accounts_look_up(Accounts *accounts, GStrv names);

/* A group's, without users who have it only as their primary group. NULL: not known yet. */
const char *const *accounts_members(const Accounts *accounts, const char *group);

/* Adds the user's uid, if the host has such a user, to @uids. FALSE: it could not tell yet. */
gboolean accounts_add_uid(const Accounts *accounts, const char *user, GArray *uids);

/*
 * In place of the host's own, for tests; NULL: the host's. Called from any thread. They return 0,
 * or ENOENT: there is none of that name; else an errno: that can't be told now.
 */
typedef int (*UserLookup)(const char *name, uid_t *uid);
void accounts_set_user_lookup(UserLookup func);
typedef int (*GroupLookup)(const char *name, GStrv *members);
void accounts_set_group_lookup(GroupLookup func);

#endif
