/* SPDX-License-Identifier: MIT */
#include "host-agent/model/slice.h"

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

void slice_free(Slice *slice)
{
    g_free(slice->uuid);
    g_free(slice->name);
    g_free(slice->request);
    g_free(slice->gpu);
    g_free(slice->type);
    g_free(slice->tenant);
    g_free(slice->job);
    g_free(slice->replica);
    g_free(slice->domain);
    g_free(slice->owner);
    g_free(slice->part);
    g_free(slice->pool);
    g_free(slice->asked);
    g_free(slice);
}

Slice *slice_new(const char *uuid, const char *gpu, const char *type)
{
    Slice *slice = g_new0(Slice, 1);

    slice->uuid = g_strdup(uuid);
    slice->name = g_strdup("");
    slice->request = g_strdup("");
    slice->gpu = g_strdup(gpu);
    slice->type = g_strdup(type);
    slice->tenant = g_strdup("");
    slice->job = g_strdup("");
    slice->replica = g_strdup("");
    slice->domain = g_strdup("");
    slice->owner = g_strdup("");
    slice->part = g_strdup("");
    slice->pool = g_strdup("");
    slice->asked = g_strdup("");
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

    copy->uuid = g_strdup(slice->uuid);
    copy->name = g_strdup(slice->name);
    copy->request = g_strdup(slice->request);
    copy->gpu = g_strdup(slice->gpu);
    copy->type = g_strdup(slice->type);
    copy->tenant = g_strdup(slice->tenant);
    copy->job = g_strdup(slice->job);
    copy->replica = g_strdup(slice->replica);
    copy->domain = g_strdup(slice->domain);
    copy->owner = g_strdup(slice->owner);
    copy->part = g_strdup(slice->part);
    copy->pool = g_strdup(slice->pool);
    copy->asked = g_strdup(slice->asked);
    return copy;
}

GVariant *slice_to_dict(const Slice *slice)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "uuid", "s", slice->uuid);
    g_variant_dict_insert(&dict, "door", "s", slice_transport_name(slice->transport));
    g_variant_dict_insert(&dict, "name", "s", slice->name);
    g_variant_dict_insert(&dict, "ephemeral", "b", slice->ephemeral);
    g_variant_dict_insert(&dict, "request", "s", slice->request);
    g_variant_dict_insert(&dict, "gpu", "s", slice->gpu);
    g_variant_dict_insert(&dict, "type", "s", slice->type);
    g_variant_dict_insert(&dict, "tenant", "s", slice->tenant);
    g_variant_dict_insert(&dict, "class", "s", slice_class_name(slice->class));
    g_variant_dict_insert(&dict, "vram", "t", slice->vram);
    g_variant_dict_insert(&dict, "compute", "u", slice->compute);
    g_variant_dict_insert(&dict, "oversubscribe", "t", slice->oversubscribe);
    g_variant_dict_insert(&dict, "weight", "u", slice->weight);
    g_variant_dict_insert(&dict, "cap", "u", slice->cap);
    g_variant_dict_insert(&dict, "priority", "u", slice->priority);
    g_variant_dict_insert(&dict, "display", "i", slice->display);
    g_variant_dict_insert(&dict, "engines", "u", slice->engines);
    g_variant_dict_insert(&dict, "job", "s", slice->job);
    g_variant_dict_insert(&dict, "replica", "s", slice->replica);
    g_variant_dict_insert(&dict, "domain", "s", slice->domain);
    g_variant_dict_insert(&dict, "owner", "s", slice->owner);
    g_variant_dict_insert(&dict, "part", "s", slice->part);
    g_variant_dict_insert(&dict, "pool", "s", slice->pool);
    g_variant_dict_insert(&dict, "asked", "s", slice->asked);
    g_variant_dict_insert(&dict, "uid", "x", slice->uid);
    g_variant_dict_insert(&dict, "since", "x", slice->since);
    g_variant_dict_insert(&dict, "defined", "b", slice->defined);
    g_variant_dict_insert(&dict, "autostart", "b", slice->autostart);
    return g_variant_dict_end(&dict);
}

static void read_text(GVariant *dict, const char *key, char **text)
{
    const char *value;

    if (g_variant_lookup(dict, key, "&s", &value))
        slice_set_text(text, value);
}

Slice *slice_from_dict(GVariant *dict)
{
    Slice *slice = slice_new("", "", "");
    const char *door, *class;

    if (g_variant_lookup(dict, "door", "&s", &door))
        slice_transport_parse(door, &slice->transport);
    if (g_variant_lookup(dict, "class", "&s", &class))
        slice_class_parse(class, &slice->class);
    read_text(dict, "uuid", &slice->uuid);
    read_text(dict, "name", &slice->name);
    read_text(dict, "request", &slice->request);
    read_text(dict, "gpu", &slice->gpu);
    read_text(dict, "type", &slice->type);
    read_text(dict, "tenant", &slice->tenant);
    read_text(dict, "job", &slice->job);
    read_text(dict, "replica", &slice->replica);
    read_text(dict, "domain", &slice->domain);
    read_text(dict, "owner", &slice->owner);
    read_text(dict, "part", &slice->part);
    read_text(dict, "pool", &slice->pool);
    read_text(dict, "asked", &slice->asked);
    g_variant_lookup(dict, "uid", "x", &slice->uid);
    g_variant_lookup(dict, "since", "x", &slice->since);
    g_variant_lookup(dict, "ephemeral", "b", &slice->ephemeral);
    g_variant_lookup(dict, "vram", "t", &slice->vram);
    g_variant_lookup(dict, "compute", "u", &slice->compute);
    g_variant_lookup(dict, "oversubscribe", "t", &slice->oversubscribe);
    g_variant_lookup(dict, "weight", "u", &slice->weight);
    g_variant_lookup(dict, "cap", "u", &slice->cap);
    g_variant_lookup(dict, "priority", "u", &slice->priority);
    g_variant_lookup(dict, "display", "i", &slice->display);
    g_variant_lookup(dict, "engines", "u", &slice->engines);
    g_variant_lookup(dict, "defined", "b", &slice->defined);
    g_variant_lookup(dict, "autostart", "b", &slice->autostart);
    slice->present = !slice_is_vgpu(slice);
    return slice;
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

gboolean slice_owner_valid(const char *name)
{
    return g_regex_match_simple("^[A-Za-z0-9][A-Za-z0-9:_.-]{0,59}$", name, G_REGEX_DOLLAR_ENDONLY,
                                0);
}

gboolean slice_is_promised(const Slice *slice)
{
    return slice->present || slice->autostart || slice->reserved;
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
