/* SPDX-License-Identifier: MIT */
#include "lib/user.h"

#include <errno.h>
#include <pwd.h>

/* More than an entry has: names, a home, a shell. */
#define ENTRY_MAX (64u << 10)

char *user_name(uid_t uid)
{
    g_autofree char *text = g_malloc(ENTRY_MAX);
    struct passwd entry, *found = NULL;

    while (getpwuid_r(uid, &entry, text, ENTRY_MAX, &found) == EINTR)
        ;
    return found ? g_strdup(found->pw_name) : g_strdup_printf("%u", uid);
}

gboolean user_uid(const char *name, uid_t *uid)
{
    g_autofree char *text = g_malloc(ENTRY_MAX);
    struct passwd entry, *found = NULL;

    while (getpwnam_r(name, &entry, text, ENTRY_MAX, &found) == EINTR)
        ;
    if (found)
        *uid = found->pw_uid;
    return found != NULL;
}
