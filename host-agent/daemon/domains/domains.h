/* SPDX-License-Identifier: MIT */
/* The VMs of this host: the vGPUs of one that has ended are removed. */
#ifndef VGPUD_DOMAINS_DOMAINS_H
#define VGPUD_DOMAINS_DOMAINS_H

#include "host-agent/daemon/methods/vgpu_call.h"

/*
 * vGPUs that were made for a VM whose end was not reported to vgpud: libvirt's hook was killed, or
 * vgpud was down. They are removed after several minutes in which the VM had no process and nobody
 * had them open.
 */

typedef struct DomainWatch DomainWatch;

/* @life: lives longer. Checks from time to time while a VM has a vGPU that is not open. */
DomainWatch *domain_watch_new(const Lifecycle *life);

void domain_watch_free(DomainWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DomainWatch, domain_watch_free)

/* A slice was made, or has changed. */
void domain_watch_refresh(DomainWatch *watch);

/* It is to check again, for tests. */
gboolean domain_watch_is_needed(const DomainWatch *watch);

/*
 * Checks now, as if @now were g_get_monotonic_time(): for tests. DOMAIN_WATCH_GRACE begins when a
 * vGPU is first found unused.
 */
void domain_watch_look(DomainWatch *watch, gint64 now);

/*
 * Microseconds: libvirt may need this long between its hook and the start of QEMU, if other hooks
 * run in between.
 */
#define DOMAIN_WATCH_GRACE (5 * 60 * G_USEC_PER_SEC)

#endif
