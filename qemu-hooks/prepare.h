/* SPDX-License-Identifier: MIT */
/*
 * Before a domain starts: what its XML names of ours is there and ready, or the start fails.
 */
#ifndef QEMU_HOOKS_PREPARE_H
#define QEMU_HOOKS_PREPARE_H

#include "lib/domain.h"

/* @root: "" in production. @name: libvirt's of the domain. What was made is gone again where it
 * fails. */
gboolean prepare_domain(const char *root, const char *name, const Domain *domain, GError **error);

#endif
