/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/libvirt_link.h"

#include <libvirt/virterror.h>
#include <stdlib.h>
#include <string.h>

#include "host-agent/vgpuctl/client.h"

/* libvirt's messages are in our errors; by itself it would print them as well. */
static void be_quiet(void *data, virErrorPtr error)
{
    (void)data;
    (void)error;
}

gboolean vm_link_set_error(const char *what, GError **error)
{
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "%s: %s", what, virGetLastErrorMessage());
    return FALSE;
}

VmLink *vm_link_open(const char *uri, const char *name, GError **error)
{
    g_autoptr(VmLink) link = g_new0(VmLink, 1);

    virSetErrorFunc(NULL, be_quiet);
    link->connection = virConnectOpen(uri);
    if (!link->connection) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_UNREACHABLE, "cannot reach libvirt at %s: %s",
                    uri, virGetLastErrorMessage());
        return NULL;
    }
    link->domain = virDomainLookupByName(link->connection, name);
    if (!link->domain)
        link->domain = virDomainLookupByUUIDString(link->connection, name);
    if (link->domain)
        return g_steal_pointer(&link);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "libvirt has no domain %s; \"virsh list --all\" shows those that it has", name);
    return NULL;
}

void vm_link_free(VmLink *link)
{
    if (link->domain)
        virDomainFree(link->domain);
    if (link->connection)
        virConnectClose(link->connection);
    g_free(link);
}

const char *vm_link_name(const VmLink *link)
{
    return virDomainGetName(link->domain);
}

gboolean vm_link_check_running(const VmLink *link, const char *advice, GError **error)
{
    if (virDomainIsActive(link->domain) == 1)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "domain %s is not running; %s",
                vm_link_name(link), advice);
    return FALSE;
}

char *vm_link_xml(const VmLink *link, guint flags, GError **error)
{
    char *xml = virDomainGetXMLDesc(link->domain, flags);
    char *copy = g_strdup(xml);

    free(xml);
    if (!copy)
        vm_link_set_error("cannot read the domain's XML", error);
    return copy;
}

Domain *vm_link_domain(const VmLink *link, GError **error)
{
    g_autofree char *xml = vm_link_xml(link, 0, error);

    return xml ? domain_parse(xml, strlen(xml), error) : NULL;
}
