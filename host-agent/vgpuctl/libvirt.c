/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/libvirt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <libvirt/virterror.h>

#include "host-agent/vgpuctl/client.h"

/* libvirt as vgpuctl asks it. (vgpud never does, and neither does the hook.) */

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

/*
 * libvirt's functions under their own names. Its library is loaded by the first of them, and not
 * linked: hosts without VMs do not have it, and need vgpuctl all the same.
 */

#define LIBRARY "libvirt.so.0"

/* The library; NULL: it can't be loaded. */
static void *load_library(void)
{
    static void *handle;

    if (!handle)
        handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return handle;
}

static void *find_symbol(const char *name)
{
    return load_library() ? dlsym(load_library(), name) : NULL;
}

/* @otherwise: what libvirt returns where it fails. */
#define CALL(type, otherwise, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        type(*call) parameters = (type(*) parameters)find_symbol(#name);                           \
                                                                                                   \
        return call ? call arguments : (otherwise);                                                \
    }

CALL(virConnectPtr, NULL, virConnectOpen, (const char *name), (name))
CALL(int, -1, virConnectClose, (virConnectPtr conn), (conn))
CALL(virDomainPtr, NULL, virDomainLookupByName, (virConnectPtr conn, const char *name),
     (conn, name))
CALL(virDomainPtr, NULL, virDomainLookupByUUIDString, (virConnectPtr conn, const char *uuid),
     (conn, uuid))
CALL(int, -1, virDomainFree, (virDomainPtr domain), (domain))
CALL(const char *, NULL, virDomainGetName, (virDomainPtr domain), (domain))
CALL(int, -1, virDomainIsActive, (virDomainPtr domain), (domain))
CALL(char *, NULL, virDomainGetXMLDesc, (virDomainPtr domain, unsigned int flags), (domain, flags))
CALL(virDomainPtr, NULL, virDomainDefineXML, (virConnectPtr conn, const char *xml), (conn, xml))
CALL(int, -1, virDomainAttachDeviceFlags,
     (virDomainPtr domain, const char *xml, unsigned int flags), (domain, xml, flags))
CALL(int, -1, virDomainDetachDeviceFlags,
     (virDomainPtr domain, const char *xml, unsigned int flags), (domain, xml, flags))
CALL(const char *, "this host has no libvirt; install the package vgpu-libvirt",
     virGetLastErrorMessage, (void), ())

void virSetErrorFunc(void *data, virErrorFunc handler)
{
    void (*call)(void *, virErrorFunc) =
        (void (*)(void *, virErrorFunc))find_symbol("virSetErrorFunc");

    if (call)
        call(data, handler);
}
