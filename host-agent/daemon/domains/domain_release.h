/* SPDX-License-Identifier: MIT */
/*
 * vGPUs that were made for a VM are given back when it has ended.
 */
#ifndef VGPUD_DOMAINS_DOMAIN_RELEASE_H
#define VGPUD_DOMAINS_DOMAIN_RELEASE_H

#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/slices.h"

/*
 * Ends those of @uuids that are nobody else's business now, one after the other: one that a VM has
 * open stays, and so does one that another call does something with. Calls @func, from the main
 * loop, at the end; @error: the first thing that failed, and the others were still seen to.
 */
void domain_release_run(Host *host, Slices *slices, const char *const *uuids, MdevctlFunc func,
                        void *data);

#endif
