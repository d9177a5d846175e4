/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/device_limits_kit.h"

#include "host-agent/daemon/sync/device_limits.h"

struct DeviceWorld {
    HostRoot *root;
    Outputs *outputs;
    const Slice *slice;
    const Gpu *gpu;
    const char *cgroup;
    guint starts;
};

static const OutputKind kind;

static gboolean want(Wants *wants, const char *uuid, void *data)
{
    const DeviceWorld *world = data;

    if (world->cgroup)
        device_limits_want(wants, world->root, world->slice, world->gpu, world->cgroup,
                           outputs_started(world->outputs, &kind, uuid));
    return TRUE;
}

static void note_start(const char *uuid, void *data)
{
    DeviceWorld *world = data;

    (void)uuid;
    world->starts++;
}

static const OutputKind kind = {
    .level = G_LOG_LEVEL_MESSAGE,
    .trouble = {"slice ", " has no limits"},
    .want = want,
    .start = note_start,
};

DeviceWorld *device_world_new(HostRoot *root, const Slice *slice, const Gpu *gpu)
{
    DeviceWorld *world = g_new0(DeviceWorld, 1);

    world->root = root;
    world->outputs = outputs_new(root);
    world->slice = slice;
    world->gpu = gpu;
    return world;
}

void device_world_free(DeviceWorld *world)
{
    outputs_free(world->outputs);
    g_free(world);
}

gboolean device_world_update(DeviceWorld *world, const char *cgroup)
{
    guint before = world->starts;

    world->cgroup = cgroup;
    outputs_update(world->outputs, &kind, world, world->slice->uuid);
    return world->starts > before;
}
