/* SPDX-License-Identifier: MIT */
#include "lib/domain.h"

#include "lib/request_xml.h"
#include "lib/xml.h"

G_DEFINE_QUARK(domain - error - quark, domain_error)

static void free_pci(void *data)
{
    DomainPci *pci = data;

    g_free(pci->address);
    g_free(pci);
}

void domain_free(Domain *domain)
{
    g_strfreev(domain->mdevs);
    g_clear_pointer(&domain->requests, g_ptr_array_unref);
    g_clear_pointer(&domain->pci, g_ptr_array_unref);
    g_free(domain);
}

const DomainRequest *domain_request(const Domain *domain, const char *uuid)
{
    for (guint i = 0; i < domain->requests->len; i++) {
        const DomainRequest *request = g_ptr_array_index(domain->requests, i);

        if (g_str_equal(request->uuid, uuid))
            return request;
    }
    return NULL;
}

/* libvirt writes them as 0x01, and takes 1 as well. */
static guint number(xmlNode *node, const char *name)
{
    g_autofree char *text = xml_attribute(node, name);

    return text ? (guint)g_ascii_strtoull(text, NULL, 0) : 0;
}

static void add_pci(Domain *domain, xmlNode *hostdev, xmlNode *address)
{
    DomainPci *pci = g_new0(DomainPci, 1);

    pci->address =
        g_strdup_printf("%04x:%02x:%02x.%x", number(address, "domain"), number(address, "bus"),
                        number(address, "slot"), number(address, "function"));
    pci->managed = xml_attribute_is(hostdev, "managed", "yes");
    g_ptr_array_add(domain->pci, pci);
}

static void read_hostdevs(Domain *domain, xmlNode *devices)
{
    g_autoptr(GStrvBuilder) mdevs = g_strv_builder_new();

    for (xmlNode *at = xml_child(devices, "hostdev"); at; at = xml_next(at, "hostdev")) {
        xmlNode *source = xml_child(at, "source");
        xmlNode *address = source ? xml_child(source, "address") : NULL;
        g_autofree char *uuid = address ? xml_attribute(address, "uuid") : NULL;

        if (!address || !xml_attribute_is(at, "mode", "subsystem"))
            continue;
        if (xml_attribute_is(at, "type", "pci"))
            add_pci(domain, at, address);
        /* It becomes part of a path. */
        else if (xml_attribute_is(at, "type", "mdev") && uuid && g_uuid_string_is_valid(uuid))
            g_strv_builder_take(mdevs, g_ascii_strdown(uuid, -1));
    }
    g_strfreev(domain->mdevs);
    domain->mdevs = g_strv_builder_end(mdevs);
}

/* A device sits in the port whose index is its bus. */
static gboolean has_device(xmlNode *devices, guint port)
{
    for (xmlNode *at = devices->children; at; at = at->next) {
        xmlNode *address = at->type == XML_ELEMENT_NODE ? xml_child(at, "address") : NULL;

        if (address && xml_attribute_is(address, "type", "pci") && number(address, "bus") == port)
            return TRUE;
    }
    return FALSE;
}

/* <target hotplug='off'/>: nothing can be plugged in while the VM runs. */
static gboolean is_cold(xmlNode *controller)
{
    xmlNode *target = xml_child(controller, "target");

    return target && xml_attribute_is(target, "hotplug", "off");
}

static void count_ports(Domain *domain, xmlNode *devices)
{
    for (xmlNode *at = xml_child(devices, "controller"); at; at = xml_next(at, "controller")) {
        if (!xml_attribute_is(at, "type", "pci"))
            continue;
        domain->pcie = domain->pcie || xml_attribute_is(at, "model", "pcie-root");
        if (!(xml_attribute_is(at, "model", "pcie-root-port") ||
              xml_attribute_is(at, "model", "pcie-switch-downstream-port")))
            continue;
        domain->ports++;
        if (!has_device(devices, number(at, "index")) && !is_cold(at))
            domain->free_ports++;
    }
}

static gboolean read_requests(Domain *domain, const xmlNode *node, GError **error)
{
    for (xmlNode *at = node ? node->children : NULL; at; at = at->next) {
        if (xml_is(at, "requests", DOMAIN_NAMESPACE)) {
            if (!read_requests(domain, at, error))
                return FALSE;
        } else if (xml_is(at, "request", DOMAIN_NAMESPACE)) {
            DomainRequest *request = request_of_xml(at, error);

            if (!request)
                return FALSE;
            g_ptr_array_add(domain->requests, request);
        }
    }
    return TRUE;
}

static gboolean set_error(GError **error, const char *why)
{
    g_set_error(error, DOMAIN_ERROR, DOMAIN_ERROR_XML, "the domain's XML can't be read: %s", why);
    return FALSE;
}

static gboolean read_document(Domain *domain, xmlDoc *doc, GError **error)
{
    const xmlNode *root = xmlDocGetRootElement(doc);
    xmlNode *devices;

    if (!root || !xml_is(root, "domain", NULL))
        return set_error(error, "it has no <domain>");
    devices = xml_child(root, "devices");
    if (devices) {
        read_hostdevs(domain, devices);
        count_ports(domain, devices);
    }
    return read_requests(domain, xml_child(root, "metadata"), error);
}

Domain *domain_parse(const char *xml, gsize length, GError **error)
{
    g_autoptr(Domain) domain = g_new0(Domain, 1);
    g_autofree char *why = NULL;
    g_autoptr(xmlDoc) doc = NULL;

    domain->requests = g_ptr_array_new_with_free_func(domain_request_free);
    domain->pci = g_ptr_array_new_with_free_func(free_pci);
    domain->mdevs = g_new0(char *, 1);
    if (length > DOMAIN_XML_MAX) {
        set_error(error, "it has more than 16 MiB");
        return NULL;
    }
    doc = xml_parse(xml, length, &why);
    if (!doc) {
        set_error(error, why);
        return NULL;
    }
    return read_document(domain, doc, error) ? g_steal_pointer(&domain) : NULL;
}
