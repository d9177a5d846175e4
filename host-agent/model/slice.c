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

static const char *const state_names[] = {
    [SLICE_READY] = "ready",
    [SLICE_CREATING] = "creating",
    [SLICE_CHANGING] = "changing",
    [SLICE_REMOVING] = "removing",
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

const char *slice_state_name(SliceState state)
{
    return state_names[state];
}

SliceState slice_state_parse(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(state_names); i++)
        if (g_str_equal(state_names[i], name))
            return (SliceState)i;
    return SLICE_READY;
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
    return slice->present || slice->autostart || slice->state == SLICE_CREATING;
}
