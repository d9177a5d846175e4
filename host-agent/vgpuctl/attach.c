/* SPDX-License-Identifier: MIT */
/* vgpuctl attach: a vGPU for a VM that runs, in one step. */
#include <stdio.h>

#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/domain_edit.h"
#include "host-agent/vgpuctl/libvirt_link.h"
#include "host-agent/vgpuctl/vgpu_list.h"
#include "host-agent/vgpuctl/vgpu_options.h"
#include "lib/bus.h"
#include "lib/vgpu.h"

static gboolean check_port(const VmLink *link, GError **error)
{
    g_autoptr(Domain) domain = vm_link_domain(link, error);

    if (!domain)
        return FALSE;
    if (!domain->pcie || domain->free_ports)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NO_ROOM,
                "domain %s has no free root port to plug a vGPU into (it has %u, all in use); add "
                "\"<controller type='pci' model='pcie-root-port'/>\" to its <devices> by \"virsh "
                "edit %s\", once for each, and shut it down and start it",
                vm_link_name(link), domain->ports, vm_link_name(link));
    return FALSE;
}

static char *made_uuid(GVariant *vgpus)
{
    g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, 0);

    return dict_text(vgpu, "Uuid");
}

static gboolean plug(const VmLink *link, const char *uuid, const Options *options, GError **error)
{
    g_autofree char *xml = domain_edit_hostdev(uuid);

    if (!vgpu_wait_ready(options->root, uuid, VGPU_READY_TIMEOUT_MS, error))
        return FALSE;
    if (virDomainAttachDeviceFlags(link->domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
    return vm_link_set_error("libvirt does not attach it", error);
}

static void undo(const Client *client, const char *uuid)
{
    g_autoptr(GError) error = NULL;

    if (!vgpu_manager_call_remove_vgpu_sync(client->manager, uuid, g_variant_new("a{sv}", NULL),
                                            NULL, &error))
        g_printerr("vgpuctl: vGPU %s was made and can't be removed: %s\n", uuid, error->message);
}

/* Firmware that shows something on it has to find it at power-on, so libvirt plugs none in. */
static gboolean check_display(GVariantDict *dict, GError **error)
{
    guint display = 0;

    if (!g_variant_dict_lookup(dict, "Display", "u", &display) || !display)
        return TRUE;
    g_set_error(
        error, VGPUCTL_ERROR, VGPUCTL_USAGE,
        "a display can't be plugged into a VM that runs; \"vgpuctl domain prepare --display "
        "on\" gives the domain a vGPU with one for its next start");
    return FALSE;
}

static GVariant *make(Client *client, const VmLink *link, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    GVariant *vgpus = NULL;

    if (!vgpu_options_for_domain(&dict, error) || !check_display(&dict, error))
        return NULL;
    g_variant_dict_insert(&dict, "Domain", "s", vm_link_name(link));
    client_be_patient(client);
    vgpu_manager_call_create_vgpus_sync(client->manager, g_variant_dict_end(&dict), &vgpus, NULL,
                                        error);
    return vgpus;
}

gboolean attach_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VmLink) link = vm_link_open(vgpu_options_uri(), args[0], error);
    g_autoptr(GVariant) vgpus = NULL;
    g_autofree char *uuid = NULL;

    if (!link ||
        !vm_link_check_running(
            link, "\"vgpuctl domain prepare\" gives it a vGPU for its next start", error) ||
        !check_port(link, error))
        return FALSE;
    vgpus = make(client, link, error);
    if (!vgpus)
        return FALSE;
    uuid = made_uuid(vgpus);
    if (!vgpu_options_dry_run() && !plug(link, uuid, options, error)) {
        g_prefix_error(
            error, "domain %s can't have vGPU %s, which is removed: ", vm_link_name(link), uuid);
        undo(client, uuid);
        return FALSE;
    }
    if (options->json)
        vgpu_print_list(vgpus, TRUE, "");
    else
        printf("vGPU %s %s domain %s.\n", uuid,
               vgpu_options_dry_run() ? "would be made and attached to" : "is attached to",
               vm_link_name(link));
    return TRUE;
}
