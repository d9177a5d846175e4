/* SPDX-License-Identifier: MIT */
/* libvirt, as far as vgpuctl needs it. */
#ifndef VGPUCTL_LIBVIRT_H
#define VGPUCTL_LIBVIRT_H

#include <glib.h>
#include <libvirt/libvirt.h>

#include "lib/domain.h"

/* libvirt as vgpuctl asks it. (vgpud never does, and neither does the hook.) */

/**
 * VmLink - a domain, with the connection that it needs
 */
typedef struct {
    virConnectPtr connection;
    virDomainPtr domain;
} VmLink;

/* @uri: of libvirt. @name: or UUID. VGPUCTL_UNREACHABLE, VGPUCTL_NOT_FOUND. */
VmLink *vm_link_open(const char *uri, const char *name, GError **error);

void vm_link_free(VmLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VmLink, vm_link_free)

/* libvirt's name of it. Part of @link. */
const char *vm_link_name(const VmLink *link);

/* VGPUCTL_FAILED if the VM is not running; the message ends with @advice. */
gboolean vm_link_check_running(const VmLink *link, const char *advice, GError **error);

/* @flags: of virDomainGetXMLDesc(). To be freed by g_free(). */
char *vm_link_xml(const VmLink *link, guint flags, GError **error);

/* The VM as it is now. Also DOMAIN_ERROR. */
Domain *vm_link_domain(const VmLink *link, GError **error);

/* Sets @error to what libvirt said last, behind @what. Returns FALSE. */
gboolean vm_link_set_error(const char *what, GError **error);

#endif
