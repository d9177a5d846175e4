/* SPDX-License-Identifier: MIT */
#include "host-agent/model/slice.h"

#include "host-agent/model/slice_keys.h"
#include "lib/bus.h"

static const char *const class_names[] = {
    [SLICE_GUARANTEED] = "guaranteed",
    [SLICE_BURSTABLE] = "burstable",
    [SLICE_BEST_EFFORT] = "best-effort",
};

static const char *const transport_names[] = {
    [SLICE_TRANSPORT_VM] = "vm",
    [SLICE_TRANSPORT_VFIO] = "vfio",
    [SLICE_TRANSPORT_NATIVE] = "native",
    [SLICE_TRANSPORT_GUARDED] = "guarded",
};

/* Of a text. */
static char **text_at(const SliceKey *key, Slice *slice)
{
    return G_STRUCT_MEMBER_P(slice, key->offset);
}

void slice_free(Slice *slice)
{
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].type == SLICE_KEY_TEXT)
            g_free(*text_at(&slice_keys[i], slice));
    g_free(slice);
}

Slice *slice_new(const char *uuid, const char *gpu, const char *type)
{
    Slice *slice = g_new0(Slice, 1);

    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].type == SLICE_KEY_TEXT)
            *text_at(&slice_keys[i], slice) = g_strdup("");
    slice_set_text(&slice->uuid, uuid);
    slice_set_text(&slice->gpu, gpu);
    slice_set_text(&slice->type, type);
    slice->uid = SLICE_NO_UID;
    slice->display = -1;
    return slice;
}

void slice_set_text(char **where, const char *text)
{
    char *copy = g_strdup(text);

    g_free(*where);
    *where = copy;
}

Slice *slice_copy(const Slice *slice)
{
    Slice *copy = g_memdup2(slice, sizeof(*slice));

    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].type == SLICE_KEY_TEXT)
            *text_at(&slice_keys[i], copy) = g_strdup(*text_at(&slice_keys[i], copy));
    return copy;
}

GVariant *slice_to_dict(const Slice *slice)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].column)
            g_variant_dict_insert_value(&dict, slice_keys[i].column,
                                        slice_key_stored(&slice_keys[i], slice));
    return g_variant_dict_end(&dict);
}

Slice *slice_from_dict(GVariant *dict)
{
    Slice *slice = slice_new("", "", "");

    for (guint i = 0; i < slice_keys_count; i++) {
        g_autoptr(GVariant) value =
            slice_keys[i].column ? g_variant_lookup_value(dict, slice_keys[i].column, NULL) : NULL;

        if (value)
            slice_key_restore(&slice_keys[i], slice, value);
    }
    slice->present = !slice_is_vgpu(slice);
    return slice;
}

guint64 slice_resident(const Slice *slice)
{
    return slice->resident ? MIN(slice->resident, slice->vram) : slice->vram;
}

guint64 slice_expected(const Slice *slice, guint hour)
{
    guint64 resident = slice_resident(slice);

    if (slice->class == SLICE_GUARANTEED || !slice->expected[hour])
        return resident;
    return MIN(slice->expected[hour], resident);
}

guint64 slice_lent(const Slice *slice)
{
    return slice->vram - slice_resident(slice);
}

const char *slice_class_name(SliceClass class)
{
    return class_names[class];
}

gboolean slice_class_parse(const char *name, SliceClass *class)
{
    for (guint i = 0; i < G_N_ELEMENTS(class_names); i++) {
        if (g_str_equal(class_names[i], name)) {
            *class = (SliceClass)i;
            return TRUE;
        }
    }
    return FALSE;
}

const char *slice_transport_name(SliceTransport transport)
{
    return transport_names[transport];
}

gboolean slice_transport_parse(const char *name, SliceTransport *transport)
{
    for (guint i = 0; i < G_N_ELEMENTS(transport_names); i++) {
        if (g_str_equal(transport_names[i], name)) {
            *transport = (SliceTransport)i;
            return TRUE;
        }
    }
    return FALSE;
}

gboolean slice_is_vgpu(const Slice *slice)
{
    return slice->transport == SLICE_TRANSPORT_VM || slice->transport == SLICE_TRANSPORT_VFIO;
}

gboolean slice_is_for_container(const Slice *slice)
{
    return slice->transport != SLICE_TRANSPORT_VM;
}

gboolean slice_name_valid(const char *name)
{
    return !g_uuid_string_is_valid(name) &&
           g_regex_match_simple("^[A-Za-z]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$", name,
                                G_REGEX_DOLLAR_ENDONLY, 0);
}

gboolean slice_text_is_printable(const char *text)
{
    for (const char *at = text; *at; at = g_utf8_next_char(at))
        if (g_unichar_iscntrl(g_utf8_get_char(at)))
            return FALSE;
    return TRUE;
}

gboolean slice_owner_valid(const char *name)
{
    return g_regex_match_simple("^[A-Za-z0-9][A-Za-z0-9:_.-]{0,59}$", name, G_REGEX_DOLLAR_ENDONLY,
                                0);
}

/* The kernel counts a vGPU's memory as long as it exists, whatever its programs do. */
gboolean slice_is_promised(const Slice *slice)
{
    return (!slice->suspended || slice_is_vgpu(slice)) &&
           (slice->present || slice->autostart || slice->reserved);
}

#define ALL "all"

static const struct {
    const char *name;
    Engine engine;
} kinds[] = {
    {"graphics", ENGINE_GRAPHICS}, {"compute", ENGINE_COMPUTE}, {"transfer", ENGINE_TRANSFER},
    {"decode", ENGINE_DECODE},     {"encode", ENGINE_ENCODE},
};

char *engines_format(guint engines)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (engines & kinds[i].engine)
            g_string_append_printf(text, "%s%s", text->len ? "," : "", kinds[i].name);
    return g_strdup(text->len ? text->str : ALL);
}

static guint engine_called(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_equal(kinds[i].name, name))
            return kinds[i].engine;
    return 0;
}

/* 0, as well, if it is all of them. */
static guint or_all(guint engines)
{
    return engines == (1u << G_N_ELEMENTS(kinds)) - 1 ? 0 : engines;
}

gboolean engines_parse(const char *text, guint *engines, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    guint wanted = 0;

    *engines = 0;
    if (g_str_equal(text, ALL))
        return TRUE;
    for (guint i = 0; !i || names[i]; i++) {
        guint engine = names[i] ? engine_called(names[i]) : 0;

        if (!engine) {
            g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                        "Engines must be \"all\", or some of graphics, compute, transfer, decode "
                        "and encode, separated by commas, not \"%s\"",
                        text);
            return FALSE;
        }
        wanted |= engine;
    }
    if ((wanted & ENGINE_GRAPHICS) && !(wanted & ENGINE_COMPUTE)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "Engines can't have graphics without compute (\"%s\"): Vulkan guarantees "
                    "programs a queue with both",
                    text);
        return FALSE;
    }
    *engines = or_all(wanted);
    return TRUE;
}

guint engines_join(guint a, guint b)
{
    return a && b ? or_all(a | b) : 0;
}
