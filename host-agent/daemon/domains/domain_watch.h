/* SPDX-License-Identifier: MIT */
/*
 * vGPUs that were made for a VM whose end vgpud was not told of: libvirt's hook was killed, or
 * vgpud was down. They are given back when for minutes no process has been that VM's, and nobody
 * has had them open.
 */
#ifndef VGPUD_DOMAINS_DOMAIN_WATCH_H
#define VGPUD_DOMAINS_DOMAIN_WATCH_H

#include "host-agent/daemon/lifecycle/lifecycle.h"

typedef struct DomainWatch DomainWatch;

/* @life: lives longer. Looks from time to time while there are such vGPUs. */
DomainWatch *domain_watch_new(const Lifecycle *life);

void domain_watch_free(DomainWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DomainWatch, domain_watch_free)

/*
 * Looks now, as if @now were g_get_monotonic_time(): for tests. One that is left alone for the
 * first time then has DOMAIN_WATCH_GRACE from then on.
 */
void domain_watch_look(DomainWatch *watch, gint64 now);

/* Microseconds: libvirt may take that long from its hook to the start of QEMU, as when other hooks
 * come in between. */
#define DOMAIN_WATCH_GRACE (5 * 60 * G_USEC_PER_SEC)

#endif
