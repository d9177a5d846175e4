/* SPDX-License-Identifier: MIT */
/* vgpuctl domain prepare, attach, detach: vGPUs of VMs. */
#include <glib.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/domain.h"
#include "lib/vgpu.h"
#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/libvirt.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/output.h"
#include "host-agent/vgpuctl/slice.h"
#include "host-agent/vgpuctl/slice_options.h"
#include "host-agent/vgpuctl/window_room.h"

/* A vGPU in a domain's XML. */

/* The <hostdev> of a vGPU, as libvirt attaches it. To be freed. */
static char *domain_edit_hostdev(const char *uuid)
{
    return g_strdup_printf("<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>"
                           "<source><address uuid='%s'/></source></hostdev>",
                           uuid);
}

static xmlNode *child_of(xmlNode *node, const char *name)
{
    xmlNode *child = xml_child(node, name);

    return child ? child : xmlNewChild(node, NULL, (const xmlChar *)name, NULL);
}

/* If the VM shows it, firmware included. */
static void add_display(xmlNode *hostdev, GVariant *request)
{
    guint display = 0;

    if (!g_variant_lookup(request, "Display", "u", &display) || !display)
        return;
    xmlNewProp(hostdev, (const xmlChar *)"display", (const xmlChar *)"on");
    xmlNewProp(hostdev, (const xmlChar *)"ramfb", (const xmlChar *)"on");
}

static void add_hostdev(xmlNode *root, const char *uuid, GVariant *request)
{
    xmlNode *devices = child_of(root, "devices");
    xmlNode *hostdev = xmlNewChild(devices, NULL, (const xmlChar *)"hostdev", NULL);
    xmlNode *source = xmlNewChild(hostdev, NULL, (const xmlChar *)"source", NULL);
    xmlNode *address = xmlNewChild(source, NULL, (const xmlChar *)"address", NULL);

    xmlNewProp(hostdev, (const xmlChar *)"mode", (const xmlChar *)"subsystem");
    xmlNewProp(hostdev, (const xmlChar *)"type", (const xmlChar *)"mdev");
    xmlNewProp(hostdev, (const xmlChar *)"managed", (const xmlChar *)"no");
    xmlNewProp(hostdev, (const xmlChar *)"model", (const xmlChar *)"vfio-pci");
    add_display(hostdev, request);
    xmlNewProp(address, (const xmlChar *)"uuid", (const xmlChar *)uuid);
}

/* The element around all requests. libvirt keeps one of a namespace, so a single request goes into
 * it. */
static xmlNode *requests_of(xmlNode *metadata)
{
    xmlNode *requests = NULL;
    xmlNode *next;

    for (xmlNode *at = metadata->children; at && !requests; at = at->next)
        if (xml_is(at, "requests", DOMAIN_NAMESPACE))
            requests = at;
    if (requests)
        return requests;
    requests = xmlNewNode(NULL, (const xmlChar *)"requests");
    xmlSetNs(requests,
             xmlNewNs(requests, (const xmlChar *)DOMAIN_NAMESPACE, (const xmlChar *)"vgpu"));
    for (xmlNode *at = metadata->children; at; at = next) {
        next = at->next;
        if (!xml_is(at, "request", DOMAIN_NAMESPACE))
            continue;
        xmlUnlinkNode(at);
        xmlAddChild(requests, at);
    }
    return xmlAddChild(metadata, requests);
}

static gboolean add_request(xmlNode *root, const char *uuid, GVariant *dict, GError **error)
{
    xmlNode *requests = requests_of(child_of(root, "metadata"));
    xmlNode *request = xmlNewChild(requests, requests->ns, (const xmlChar *)"request", NULL);

    xmlNewProp(request, (const xmlChar *)"uuid", (const xmlChar *)uuid);
    return request_to_xml(dict, request, error);
}

