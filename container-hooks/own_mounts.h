/* SPDX-License-Identifier: MIT */
/* What CDI mounts into a container, if something else was mounted over it. */
#ifndef CONTAINER_HOOKS_OWN_MOUNTS_H
#define CONTAINER_HOOKS_OWN_MOUNTS_H

#include "container-hooks/bundle.h"

/*
 * docker mounts volumes and tmpfs after CDI's mounts, so that "--tmpfs /run" hides a slice's
 * sockets. Those of vgpud's mounts that the container does not have are made again, over the
 * others. In the container's mount namespace, before its root is changed.
 */
gboolean own_mounts_restore(const Bundle *bundle, GError **error);

#endif
