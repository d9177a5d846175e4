/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/owner_energy.h"

#include "host-agent/model/energy.h"
#include "lib/readings.h"

struct OwnerEnergy {
    const HostView *view;
    Energy *energy;
    guint beginning;
    gboolean started;
};

static gboolean has_counter(const OwnerEnergy *energy)
{
    const GPtrArray *gpus = host_view_gpus(energy->view);
    guint64 uj;
    gint64 at;

    for (guint i = 0; i < gpus->len; i++)
        if (gpu_energy_read(host_view_root(energy->view),
                            ((const Gpu *)g_ptr_array_index(gpus, i))->pci, &uj, &at))
            return TRUE;
    return FALSE;
}

static void count_use(const OwnerEnergy *energy, const Slice *slice)
{
    const Counters *counters = host_view_counters(energy->view);
    const VgpuCounters *vgpu = counters_known(counters, slice->uuid);
    const SliceUse *use = counters_use(counters, slice->uuid);

    if (use)
        energy_count(energy->energy, slice->uuid, use->gpu_ns, use->submissions);
    else if (vgpu && (vgpu->drm.known || vgpu->slice_known))
        energy_count(energy->energy, slice->uuid,
                     vgpu->drm.known ? vgpu->drm.gpu_ns : vgpu->slice.gpu_ns, vgpu->vgpu->requests);
}

void owner_energy_look(OwnerEnergy *energy)
{
    const GPtrArray *slices = host_view_slices(energy->view), *gpus = host_view_gpus(energy->view);

    if (!energy->started)
        return;
    for (guint i = 0; i < slices->len; i++)
        count_use(energy, g_ptr_array_index(slices, i));
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        guint64 uj, vram;
        gint64 at;

        if (gpu_energy_read(host_view_root(energy->view), gpu->pci, &uj, &at))
            energy_read(energy->energy, gpu->pci->address, uj,
                        offers_capacity(host_view_offers(energy->view), gpu, &vram), at);
    }
}

void owner_energy_update(OwnerEnergy *energy, const char *uuid)
{
    const Slice *slice = host_view_slice(energy->view, uuid);

    if (!energy->started)
        return;
    if (slice && slice_is_promised(slice))
        energy_note(energy->energy, uuid, slice->gpu, slice->vram, g_get_monotonic_time());
    else
        energy_forget(energy->energy, uuid);
}

static gboolean begin_interval(void *data)
{
    OwnerEnergy *energy = data;
    const GPtrArray *slices = host_view_slices(energy->view);

    energy->beginning = 0;
    energy->started = TRUE;
    for (guint i = 0; i < slices->len; i++)
        owner_energy_update(energy, ((const Slice *)g_ptr_array_index(slices, i))->uuid);
    counters_read(host_view_counters(energy->view));
    owner_energy_look(energy);
    return G_SOURCE_REMOVE;
}

/* From the main loop, as the caller may have something of the counters. */
void owner_energy_start(OwnerEnergy *energy)
{
    if (!energy->started && !energy->beginning && has_counter(energy))
        energy->beginning = g_idle_add(begin_interval, energy);
}

void owner_energy_stop(OwnerEnergy *energy)
{
    g_clear_handle_id(&energy->beginning, g_source_remove);
    energy->started = FALSE;
    energy_clear(energy->energy);
}

gboolean owner_energy_take(OwnerEnergy *energy, const char *uuid, guint64 *uj)
{
    return energy_take(energy->energy, uuid, uj);
}

OwnerEnergy *owner_energy_new(const HostView *view)
{
    OwnerEnergy *energy = g_new0(OwnerEnergy, 1);

    energy->view = view;
    energy->energy = energy_new();
    return energy;
}

void owner_energy_free(OwnerEnergy *energy)
{
    g_clear_handle_id(&energy->beginning, g_source_remove);
    energy_free(energy->energy);
    g_free(energy);
}
