/* SPDX-License-Identifier: MIT */
/* The namespaces of a container that is being made, in which its files are where it will have them.
 */
#ifndef CONTAINER_HOOKS_NAMESPACES_H
#define CONTAINER_HOOKS_NAMESPACES_H

#include <glib.h>

/*
 * The hook goes on in the mount namespace of the container's process @pid, and in its user
 * namespace: if that is another, as its root, and with no more rights than that. In a hook of
 * createRuntime: the process has its mounts, and waits before it changes its root.
 */
gboolean namespaces_enter(guint pid, GError **error);

#endif
