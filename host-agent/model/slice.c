/* SPDX-License-Identifier: MIT */
#include "host-agent/model/slice.h"

static const char *const class_names[] = {
    [SLICE_GUARANTEED] = "guaranteed",
    [SLICE_BURSTABLE] = "burstable",
    [SLICE_BEST_EFFORT] = "best-effort",
};

static const char *const door_names[] = {
    [SLICE_DOOR_VM] = "vm",
    [SLICE_DOOR_VFIO] = "vfio",
    [SLICE_DOOR_NATIVE] = "native",
    [SLICE_DOOR_GUARDED] = "guarded",
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
    g_free(slice);
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
    return copy;
}

GVariant *slice_to_dict(const Slice *slice)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "uuid", "s", slice->uuid);
    g_variant_dict_insert(&dict, "door", "s", slice_door_name(slice->door));
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
    g_variant_dict_insert(&dict, "defined", "b", slice->defined);
    g_variant_dict_insert(&dict, "autostart", "b", slice->autostart);
    return g_variant_dict_end(&dict);
}

static char *text_in(GVariant *dict, const char *key)
{
    char *text = NULL;

    return g_variant_lookup(dict, key, "s", &text) ? text : g_strdup("");
}

Slice *slice_from_dict(GVariant *dict)
{
    Slice *slice = g_new0(Slice, 1);
    g_autofree char *door = text_in(dict, "door");
    g_autofree char *class = text_in(dict, "class");

    slice->uuid = text_in(dict, "uuid");
    slice_door_parse(door, &slice->door);
    slice->name = text_in(dict, "name");
    g_variant_lookup(dict, "ephemeral", "b", &slice->ephemeral);
    slice->request = text_in(dict, "request");
    slice->gpu = text_in(dict, "gpu");
    slice->type = text_in(dict, "type");
    slice->tenant = text_in(dict, "tenant");
    slice_class_parse(class, &slice->class);
    g_variant_lookup(dict, "vram", "t", &slice->vram);
    g_variant_lookup(dict, "compute", "u", &slice->compute);
    g_variant_lookup(dict, "oversubscribe", "t", &slice->oversubscribe);
    g_variant_lookup(dict, "weight", "u", &slice->weight);
    g_variant_lookup(dict, "cap", "u", &slice->cap);
    g_variant_lookup(dict, "priority", "u", &slice->priority);
    g_variant_lookup(dict, "display", "i", &slice->display);
    g_variant_lookup(dict, "engines", "u", &slice->engines);
    slice->job = text_in(dict, "job");
    slice->replica = text_in(dict, "replica");
    slice->domain = text_in(dict, "domain");
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

const char *slice_door_name(SliceDoor door)
{
    return door_names[door];
}

gboolean slice_door_parse(const char *name, SliceDoor *door)
{
    for (guint i = 0; i < G_N_ELEMENTS(door_names); i++) {
        if (g_str_equal(door_names[i], name)) {
            *door = (SliceDoor)i;
            return TRUE;
        }
    }
    return FALSE;
}

gboolean slice_is_vgpu(const Slice *slice)
{
    return slice->door == SLICE_DOOR_VM || slice->door == SLICE_DOOR_VFIO;
}

gboolean slice_is_for_container(const Slice *slice)
{
    return slice->door != SLICE_DOOR_VM;
}

gboolean slice_name_valid(const char *name)
{
    return !g_uuid_string_is_valid(name) &&
           g_regex_match_simple("^[A-Za-z]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$", name,
                                G_REGEX_DOLLAR_ENDONLY, 0);
}

gboolean slice_is_promised(const Slice *slice)
{
    return slice->present || slice->autostart || slice->reserved;
}
