/* SPDX-License-Identifier: MIT */
/* vgpuctl detach: takes a vGPU from a running VM. */
#include "lib/bus.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/domain_edit.h"
#include "host-agent/vgpuctl/libvirt_link.h"
#include "host-agent/vgpuctl/objects.h"
#include "host-agent/vgpuctl/progress.h"
#include "host-agent/vgpuctl/vgpu_options.h"

/* A guest's driver releases the device within seconds, if it does at all. */
#define DETACH_TIMEOUT_S 60
#define POLL_US          (G_USEC_PER_SEC / 4)
/* QEMU closes a device shortly before or after libvirt has removed it from its list. */
#define CLOSE_TIMEOUT_US (5 * G_USEC_PER_SEC)

/* -1: libvirt does not say. */
static int has_vgpu(const VmLink *link, const char *uuid, GError **error)
{
    g_autoptr(Domain) domain = vm_link_domain(link, error);

    return domain ? g_strv_contains((const char *const *)domain->mdevs, uuid) : -1;
}

/* The guest takes its time, and may never agree. */
static gboolean unplug(const VmLink *link, const char *uuid, GError **error)
{
    gint64 end = g_get_monotonic_time() + DETACH_TIMEOUT_S * G_USEC_PER_SEC;
    g_autofree char *xml = domain_edit_hostdev(uuid);
    int has;

    if (virDomainDetachDeviceFlags(link->domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
        return vm_link_set_error("libvirt refuses to detach it", error);
    progress_begin("waiting for the guest to release the vGPU", DETACH_TIMEOUT_S);
    while ((has = has_vgpu(link, uuid, error)) == 1 && g_get_monotonic_time() < end)
        progress_sleep(POLL_US);
    progress_end();
    if (has == 1)
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_IN_USE,
            "the guest of domain %s has not released vGPU %s within a minute; end the programs "
            "in the guest that use the GPU, then try again",
            vm_link_name(link), uuid);
    return has == 0;
}

/* What vgpud knows of @uuid, or of a name; NULL: it is no vGPU. */
static GVariant *find_vgpu(GVariant *vgpus, const char *uuid)
{
    for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

        if (object_is_slice(vgpu, uuid))
            return g_steal_pointer(&vgpu);
    }
    return NULL;
}

/* The one vGPU that the domain has; other mediated devices don't count. */
static char *only_vgpu(const VmLink *link, GVariant *vgpus, GError **error)
{
    g_autoptr(Domain) domain = vm_link_domain(link, error);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_autofree char *all = NULL;

    if (!domain)
        return NULL;
    for (char **uuid = domain->mdevs; *uuid; uuid++) {
        g_autoptr(GVariant) vgpu = find_vgpu(vgpus, *uuid);

        if (vgpu)
            g_ptr_array_add(found, *uuid);
    }
    if (found->len == 1)
        return g_strdup(g_ptr_array_index(found, 0));
    if (found->len == 0) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND, "domain %s has no vGPU",
                    vm_link_name(link));
        return NULL;
    }
    g_ptr_array_add(found, NULL);
    all = g_strjoinv(", ", (char **)found->pdata);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_USAGE,
                "domain %s has several vGPUs; name one of them: %s", vm_link_name(link), all);
    return NULL;
}

/* @name: as on the command line; NULL: the only one. NULL if the domain has none. */
static char *choose(const VmLink *link, GVariant *vgpus, const char *name, GError **error)
{
    g_autoptr(GVariant) vgpu = name ? find_vgpu(vgpus, name) : NULL;
    g_autofree char *uuid = NULL;
    int has;

    if (!name)
        return only_vgpu(link, vgpus, error);
    uuid = vgpu ? dict_text(vgpu, "Uuid") : g_ascii_strdown(name, -1);
    has = has_vgpu(link, uuid, error);
    if (has == 0)
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                    "domain %s has no vGPU %s; \"vgpuctl vgpu list\" shows which VM has which vGPU",
                    vm_link_name(link), uuid);
    return has == 1 ? g_steal_pointer(&uuid) : NULL;
}

/* It was created for this domain: other vGPUs are only detached. */
static gboolean is_made_for(GVariant *vgpus, const char *uuid, const char *name)
{
    g_autoptr(GVariant) vgpu = find_vgpu(vgpus, uuid);
    g_autofree char *domain = vgpu ? dict_text(vgpu, "Domain") : NULL;

    return g_strcmp0(domain, name) == 0;
}

static gboolean remove_vgpu(const Client *client, const char *uuid, GError **error)
{
    gint64 end = g_get_monotonic_time() + CLOSE_TIMEOUT_US;

    for (;;) {
        g_autoptr(GError) cause = NULL;
        g_autoptr(GVariant) answer =
            client_call(client, "RemoveVgpu", g_variant_new("(sa{sv})", uuid, NULL),
                        "removing the vGPU", &cause);

        if (answer)
            return TRUE;
        if (!g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_IN_USE) ||
            g_get_monotonic_time() >= end) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        progress_sleep(POLL_US);
    }
}

gboolean detach_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VmLink) link = vm_link_open(vgpu_options_uri(), args[0], error);
    g_autoptr(GVariant) vgpus = NULL;
    g_autofree char *uuid = NULL;
    gboolean made;

    if (!link || !vm_link_check_running(link, "\"virsh edit\" removes a device from it", error))
        return FALSE;
    vgpus = client_get(client, "ListVgpus", NULL, NULL, error);
    if (!vgpus)
        return FALSE;
    uuid = choose(link, vgpus, args[1], error);
    if (!uuid || !unplug(link, uuid, error))
        return FALSE;
    made = is_made_for(vgpus, uuid, vm_link_name(link));
    if (made && !remove_vgpu(client, uuid, error))
        return FALSE;
    output_line(options, "vGPU %s is detached from domain %s%s.", uuid, vm_link_name(link),
                made ? " and removed" : "; others can use it");
    return TRUE;
}
