/* SPDX-License-Identifier: MIT */
/*
 * vGPUs that were made for a VM are given back when it has ended.
 */
#ifndef VGPUD_DOMAINS_DOMAIN_RELEASE_H
#define VGPUD_DOMAINS_DOMAIN_RELEASE_H

#include "host-agent/daemon/lifecycle/lifecycle.h"

/*
 * Removes those of @uuids that no VM has open; one that something is being done with goes after
 * that. Calls @func, from the main loop, at the end; @error: of the first that failed, and the
 * others were still seen to. @uuids: not the slices' own.
 */
void domain_release_run(const Lifecycle *life, const char *const *uuids, OperationDone func,
                        void *data);

#endif
