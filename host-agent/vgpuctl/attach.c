/* SPDX-License-Identifier: MIT */
/* vgpuctl attach: a vGPU for a running VM, in one step. */
#include "lib/bus.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/dict.h"
#include "host-agent/vgpuctl/domain_edit.h"
#include "host-agent/vgpuctl/libvirt_link.h"
#include "host-agent/vgpuctl/vgpu.h"
#include "host-agent/vgpuctl/vgpu_options.h"
#include "lib/vgpu.h"

static gboolean check_port(const VmLink *link, GError **error)
{
    g_autoptr(Domain) domain = vm_link_domain(link, error);

    if (!domain)
        return FALSE;
    if (!domain->pcie || domain->free_ports)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NO_ROOM,
                "cannot attach a vGPU to domain %s: it has no free root port (%u in use); add "
                "\"<controller type='pci' model='pcie-root-port'/>\" to its <devices> by \"virsh "
                "edit %s\", once for each vGPU, then shut it down and start it",
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
    return vm_link_set_error("libvirt refuses to attach it", error);
}

static void undo(const Client *client, const char *uuid)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer =
        client_call(client, "RemoveVgpu", g_variant_new("(sa{sv})", uuid, NULL),
                    "removing the vGPU again", &error);

    if (!answer)
        g_printerr("vgpuctl: cannot remove the new vGPU %s: %s\n", uuid, error->message);
}

/* Firmware must find a display at power-on, so libvirt plugs in none. */
static gboolean check_display(GVariantDict *dict, GError **error)
{
    guint display = 0;

    if (!g_variant_dict_lookup(dict, "Display", "u", &display) || !display)
        return TRUE;
    g_set_error(
        error, VGPUCTL_ERROR, VGPUCTL_USAGE,
        "cannot attach a vGPU with a display to a running VM; \"vgpuctl domain prepare --display "
        "on\" gives the domain one at its next start");
    return FALSE;
}

static GVariant *make(Client *client, const VmLink *link, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    if (!vgpu_options_for_domain(&dict, error) || !check_display(&dict, error))
        return NULL;
    g_variant_dict_insert(&dict, "Domain", "s", vm_link_name(link));
    return client_get(client, "CreateVgpus", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                      "creating a vGPU", error);
}

gboolean attach_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VmLink) link = vm_link_open(vgpu_options_uri(), args[0], error);
    g_autoptr(GVariant) vgpus = NULL;
    g_autofree char *uuid = NULL;

    if (!link ||
        !vm_link_check_running(link, "\"vgpuctl domain prepare\" gives it a vGPU at its next start",
                               error) ||
        !check_port(link, error))
        return FALSE;
    vgpus = make(client, link, error);
    if (!vgpus)
        return FALSE;
    uuid = made_uuid(vgpus);
    if (!vgpu_options_dry_run() && !plug(link, uuid, options, error)) {
        g_prefix_error(error, "cannot attach vGPU %s to domain %s, so it is removed again: ", uuid,
                       vm_link_name(link));
        undo(client, uuid);
        return FALSE;
    }
    if (options->format != FORMAT_TABLE)
        listing_print(options, &vgpu_listing, vgpus);
    else
        output_line(options, "vGPU %s %s domain %s.", uuid,
                    vgpu_options_dry_run() ? "would be created and attached to" : "is attached to",
                    vm_link_name(link));
    return TRUE;
}