static gboolean check_new(const char *xml, const char *uuid, GError **error)
{
    g_autoptr(Domain) domain = domain_parse(xml, strlen(xml), error);

    if (!domain)
        return FALSE;
    if (!g_strv_contains((const char *const *)domain->mdevs, uuid) && !domain_request(domain, uuid))
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "the domain already has vGPU %s", uuid);
    return FALSE;
}

/* The elements below @from that are requests, unlinked and freed. */
static void drop_requests(xmlNode *from)
{
    xmlNode *next;

    for (xmlNode *at = from ? from->children : NULL; at; at = next) {
        next = at->next;
        if (!xml_is(at, "request", DOMAIN_NAMESPACE) && !xml_is(at, "requests", DOMAIN_NAMESPACE))
            continue;
        xmlUnlinkNode(at);
        xmlFreeNode(at);
    }
}

static gboolean is_of_request(const Domain *domain, const xmlNode *hostdev)
{
    const xmlNode *source = xml_child(hostdev, "source");
    const xmlNode *address = source ? xml_child(source, "address") : NULL;
    xmlChar *uuid = address ? xmlGetProp(address, (const xmlChar *)"uuid") : NULL;
    g_autofree char *lower = uuid ? g_ascii_strdown((const char *)uuid, -1) : NULL;

    xmlFree(uuid);
    return lower && domain_request(domain, lower);
}

/*
 * @xml without the vGPUs that the domain's metadata requests, and without the requests; devices
 * that nobody requests stay. NULL with an error if it cannot be read. To be freed by g_free().
 */
static char *domain_edit_drop(const char *xml, GError **error)
{
    g_autoptr(Domain) domain = domain_parse(xml, strlen(xml), error);
    g_autofree char *why = NULL;
    g_autoptr(xmlDoc) doc = domain ? xml_parse(xml, strlen(xml), &why) : NULL;
    xmlNode *devices, *next;
    xmlChar *text = NULL;
    char *edited;
    int length;

    if (!doc)
        return NULL;
    devices = child_of(xmlDocGetRootElement(doc), "devices");
    for (xmlNode *at = devices->children; at; at = next) {
        next = at->next;
        if (!xml_is(at, "hostdev", NULL) || !is_of_request(domain, at))
            continue;
        xmlUnlinkNode(at);
        xmlFreeNode(at);
    }
    drop_requests(xml_child(xmlDocGetRootElement(doc), "metadata"));
    xmlDocDumpMemory(doc, &text, &length);
    edited = g_strdup((const char *)text);
    xmlFree(text);
    return edited;
}

/*
 * @xml of a domain with one more vGPU: its <hostdev>, and in <metadata> the request for the hook.
 * @request: of CreateSlices, a{sv}. NULL with VGPUCTL_FAILED if the XML cannot be read or has
 * a device of that UUID already. To be freed by g_free().
 */
static char *domain_edit_add(const char *xml, const char *uuid, GVariant *request, GError **error)
{
    g_autofree char *why = NULL;
    g_autoptr(xmlDoc) doc = NULL;
    xmlChar *text = NULL;
    char *edited;
    int length;

    if (!check_new(xml, uuid, error))
        return NULL;
    doc = xml_parse(xml, strlen(xml), &why);
    add_hostdev(xmlDocGetRootElement(doc), uuid, request);
    if (!add_request(xmlDocGetRootElement(doc), uuid, request, error))
        return NULL;
    xmlDocDumpMemory(doc, &text, &length);
    edited = g_strdup((const char *)text);
    xmlFree(text);
    return edited;
}

