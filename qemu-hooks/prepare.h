/* SPDX-License-Identifier: MIT */
/* Before a domain starts: makes the vGPUs and GPUs in its XML available, or the start fails. */
#ifndef QEMU_HOOKS_PREPARE_H
#define QEMU_HOOKS_PREPARE_H

#include "lib/domain.h"

/*
 * @root: "" in production. @name: libvirt's name of the domain. After a failure, what was made is
 * removed.
 */
gboolean prepare_domain(const char *root, const char *name, const Domain *domain, GError **error);

#endif
