/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/attributes.h"

#include <string.h>

#include "host-agent/model/slice.h"
#include "lib/tenants_conf.h"

#define PREFIX     "vgpu/"
#define MIN_WINDOW (G_GUINT64_CONSTANT(1) << 20)
#define MAX_WINDOW (G_GUINT64_CONSTANT(1) << 36)
/* More than any GPU has, and small enough to be added up. */
#define MAX_BYTES (G_GUINT64_CONSTANT(1) << 50)

static gboolean is_class(const char *text)
{
    SliceClass class;

    return slice_class_parse(text, &class);
}

const Attribute attributes[ATTRIBUTES] = {
    [ATTRIBUTE_VRAM] = {PREFIX "vram_bytes", "Vram", 't', 1, MAX_BYTES, NULL, NULL},
    [ATTRIBUTE_WINDOW] = {PREFIX "window_bytes", "Window", 't', MIN_WINDOW, MAX_WINDOW, NULL, NULL},
    [ATTRIBUTE_WEIGHT] = {PREFIX "weight", "Weight", 'u', 1, 10000, NULL, NULL},
    [ATTRIBUTE_CAP] = {PREFIX "cap", "Cap", 'u', 1, 100, NULL, NULL},
    [ATTRIBUTE_PRIORITY] = {PREFIX "priority", "Priority", 'u', 0, 15, NULL, NULL},
    [ATTRIBUTE_DISPLAY] = {PREFIX "display", NULL, 'u', 0, 1, NULL, NULL},
    [ATTRIBUTE_TENANT] =
        {PREFIX "tenant", "Tenant", 's', 0, 0, tenant_name_valid,
         "up to 63 letters, digits, \"_\", \"-\" and \".\", a letter or digit first "
         "(for none, leave it out)"},
    [ATTRIBUTE_CLASS] = {PREFIX "class", "Class", 's', 0, 0, is_class,
                         "guaranteed, burstable or best-effort"},
    [ATTRIBUTE_OVERSUBSCRIBE] = {PREFIX "oversubscribe_bytes", "Oversubscribe", 't', 0, MAX_BYTES,
                                 NULL, NULL},
};

/* Names that people try in place of the right ones. */
static const struct {
    const char *name;
    const char *advice;
} elsewhere[] = {
    {"vram", "the attribute is vgpu/vram_bytes, in bytes"},
    {"window", "the attribute is vgpu/window_bytes, in bytes"},
    {"cuda", "it belongs to the type: cuda= in /etc/vgpu/types.d"},
    {"policy", "it belongs to the GPU: policy= in /etc/vgpu/gpus.conf"},
    {"oversubscribe", "the attribute is vgpu/oversubscribe_bytes, in bytes"},
};

static gboolean refuse(GError **error, const char *name, const char *why)
{
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "a definition cannot have the attribute %s: %s", name, why);
    return FALSE;
}

void wanted_clear(Wanted *wanted)
{
    for (guint i = 0; i < ATTRIBUTES; i++)
        g_clear_pointer(&wanted->values[i], g_free);
}

const char *attribute_file(const Attribute *attribute)
{
    return attribute->name + strlen(PREFIX);
}

/* As the kernel reads numbers: decimal, 0x… or 0…, and nothing around them. */
static gboolean parse_number(const char *text, guint64 *value)
{
    char *end;

    if (!g_ascii_isdigit(text[0]) || strlen(text) > 20)
        return FALSE;
    *value = g_ascii_strtoull(text, &end, 0);
    return !*end && *value != G_MAXUINT64;
}

static gboolean refuse_value(const Attribute *attribute, const char *rule, const char *text,
                             GError **error)
{
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s must be %s, not %.80s",
                attribute->name, rule, text);
    return FALSE;
}

static gboolean check_number(const Attribute *attribute, const char *text, char **value,
                             GError **error)
{
    guint64 number = 0;
    g_autofree char *rule = NULL;

    if (parse_number(text, &number) && number >= attribute->min && number <= attribute->max) {
        if (attribute == &attributes[ATTRIBUTE_WINDOW] && (number & (number - 1)))
            return refuse_value(attribute, "a power of two from 1 MiB to 64 GiB", text, error);
        *value = g_strdup_printf("%" G_GUINT64_FORMAT, number);
        return TRUE;
    }
    rule =
        g_strdup_printf("%s from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                        attribute->type == 't' ? "a number of bytes, without suffix," : "a number",
                        attribute->min, attribute->max);
    return refuse_value(attribute, rule, text, error);
}

static gboolean check_value(const Attribute *attribute, const char *text, char **value,
                            GError **error)
{
    g_clear_pointer(value, g_free);
    if (!attribute->valid)
        return check_number(attribute, text, value, error);
    if (!attribute->valid(text))
        return refuse_value(attribute, attribute->rule, text, error);
    *value = g_strdup(text);
    return TRUE;
}

static gboolean refuse_unknown(const char *name, GError **error)
{
    gboolean ours = g_str_has_prefix(name, PREFIX);
    const char *word = ours ? name + strlen(PREFIX) : name;

    for (guint i = 0; i < G_N_ELEMENTS(elsewhere); i++)
        if (g_str_equal(word, elsewhere[i].name))
            return refuse(error, name, elsewhere[i].advice);
    for (guint i = 0; !ours && i < ATTRIBUTES; i++)
        if (g_str_equal(word, attribute_file(&attributes[i])))
            return refuse(error, name, "its name begins with vgpu/");
    return !ours || refuse(error, name,
                           "those that can be set are vgpu/vram_bytes, vgpu/window_bytes, "
                           "vgpu/weight, vgpu/cap, vgpu/priority, vgpu/display, vgpu/tenant, "
                           "vgpu/class and vgpu/oversubscribe_bytes");
}

gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error)
{
    for (guint i = 0; i < ATTRIBUTES; i++)
        if (g_str_equal(name, attributes[i].name))
            return check_value(&attributes[i], text, &wanted->values[i], error);
    return refuse_unknown(name, error);
}