/* vgpuctl domain prepare: a domain's definition gets a vGPU, which libvirt's hook creates when the
 * domain starts. */

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
    g_variant_dict_insert(&dict, "Door", "s", "vm");
    vgpus = slices_create(client, g_variant_dict_end(&dict), NULL, &cause);
    if (vgpus)
        return TRUE;
    if (g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_NO_ROOM) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_NO_ROOM_NOW) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_QUOTA) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        g_dbus_error_strip_remote_error(cause);
        g_printerr("vgpuctl: the domain could not start with this vGPU now: %s\n", cause->message);
        return TRUE;
    }
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean define_domain(const VmLink *link, const char *xml, GError **error)
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
    guint flags = VIR_DOMAIN_XML_INACTIVE | (slice_options_dry_run() ? 0 : VIR_DOMAIN_XML_SECURE);

    if (!slice_options_for_domain(&dict, error))
        return FALSE;
    request = g_variant_ref_sink(g_variant_dict_end(&dict));
    if (!check_request(client, request, error))
        return FALSE;
    link = vm_link_open(slice_options_uri(), args[0], error);
    xml = link ? vm_link_xml(link, flags, error) : NULL;
    if (!xml)
        return FALSE;
    if (slice_options_replace()) {
        g_autofree char *whole = g_steal_pointer(&xml);

        xml = domain_edit_drop(whole, error);
        if (!xml)
            return FALSE;
    }
    uuid = uuid_of(request);
    edited = domain_edit_add(xml, uuid, request, error);
    if (!edited || (!slice_options_dry_run() && !define_domain(link, edited, error)))
        return FALSE;
    if (slice_options_dry_run())
        fputs(edited, options->out);
    else
        output_line(options, "Domain %s will have vGPU %s at every start.", vm_link_name(link),
                    uuid);
    return TRUE;
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

/* UUIDs of the domain's mediated devices that are vGPUs, which @domain owns. @vgpus: of FindSlices.
 */
static GPtrArray *vgpus_of(const Domain *domain, GVariant *vgpus)
{
    GPtrArray *found = g_ptr_array_new();

    for (char **uuid = domain->mdevs; *uuid; uuid++) {
        g_autoptr(GVariant) vgpu = find_vgpu(vgpus, *uuid);

        if (vgpu)
            g_ptr_array_add(found, *uuid);
    }
    return found;
}

/* vgpuctl attach: a vGPU for a running VM, in one step. */

