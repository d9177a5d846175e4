/* SPDX-License-Identifier: MIT */
/*
 * libvirt's functions under their own names. Its library is loaded by the first of them, and not
 * linked: hosts without VMs do not have it, and need vgpuctl all the same.
 */
#include <dlfcn.h>
#include <glib.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#define LIBRARY "libvirt.so.0"

/* The library; NULL: it can't be loaded. */
static void *library(void)
{
    static void *handle;

    if (!handle)
        handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return handle;
}

static void *find(const char *name)
{
    return library() ? dlsym(library(), name) : NULL;
}

/* @otherwise: what libvirt returns where it fails. */
#define CALL(type, otherwise, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        type(*call) parameters = (type(*) parameters)find(#name);                                  \
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
    void (*call)(void *, virErrorFunc) = (void (*)(void *, virErrorFunc))find("virSetErrorFunc");

    if (call)
        call(data, handler);
}
