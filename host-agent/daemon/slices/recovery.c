/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/recovery.h"

#include "host-agent/daemon/slices/alteration.h"
#include "host-agent/daemon/slices/erasure.h"
#include "lib/vgpu.h"

/**
 * Recovery
 * @uuids: what is still to be done, from @at on
 */
typedef struct {
    Host *host;
    Slices *slices;
    GStrv uuids;
    guint at;
} Recovery;

static void go_on(Recovery *recovery);

static void done(const GError *error, void *data)
{
    Recovery *recovery = data;
    const char *uuid = recovery->uuids[recovery->at];
    const Slice *slice = slices_find(recovery->slices, uuid);
    gboolean ended = slice && slice->state == SLICE_READY;

    if (error)
        g_warning("vGPU %s, which was left half done: %s; %s", uuid, error->message,
                  ended ? "it stays as the driver has it, see \"vgpuctl vgpu show\""
                        : "it is tried again when vgpud starts next");
    recovery->at++;
    go_on(recovery);
}

static gboolean is_open(const Recovery *recovery, const char *uuid)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(recovery->host), uuid);

    return vgpu && !g_str_equal(vgpu->device, "closed");
}

static void keep(Recovery *recovery, const Slice *slice)
{
    Slice *kept = slice_copy(slice);
    g_autoptr(GError) error = NULL;

    g_message("vGPU %s was left half done, and a VM has it now: it stays", slice->uuid);
    kept->state = SLICE_READY;
    if (!slices_put(recovery->slices, kept, &error))
        g_warning("%s", error->message);
    done(NULL, recovery);
}

static void go_on(Recovery *recovery)
{
    const char *uuid = recovery->uuids[recovery->at];
    const Slice *slice = uuid ? slices_find(recovery->slices, uuid) : NULL;

    if (!uuid) {
        g_strfreev(recovery->uuids);
        g_free(recovery);
        return;
    }
    if (!slice || slice->state == SLICE_READY) {
        done(NULL, recovery);
        return;
    }
    g_message("vGPU %s was left half done (%s): going on", uuid, slice_state_name(slice->state));
    if (slice->state == SLICE_CHANGING)
        alteration_run(recovery->host, recovery->slices, slice_copy(slice), done, recovery);
    else if (is_open(recovery, uuid))
        keep(recovery, slice);
    else
        erasure_run(recovery->host, recovery->slices, uuid, done, recovery);
}

void recovery_run(Host *host, Slices *slices)
{
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();
    const GPtrArray *list = slices_all(slices);
    Recovery *recovery = g_new0(Recovery, 1);

    for (guint i = 0; i < list->len; i++) {
        const Slice *slice = g_ptr_array_index(list, i);

        if (slice->state != SLICE_READY)
            g_strv_builder_add(uuids, slice->uuid);
    }
    recovery->host = host;
    recovery->slices = slices;
    recovery->uuids = g_strv_builder_end(uuids);
    go_on(recovery);
}
