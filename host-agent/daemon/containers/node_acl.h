/* SPDX-License-Identifier: MIT */
/*
 * Entries for users in a device node's ACL. Those that are made here say "rwx", where "x" has no
 * meaning for a device and stays out of the mask: udev and logind write "rw-", and neither changes
 * an entry that allows more. So whose an entry is can be seen in the node itself.
 */
#ifndef VGPUD_CONTAINERS_NODE_ACL_H
#define VGPUD_CONTAINERS_NODE_ACL_H

#include <glib.h>
#include <sys/types.h>

/* All paths are those on this machine. */

/* There is an entry for @uid, whoever made it. FALSE also without the node. */
gboolean node_acl_has(const char *path, uid_t uid);

/* Lets @uid read and write. There must be no entry for it. G_FILE_ERROR. */
gboolean node_acl_add(const char *path, uid_t uid, GError **error);

/*
 * Removes the entry for @uid if it was made here; or, if @hand_over, makes it one of logind's. Mode
 * and other entries stay. A node that is missing is no error.
 */
gboolean node_acl_remove(const char *path, uid_t uid, gboolean hand_over, GError **error);

#endif
