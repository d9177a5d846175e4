/* SPDX-License-Identifier: MIT */
#include "mdevctl-plugins/attributes.h"

#include <string.h>

#define PREFIX      "vgpu/"
#define WINDOW_FILE "window_bytes"
#define MIN_WINDOW  (G_GUINT64_CONSTANT(1) << 20)
#define WINDOW_MAX  (G_GUINT64_CONSTANT(1) << 36)

guint attributes_get(const Attribute **list)
{
    static Attribute attributes[ATTRIBUTES_MAX];
    static guint count;

    for (guint i = 0; !attributes[0].name && i < slice_keys_count; i++)
        if (slice_keys[i].attribute)
            attributes[++count] =
                (Attribute){g_strconcat(PREFIX, slice_keys[i].attribute, NULL), &slice_keys[i]};
    if (!attributes[0].name) {
        attributes[0].name = g_strdup(PREFIX WINDOW_FILE);
        count++;
    }
    *list = attributes;
    return count;
}

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

static gboolean refuse_attribute(GError **error, const char *name, const char *why)
{
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "a definition cannot have the attribute %s: %s", name, why);
    return FALSE;
}

void wanted_clear(Wanted *wanted)
{
    for (guint i = 0; i < ATTRIBUTES_MAX; i++)
        g_clear_pointer(&wanted->values[i], g_free);
}

const char *wanted_value(const Wanted *wanted, const char *file)
{
    const Attribute *list;
    guint count = attributes_get(&list);

    for (guint i = 0; i < count; i++)
        if (g_str_equal(attribute_file(&list[i]), file))
            return wanted->values[i];
    return NULL;
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

/* The driver takes any size of memory, a request only whole MiB. */
static gboolean check_number(const Attribute *attribute, const char *text, char **value,
                             GError **error)
{
    const SliceKey *key = attribute->key;
    guint64 min = key ? MIN(key->min, 1) : MIN_WINDOW, max = key ? key->max : WINDOW_MAX;
    guint64 number = 0;
    g_autofree char *rule = NULL;

    if (parse_number(text, &number) && number >= min && number <= max) {
        if (!key && (number & (number - 1)))
            return refuse_value(attribute, "a power of two from 1 MiB to 64 GiB", text, error);
        *value = g_strdup_printf("%" G_GUINT64_FORMAT, number);
        return TRUE;
    }
    rule = g_strdup_printf(
        "%s from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
        !key || key->type == SLICE_KEY_BYTES ? "a number of bytes, without suffix," : "a number",
        min, max);
    return refuse_value(attribute, rule, text, error);
}

static gboolean check_value(const Attribute *attribute, const char *text, char **value,
                            GError **error)
{
    g_autoptr(GError) cause = NULL;

    g_clear_pointer(value, g_free);
    if (!attribute->key || !attribute->key->check)
        return check_number(attribute, text, value, error);
    if (!*text)
        return refuse_attribute(error, attribute->name, "it has no value; for none, leave it out");
    if (!attribute->key->check(attribute->name, text, &cause)) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, cause->message);
        return FALSE;
    }
    *value = g_strdup(text);
    return TRUE;
}

/* "vgpu/window_bytes, vgpu/weight and vgpu/cap". To be freed. */
static char *known_names(void)
{
    const Attribute *list;
    guint count = attributes_get(&list);
    GString *names = g_string_new(list[0].name);

    for (guint i = 1; i < count; i++)
        g_string_append_printf(names, "%s%s", i + 1 < count ? ", " : " and ", list[i].name);
    return g_string_free(names, FALSE);
}

static gboolean refuse_unknown(const char *name, GError **error)
{
    gboolean ours = g_str_has_prefix(name, PREFIX);
    const char *word = ours ? name + strlen(PREFIX) : name;
    g_autofree char *names = NULL;
    g_autofree char *advice = NULL;
    const Attribute *list;
    guint count = attributes_get(&list);

    for (guint i = 0; i < G_N_ELEMENTS(elsewhere); i++)
        if (g_str_equal(word, elsewhere[i].name))
            return refuse_attribute(error, name, elsewhere[i].advice);
    for (guint i = 0; !ours && i < count; i++)
        if (g_str_equal(word, attribute_file(&list[i])))
            return refuse_attribute(error, name, "its name begins with vgpu/");
    if (!ours)
        return TRUE;
    names = known_names();
    advice = g_strconcat("those that can be set are ", names, NULL);
    return refuse_attribute(error, name, advice);
}

gboolean attribute_read(Wanted *wanted, const char *name, const char *text, GError **error)
{
    const Attribute *list;
    guint count = attributes_get(&list);

    for (guint i = 0; i < count; i++)
        if (g_str_equal(name, list[i].name))
            return check_value(&list[i], text, &wanted->values[i], error);
    return refuse_unknown(name, error);
}
