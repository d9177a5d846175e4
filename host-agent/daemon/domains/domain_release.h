/* SPDX-License-Identifier: MIT */
/* vGPUs that were made for a VM are removed when it has ended. */
#ifndef VGPUD_DOMAINS_DOMAIN_RELEASE_H
#define VGPUD_DOMAINS_DOMAIN_RELEASE_H

#include "host-agent/daemon/lifecycle/lifecycle.h"

/*
 * Removes those of @uuids that no VM has open. If an operation works on one, the removal comes
 * after it. Calls @func, from the main loop, at the end; @error: the first failure; the others were
 * still tried. @uuids: not the slices' own.
 */
void domain_release_run(const Lifecycle *life, const char *const *uuids, OperationDone func,
                        void *data);

#endif