static gboolean check_port(const VmLink *link, const Domain *domain, GError **error)
{
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

static gboolean plug_vgpu(const VmLink *link, const char *uuid, const Options *options,
                          GError **error)
{
    g_autofree char *xml = domain_edit_hostdev(uuid);

    if (!vgpu_wait_ready(options->root, uuid, VGPU_READY_TIMEOUT_MS, error))
        return FALSE;
    if (virDomainAttachDeviceFlags(link->domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
    return vm_link_set_error("libvirt refuses to attach it", error);
}

static void remove_made(const Client *client, const char *uuid)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answer =
        client_call(client, "RemoveSlice", g_variant_new("(sa{sv})", uuid, NULL),
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

/* @room: for its window; 0: not known. */
static GVariant *make_vgpu(Client *client, const VmLink *link, guint64 room, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);
    GVariant *vgpus;
    gboolean is_fitted;

    if (!slice_options_for_domain(&dict, error) || !check_display(&dict, error) ||
        !window_room_fit(&dict, room, link, error))
        return NULL;
    is_fitted = g_variant_dict_contains(&dict, "WindowMost");
    g_variant_dict_insert(&dict, "Domain", "s", vm_link_name(link));
    g_variant_dict_insert(&dict, "Door", "s", "vm");
    vgpus = slices_create(client, g_variant_dict_end(&dict), "creating a vGPU", error);
    if (vgpus && is_fitted)
        window_room_tell(client, link, room, vgpus);
    return vgpus;
}

/* The running domain; NULL: no vGPU can be attached to it. */
static Domain *domain_to_attach_to(const VmLink *link, GError **error)
{
    g_autoptr(Domain) domain = NULL;

    if (!vm_link_check_running(link, "\"vgpuctl domain prepare\" gives it a vGPU at its next start",
                               error))
        return NULL;
    domain = vm_link_domain(link, error);
    return domain && check_port(link, domain, error) ? g_steal_pointer(&domain) : NULL;
}

/* Mesa's Venus takes one virtio-gpu, so a second vGPU does nothing for programs as they are. */
static void tell_of_others(const VmLink *link, const Domain *domain, GVariant *vgpus)
{
    g_autoptr(GPtrArray) others = vgpus_of(domain, vgpus);

    if (others->len)
        g_printerr("vgpuctl: domain %s has other vGPUs, too (%u). A program in its guest uses the "
                   "first one that it may open; \"Several vGPUs in one guest\" in "
                   "docs/vms.md says how to choose another\n",
                   vm_link_name(link), others->len);
}

gboolean attach_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(VmLink) link = vm_link_open(slice_options_uri(), args[0], error);
    g_autoptr(Domain) domain = link ? domain_to_attach_to(link, error) : NULL;
    g_autoptr(GVariant) known = NULL;
    guint64 room = domain ? window_room(link, domain) : 0;
    g_autoptr(GVariant) vgpus = NULL;
    g_autofree char *uuid = NULL;

    known = domain ? slices_get(client, vgpu_doors, NULL, error) : NULL;
    vgpus = known ? make_vgpu(client, link, room, error) : NULL;
    if (!vgpus)
        return FALSE;
    uuid = made_uuid(vgpus);
    if (!slice_options_dry_run() && !plug_vgpu(link, uuid, options, error)) {
        g_prefix_error(error, "cannot attach vGPU %s to domain %s, so it is removed again: ", uuid,
                       vm_link_name(link));
        remove_made(client, uuid);
        return FALSE;
    }
    if (options->format != FORMAT_TABLE)
        listing_print(options, &vgpu_listing, vgpus);
    else
        output_line(options, "vGPU %s %s domain %s.", uuid,
                    slice_options_dry_run() ? "would be created and attached to" : "is attached to",
                    vm_link_name(link));
    tell_of_others(link, domain, known);
    return TRUE;
}

/* vgpuctl detach: takes a vGPU from a running VM. */

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
static gboolean unplug_vgpu(const VmLink *link, const char *uuid, GError **error)
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

/* The one vGPU that the domain has; other mediated devices don't count. */
static char *only_vgpu(const VmLink *link, GVariant *vgpus, GError **error)
{
    g_autoptr(Domain) domain = vm_link_domain(link, error);
    g_autoptr(GPtrArray) found = domain ? vgpus_of(domain, vgpus) : NULL;
    g_autofree char *all = NULL;

    if (!found)
        return NULL;
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
static char *choose_vgpu(const VmLink *link, GVariant *vgpus, const char *name, GError **error)
{
    g_autoptr(GVariant) vgpu = name ? find_vgpu(vgpus, name) : NULL;
    g_autofree char *uuid = NULL;
    int has;

    if (!name)
        return only_vgpu(link, vgpus, error);
    uuid = vgpu ? dict_text(vgpu, "Uuid") : g_ascii_strdown(name, -1);
    has = has_vgpu(link, uuid, error);
    if (has == 0)
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
            "domain %s has no vGPU %s; \"vgpuctl slice list\" shows which VM has which vGPU",
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
            client_call(client, "RemoveSlice", g_variant_new("(sa{sv})", uuid, NULL),
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
    g_autoptr(VmLink) link = vm_link_open(slice_options_uri(), args[0], error);
    g_autoptr(GVariant) vgpus = NULL;
    g_autofree char *uuid = NULL;
    gboolean made;

    if (!link || !vm_link_check_running(link, "\"virsh edit\" removes a device from it", error))
        return FALSE;
    vgpus = slices_get(client, vgpu_doors, NULL, error);
    if (!vgpus)
        return FALSE;
    uuid = choose_vgpu(link, vgpus, args[1], error);
    if (!uuid || !unplug_vgpu(link, uuid, error))
        return FALSE;
    made = is_made_for(vgpus, uuid, vm_link_name(link));
    if (made && !remove_vgpu(client, uuid, error))
        return FALSE;
    output_line(options, "vGPU %s is detached from domain %s%s.", uuid, vm_link_name(link),
                made ? " and removed" : "; others can use it");
    return TRUE;
}
