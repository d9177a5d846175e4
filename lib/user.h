/* SPDX-License-Identifier: MIT */
/*
 * Users of the host, by whatever source it has for them (nsswitch.conf(5)). A directory server may take long to
 * answer, so neither is for a main loop.
 */
#ifndef LIB_USER_H
#define LIB_USER_H

#include <glib.h>
#include <sys/types.h>

/* The user's name; its number if it has none. To be freed. */
char *user_name(uid_t uid);

/* FALSE: there is no user of that name. */
gboolean user_uid(const char *name, uid_t *uid);

#endif
