/* SPDX-License-Identifier: MIT */
/* Before a domain starts: makes the vGPUs and GPUs in its XML available, or the start fails. */
#ifndef QEMU_HOOKS_PREPARE_H
#define QEMU_HOOKS_PREPARE_H

#include "lib/domain.h"
#include "lib/host_root.h"

/* @name: libvirt's name of the domain. After a failure, what was made is removed. */
gboolean prepare_domain(HostRoot *root, const char *name, const Domain *domain, GError **error);

#endif
