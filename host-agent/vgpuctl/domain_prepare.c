/* SPDX-License-Identifier: MIT */
/* vgpuctl domain prepare: a domain's definition gets a vGPU, which libvirt's hook creates when the
 * domain starts. */
#include "lib/bus.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/domain_edit.h"
#include "host-agent/vgpuctl/libvirt_link.h"
#include "host-agent/vgpuctl/vgpu_options.h"

/*
 * Refuses what vgpud would refuse at every start of the domain. A lack of room is no such reason:
 * there may be room then. Neither is a vGPU of that UUID.
 */
static gboolean check_request(const Client *client, GVariant *request, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(request);
    g_autoptr(GVariant) vgpus = NULL;
    g_autoptr(GError) cause = NULL;

    g_variant_dict_insert(&dict, "DryRun", "b", TRUE);
    vgpus = client_get(client, "CreateVgpus", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                       NULL, &cause);
    if (vgpus)
        return TRUE;
    if (g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_NO_ROOM) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_QUOTA) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        g_dbus_error_strip_remote_error(cause);
        g_printerr("vgpuctl: the domain could not start with this vGPU now: %s\n", cause->message);
        return TRUE;
    }
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean define(const VmLink *link, const char *xml, GError **error)
{
    virDomainPtr defined = virDomainDefineXML(link->connection, xml);

    if (!defined)
        return vm_link_set_error("libvirt refuses the domain with one more vGPU", error);
    virDomainFree(defined);
    return TRUE;
}

static char *uuid_of(GVariant *request)
{
    g_autofree const char **uuids = NULL;

    g_variant_lookup(request, "Uuids", "^a&s", &uuids);
    return g_ascii_strdown(uuids[0], -1);
}

gboolean domain_prepare_command(Client *client, const Options *options, char **args, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    g_autoptr(GVariant) request = NULL;
    g_autoptr(VmLink) link = NULL;
    g_autofree char *uuid = NULL;
    g_autofree char *xml = NULL;
    g_autofree char *edited = NULL;
    /* What is stored keeps its passwords; what is printed has none. */
    guint flags = VIR_DOMAIN_XML_INACTIVE | (vgpu_options_dry_run() ? 0 : VIR_DOMAIN_XML_SECURE);

    if (!vgpu_options_for_domain(&dict, error))
        return FALSE;
    request = g_variant_ref_sink(g_variant_dict_end(&dict));
    if (!check_request(client, request, error))
        return FALSE;
    link = vm_link_open(vgpu_options_uri(), args[0], error);
    xml = link ? vm_link_xml(link, flags, error) : NULL;
    if (!xml)
        return FALSE;
    uuid = uuid_of(request);
    edited = domain_edit_add(xml, uuid, request, error);
    if (!edited || (!vgpu_options_dry_run() && !define(link, edited, error)))
        return FALSE;
    if (vgpu_options_dry_run())
        fputs(edited, options->out);
    else
        output_line(options, "Domain %s will have vGPU %s at every start.", vm_link_name(link),
                    uuid);
    return TRUE;
}
