/* SPDX-License-Identifier: MIT */
#include "lib/domain.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>

#include "lib/conf.h"

/* Reading untrusted XML, with libxml2. */

/* Entities cannot do harm: reading ends at a document type. */
static void refuse_document_type(void *data, const xmlChar *name, const xmlChar *external,
                                 const xmlChar *system)
{
    xmlParserCtxt *context = data;

    (void)name;
    (void)external;
    (void)system;
    *(gboolean *)context->_private = TRUE;
    xmlStopParser(context);
}

static char *why_not(xmlParserCtxt *context, gboolean has_type)
{
    const xmlError *last = xmlCtxtGetLastError(context);
    g_autofree char *message = NULL;

    if (has_type)
        return g_strdup("it has a document type (<!DOCTYPE>), which no domain has");
    if (!last || !last->message)
        return g_strdup("it is empty");
    message = g_strdelimit(g_strstrip(g_strdup(last->message)), "\n", ' ');
    return g_strdup_printf("%s in line %d", message, last->line);
}

xmlDoc *xml_parse(const char *text, gsize length, char **why)
{
    xmlParserCtxt *context = xmlNewParserCtxt();
    gboolean has_type = FALSE;
    xmlDoc *doc;

    if (!context) {
        *why = g_strdup("there is no memory to read it");
        return NULL;
    }
    context->_private = &has_type;
    context->sax->internalSubset = refuse_document_type;
    doc = xmlCtxtReadMemory(context, text, (int)length, "domain.xml", NULL,
                            XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (!doc || has_type) {
        *why = why_not(context, has_type);
        g_clear_pointer(&doc, xmlFreeDoc);
    }
    xmlFreeParserCtxt(context);
    return doc;
}

gboolean xml_is(const xmlNode *node, const char *name, const char *space)
{
    const char *own = node->ns ? (const char *)node->ns->href : NULL;

    return node->type == XML_ELEMENT_NODE && g_str_equal((const char *)node->name, name) &&
           g_strcmp0(own, space) == 0;
}

static xmlNode *first_of(xmlNode *node, const char *name)
{
    while (node && !xml_is(node, name, NULL))
        node = node->next;
    return node;
}

xmlNode *xml_child(const xmlNode *node, const char *name)
{
    return node ? first_of(node->children, name) : NULL;
}

static xmlNode *xml_next(const xmlNode *node, const char *name)
{
    return first_of(node->next, name);
}

/* To be freed by g_free(); NULL: none. */
static char *xml_attribute(xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
    char *copy = g_strdup((const char *)value);

    xmlFree(value);
    return copy;
}

/* Whether the attribute exists and has that value. */
static gboolean xml_attribute_is(xmlNode *node, const char *name, const char *value)
{
    g_autofree char *found = xml_attribute(node, name);

    return g_strcmp0(found, value) == 0;
}

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

/* libvirt writes them as 0x01, and accepts 1 as well. */
static guint hex_number(xmlNode *node, const char *name)
{
    g_autofree char *text = xml_attribute(node, name);

    return text ? (guint)g_ascii_strtoull(text, NULL, 0) : 0;
}

static void add_pci(Domain *domain, xmlNode *hostdev, xmlNode *address)
{
    DomainPci *pci = g_new0(DomainPci, 1);

    pci->address = g_strdup_printf("%04x:%02x:%02x.%x", hex_number(address, "domain"),
                                   hex_number(address, "bus"), hex_number(address, "slot"),
                                   hex_number(address, "function"));
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

        if (address && xml_attribute_is(address, "type", "pci") &&
            hex_number(address, "bus") == port)
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
        if (!has_device(devices, hex_number(at, "index")) && !is_cold(at))
            domain->free_ports++;
    }
}

static gboolean refuse_attribute(GError **error, const char *name, const char *value,
                                 const char *rule)
{
    g_set_error(error, DOMAIN_ERROR, DOMAIN_ERROR_REQUEST,
                "the domain's <vgpu:request> has %s=\"%s\": %s", name, value, rule);
    return FALSE;
}

static GVariant *size_of(const char *text)
{
    guint64 bytes = 0;

    return g_str_equal(text, "0") || size_parse(text, &bytes) ? g_variant_new_uint64(bytes) : NULL;
}

static GVariant *number_of(const char *text, const char *type)
{
    guint64 number;

    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT, &number, NULL))
        return NULL;
    return *type == 'u' ? g_variant_new_uint32((guint32)number)
                        : g_variant_new_int32((gint32)number);
}

/**
 * struct attribute
 * @key: of CreateSlices
 * @type: there; "as" has the values that commas separate
 */
static const struct attribute {
    const char *name;
    const char *key;
    const char *type;
} attributes[] = {
    {"type", "Type", "s"},       {"vram", "Vram", "t"},
    {"window", "Window", "t"},   {"weight", "Weight", "u"},
    {"cap", "Cap", "u"},         {"priority", "Priority", "u"},
    {"compute", "Compute", "u"}, {"oversubscribe", "Oversubscribe", "t"},
    {"class", "Class", "s"},     {"tenant", "Tenant", "s"},
    {"gpu", "Gpus", "as"},       {"not-gpu", "NotGpus", "as"},
    {"policy", "Policy", "s"},   {"numa-node", "NumaNode", "i"},
    {"job", "Job", "s"},         {"replica", "Replica", "s"},
    {"engines", "Engines", "s"}, {"display", "Display", "u"},
};

static const struct attribute *find_attribute(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(attributes); i++)
        if (g_str_equal(attributes[i].name, name))
            return &attributes[i];
    return NULL;
}

