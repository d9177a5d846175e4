/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/domain_edit.h"

#include <string.h>

#include "host-agent/vgpuctl/client.h"
#include "lib/domain.h"
#include "lib/xml.h"

char *domain_edit_hostdev(const char *uuid)
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

char *domain_edit_add(const char *xml, const char *uuid, GVariant *request, GError **error)
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
