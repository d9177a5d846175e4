/* SPDX-License-Identifier: MIT */
/*
 * A vGPU in a domain's XML.
 */
#ifndef VGPUCTL_DOMAIN_EDIT_H
#define VGPUCTL_DOMAIN_EDIT_H

#include <glib.h>

/* The <hostdev> of a vGPU, as libvirt attaches it. To be freed. */
char *domain_edit_hostdev(const char *uuid);

/*
 * @xml of a domain with one more vGPU: its <hostdev>, and in <metadata> the request for the hook.
 * @request: of CreateVgpus, a{sv}. NULL with VGPUCTL_FAILED if the XML cannot be read or has
 * a device of that UUID already. To be freed by g_free().
 */
char *domain_edit_add(const char *xml, const char *uuid, GVariant *request, GError **error);

#endif