/* Floating; NULL: @text is not a valid value of the attribute. */
static GVariant *value_of(const struct attribute *attribute, const char *text)
{
    g_auto(GStrv) list = NULL;

    switch (attribute->type[0]) {
    case 's':
        return g_variant_new_string(text);
    case 't':
        return size_of(text);
    case 'a':
        list = g_strsplit(text, ",", -1);
        return g_variant_new_strv((const char *const *)list, -1);
    default:
        return number_of(text, attribute->type);
    }
}

static gboolean add_attribute(GVariantDict *dict, const char *name, const char *text,
                              GError **error)
{
    const struct attribute *attribute = find_attribute(name);
    GVariant *value = attribute ? value_of(attribute, text) : NULL;

    if (!attribute)
        return refuse_attribute(
            error, name, text,
            "there is no such attribute; vgpu-qemu-hook(8) lists the attributes");
    if (!value)
        return refuse_attribute(error, name, text,
                                attribute->type[0] == 't' ? "it must be " SIZE_RULE
                                                          : "it must be a number from 0 on");
    g_variant_dict_insert_value(dict, attribute->key, value);
    return TRUE;
}

/* For a GPtrArray of them. */
static void domain_request_free(void *data)
{
    DomainRequest *request = data;

    g_free(request->uuid);
    g_clear_pointer(&request->dict, g_variant_unref);
    g_free(request);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DomainRequest, domain_request_free)

static gboolean read_uuid(DomainRequest *request, xmlNode *node, GError **error)
{
    g_autofree char *uuid = xml_attribute(node, "uuid");

    if (!uuid || !g_uuid_string_is_valid(uuid))
        return refuse_attribute(error, "uuid", uuid ? uuid : "",
                                "it must be the UUID of one of the domain's <hostdev type='mdev'>");
    request->uuid = g_ascii_strdown(uuid, -1);
    return TRUE;
}

/*
 * <vgpu:request …/> in a domain's metadata: its attributes are the options of
 * "vgpuctl slice create".
 */
static DomainRequest *request_of_xml(xmlNode *node, GError **error)
{
    g_autoptr(DomainRequest) request = g_new0(DomainRequest, 1);
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    if (!read_uuid(request, node, error))
        return NULL;
    for (const xmlAttr *at = node->properties; at; at = at->next) {
        const char *name = (const char *)at->name;
        g_autofree char *text = xml_attribute(node, name);

        if (at->ns || !text || g_str_equal(name, "uuid"))
            continue;
        if (!add_attribute(&dict, name, text, error))
            return NULL;
    }
    if (!g_variant_dict_contains(&dict, "Type")) {
        refuse_attribute(error, "type", "",
                         "it must be a type; \"vgpuctl type list\" lists the existing ones");
        return NULL;
    }
    g_variant_dict_insert_value(&dict, "Uuids",
                                g_variant_new_strv((const char *const[]){request->uuid}, 1));
    request->dict = g_variant_ref_sink(g_variant_dict_end(&dict));
    return g_steal_pointer(&request);
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

/* Whether a NUMA node, or the memory as a whole, is shared with other processes. */
static gboolean memory_is_shared(const xmlNode *root, const xmlNode *backing)
{
    xmlNode *access = xml_child(backing, "access");
    const xmlNode *numa = xml_child(xml_child(root, "cpu"), "numa");

    for (xmlNode *cell = xml_child(numa, "cell"); cell; cell = xml_next(cell, "cell"))
        if (xml_attribute_is(cell, "memAccess", "shared"))
            return TRUE;
    return access && xml_attribute_is(access, "mode", "shared");
}

/* libvirt takes a file for memory that is shared, unless it is huge pages or a memfd. */
static gboolean memory_is_in_file(const xmlNode *root)
{
    const xmlNode *backing = xml_child(root, "memoryBacking");
    xmlNode *source = xml_child(backing, "source");

    return memory_is_shared(root, backing) && !xml_child(backing, "hugepages") &&
           !(source && xml_attribute_is(source, "type", "memfd"));
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
    domain->memory_in_file = memory_is_in_file(root);
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

/* Keys without an attribute: the UUID has its own, and a trial concerns the present only. */
static const char *const others[] = {"Uuids", "DryRun", NULL};

static gboolean is_key(const char *key)
{
    for (gsize i = 0; i < G_N_ELEMENTS(attributes); i++)
        if (g_str_equal(attributes[i].key, key))
            return TRUE;
    return FALSE;
}

static char *text_of(GVariant *value)
{
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING))
        return g_variant_dup_string(value, NULL);
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING_ARRAY)) {
        g_autofree const char **list = g_variant_get_strv(value, NULL);

        return g_strjoinv(",", (char **)list);
    }
    return g_variant_print(value, FALSE);
}

/* An attribute that could not be written would make a different request when the domain starts. */
static gboolean check_keys(GVariant *dict, GError **error)
{
    GVariantIter iter;
    GVariant *value;
    const char *key;

    g_variant_iter_init(&iter, dict);
    while (g_variant_iter_next(&iter, "{&sv}", &key, &value)) {
        g_variant_unref(value);
        if (is_key(key) || g_strv_contains(others, key))
            continue;
        g_set_error(
            error, DOMAIN_ERROR, DOMAIN_ERROR_REQUEST,
            "%s can't be written into a domain's XML; leave it out, or change the vGPU when "
            "the domain runs (\"vgpuctl slice set\")",
            key);
        return FALSE;
    }
    return TRUE;
}

gboolean request_to_xml(GVariant *dict, xmlNode *node, GError **error)
{
    if (!check_keys(dict, error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(attributes); i++) {
        g_autoptr(GVariant) value = g_variant_lookup_value(dict, attributes[i].key, NULL);
        g_autofree char *text = value ? text_of(value) : NULL;

        if (text)
            xmlNewProp(node, (const xmlChar *)attributes[i].name, (const xmlChar *)text);
    }
    return TRUE;
}
