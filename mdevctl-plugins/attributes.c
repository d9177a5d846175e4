/* SPDX-License-Identifier: MIT */
#include "attributes.h"

#include <string.h>

#define PREFIX     "vgpu/"
#define MIN_WINDOW (G_GUINT64_CONSTANT(1) << 20)
#define MAX_WINDOW (G_GUINT64_CONSTANT(1) << 36)
/* More than any GPU has, and little enough to be added up. */
#define MAX_VRAM (G_GUINT64_CONSTANT(1) << 50)

const Attribute attributes[ATTRIBUTES] = {
    [ATTRIBUTE_VRAM] = {PREFIX "vram_bytes", "Vram", TRUE, 1, MAX_VRAM},
    [ATTRIBUTE_WINDOW] = {PREFIX "window_bytes", "Window", TRUE, MIN_WINDOW, MAX_WINDOW},
    [ATTRIBUTE_WEIGHT] = {PREFIX "weight", "Weight", FALSE, 1, 10000},
    [ATTRIBUTE_CAP] = {PREFIX "cap", "Cap", FALSE, 1, 100},
    [ATTRIBUTE_PRIORITY] = {PREFIX "priority", "Priority", FALSE, 0, 15},
    [ATTRIBUTE_DISPLAY] = {PREFIX "display", NULL, FALSE, 0, 1},
};

/* What people look for under another name, or in the wrong place. */
static const struct {
    const char *name;
    const char *advice;
} elsewhere[] = {
    {"vram", "the attribute is vgpu/vram_bytes, in bytes"},
    {"window", "the attribute is vgpu/window_bytes, in bytes"},
    {"policy", "it is the GPU's and not a vGPU's: policy= in /etc/vgpu/gpus.conf"},
    {"tenant", "vgpud keeps it: \"vgpuctl vgpu set UUID --tenant NAME\""},
    {"oversubscribe", "vgpud keeps it: \"vgpuctl vgpu set UUID --oversubscribe SIZE\""},
    {"class", "vgpud keeps it: \"vgpuctl vgpu set UUID --class CLASS\""},
};

static gboolean refuse(GError **error, const char *name, const char *why)
{
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "a definition can't have the attribute %s: %s", name, why);
    return FALSE;
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

static gboolean check_value(const Attribute *attribute, const char *text, guint64 *value,
                            GError **error)
{
    gboolean number = parse_number(text, value);

    if (number && *value >= attribute->min && *value <= attribute->max) {
        if (attribute != &attributes[ATTRIBUTE_WINDOW] || !(*value & (*value - 1)))
            return TRUE;
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s must be a power of two from 1 MiB to 64 GiB, not %s", attribute->name,
                    text);
        return FALSE;
    }
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s must be %s from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ", not %.40s",
                attribute->name,
                attribute->wide ? "a number of bytes, without suffix," : "a number", attribute->min,
                attribute->max, text);
    return FALSE;
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
                           "vgpu/weight, vgpu/cap, vgpu/priority and vgpu/display");
}

gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error)
{
    for (guint i = 0; i < ATTRIBUTES; i++) {
        if (!g_str_equal(name, attributes[i].name))
            continue;
        wanted->given[i] = TRUE;
        return check_value(&attributes[i], text, &wanted->values[i], error);
    }
    return refuse_unknown(name, error);
}
