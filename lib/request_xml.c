/* SPDX-License-Identifier: MIT */
#include "lib/request_xml.h"

#include "lib/units.h"
#include "lib/xml.h"

/**
 * struct attribute
 * @key: of CreateVgpus
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

/* Keys that are no attributes: the UUID is one of its own, and a trial is of now. */
static const char *const others[] = {"Uuids", "DryRun", NULL};

void domain_request_free(void *data)
{
    DomainRequest *request = data;

    g_free(request->uuid);
    g_clear_pointer(&request->dict, g_variant_unref);
    g_free(request);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DomainRequest, domain_request_free)

static gboolean refuse(GError **error, const char *name, const char *value, const char *rule)
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

/* Floating; NULL: @text is not what the attribute may be. */
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

static const struct attribute *find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(attributes); i++)
        if (g_str_equal(attributes[i].name, name))
            return &attributes[i];
    return NULL;
}

static gboolean is_key(const char *key)
{
    for (gsize i = 0; i < G_N_ELEMENTS(attributes); i++)
        if (g_str_equal(attributes[i].key, key))
            return TRUE;
    return FALSE;
}

static gboolean add(GVariantDict *dict, const char *name, const char *text, GError **error)
{
    const struct attribute *attribute = find(name);
    GVariant *value = attribute ? value_of(attribute, text) : NULL;

    if (!attribute)
        return refuse(error, name, text,
                      "there is no such attribute; vgpu-qemu-hook(8) lists those that there are");
    if (!value)
        return refuse(error, name, text,
                      attribute->type[0] == 't' ? "it must be " SIZE_RULE
                                                : "it must be a number from 0 on");
    g_variant_dict_insert_value(dict, attribute->key, value);
    return TRUE;
}

static gboolean read_uuid(DomainRequest *request, xmlNode *node, GError **error)
{
    g_autofree char *uuid = xml_attribute(node, "uuid");

    if (!uuid || !g_uuid_string_is_valid(uuid))
        return refuse(error, "uuid", uuid ? uuid : "",
                      "it must be the UUID of one of the domain's <hostdev type='mdev'>");
    request->uuid = g_ascii_strdown(uuid, -1);
    return TRUE;
}

DomainRequest *request_of_xml(xmlNode *node, GError **error)
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
        if (!add(&dict, name, text, error))
            return NULL;
    }
    if (!g_variant_dict_contains(&dict, "Type")) {
        refuse(error, "type", "",
               "it must be a type; \"vgpuctl type list\" shows those that there are");
        return NULL;
    }
    g_variant_dict_insert_value(&dict, "Uuids",
                                g_variant_new_strv((const char *const[]){request->uuid}, 1));
    request->dict = g_variant_ref_sink(g_variant_dict_end(&dict));
    return g_steal_pointer(&request);
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

/* What could not be written would be another request when the domain starts. */
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
            "the domain runs (\"vgpuctl vgpu set\")",
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
