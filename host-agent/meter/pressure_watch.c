/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/pressure_watch.h"

#include "lib/conf.h"
#include "host-agent/meter/gpu_memory.h"

/* No driver reports when memory becomes scarce. */
#define LOOK_SECONDS 2

/**
 * PressureWatch
 * @told: addresses of GPUs that vgpud knows to be short of memory
 */
struct PressureWatch {
    const HostView *view;
    const AgentLink *agent;
    GpuMemory *memory;
    GHashTable *told;
    guint timer;
};

guint64 pressure_watch_mark(const PressureWatch *watch, const Gpu *gpu)
{
    Offers *offers = host_view_offers(watch->view);
    const GpuEntry *settings = offers_settings(offers, gpu->pci->address);
    guint64 vram;

    if (!settings)
        return 0;
    offers_capacity(offers, gpu, &vram);
    return amount_resolve(&settings->water_mark, vram);
}

gboolean pressure_watch_used(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                             guint64 *bytes)
{
    guint64 vram;

    offers_capacity(host_view_offers(watch->view), gpu, &vram);
    return gpu_memory_used(watch->memory, gpu, vram, vgpus, bytes);
}

/* FALSE: unknown. */
static gboolean free_vram(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                          guint64 *bytes)
{
    guint64 vram;
    guint64 used;

    offers_capacity(host_view_offers(watch->view), gpu, &vram);
    if (!pressure_watch_used(watch, gpu, vgpus, &used))
        return FALSE;
    *bytes = used < vram ? vram - used : 0;
    return TRUE;
}

/* UUIDs, owned by the slices, of those on @gpu that are no vGPUs and have none of its memory. */
static const char **slices_without(const PressureWatch *watch, const char *gpu)
{
    const GPtrArray *slices = host_view_slices(watch->view);
    const char **without = g_new0(const char *, slices->len + 1);
    guint count = 0;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUse *use = counters_use(host_view_counters(watch->view), slice->uuid);

        if (use && !use->vram_used && g_str_equal(slice->gpu, gpu))
            without[count++] = slice->uuid;
    }
    return without;
}

static gboolean is_suspended_victim(const Slice *slice)
{
    return slice->suspended && slice->class == SLICE_BEST_EFFORT;
}

/* A slice may return to it. */
static gboolean has_suspended(const PressureWatch *watch, const char *gpu)
{
    const GPtrArray *slices = host_view_slices(watch->view);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (is_suspended_victim(slice) && g_str_equal(slice->gpu, gpu))
            return TRUE;
    }
    return FALSE;
}

/*
 * Each time while memory is short: vgpud takes one step after the other. Also while a slice is
 * suspended, which vgpud lets go on when there has been room for some time.
 */
static void tell_memory(const PressureWatch *watch, const char *gpu, guint64 free, guint64 mark,
                        gint64 now_us)
{
    g_autofree const char **without = NULL;

    if (free < mark)
        g_hash_table_add(watch->told, g_strdup(gpu));
    else if (!g_hash_table_remove(watch->told, gpu) && !has_suspended(watch, gpu))
        return;
    without = slices_without(watch, gpu);
    agent_note_memory(watch->agent, gpu, free, mark, without, now_us);
}

/* What slices wait for that best effort has and does not give. */
static guint64 missing_on(const PressureWatch *watch, const char *gpu)
{
    const GPtrArray *slices = host_view_slices(watch->view);
    guint64 bytes = 0;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUse *use = counters_use(host_view_counters(watch->view), slice->uuid);

        bytes += use && g_str_equal(slice->gpu, gpu) ? use->missing : 0;
    }
    return bytes;
}

/* Who waits has none of what is free. Of an arbiter that is silent it is not known who waits. */
static void look_at(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                    gint64 now_us)
{
    const char *address = gpu->pci->address;
    guint64 mark = pressure_watch_mark(watch, gpu), missing = missing_on(watch, address), free;

    if (arbiter_reports_is_silent(host_view_reports(watch->view), address))
        return;
    if (missing)
        tell_memory(watch, address, 0, MAX(mark, missing), now_us);
    else if (!mark && !has_suspended(watch, address))
        tell_memory(watch, address, 0, 0, now_us);
    else if (free_vram(watch, gpu, vgpus, &free))
        tell_memory(watch, address, free, mark, now_us);
    else if (!mark)
        tell_memory(watch, address, 0, 0, now_us);
}

void pressure_watch_look(PressureWatch *watch, gint64 now_us)
{
    const GPtrArray *gpus = host_view_gpus(watch->view);
    const GPtrArray *vgpus = counters_read(host_view_counters(watch->view));

    for (guint i = 0; i < gpus->len; i++)
        look_at(watch, g_ptr_array_index(gpus, i), vgpus, now_us);
}

static gboolean look_again(void *data)
{
    pressure_watch_look(data, g_get_monotonic_time());
    return G_SOURCE_CONTINUE;
}

/* @lent: whose memory moves. */
static gboolean has_slices(const PressureWatch *watch, const char *gpu, gboolean lent)
{
    const GPtrArray *slices = host_view_slices(watch->view);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->present && g_str_equal(slice->gpu, gpu) && (!lent || slice_lent(slice)))
            return TRUE;
    }
    return FALSE;
}

/*
 * Only GPUs with a mark and with slices, of VMs, containers or jobs, those that are lent, and those
 * to which a slice may return.
 */
static gboolean is_needed(const PressureWatch *watch)
{
    const GPtrArray *gpus = host_view_gpus(watch->view);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (has_slices(watch, gpu->pci->address, !pressure_watch_mark(watch, gpu)) ||
            has_suspended(watch, gpu->pci->address))
            return TRUE;
    }
    return FALSE;
}

/* Else vgpud would go on with the steps of this shortage at the next one. */
static void end_all(const PressureWatch *watch)
{
    g_autofree const char **gpus = (const char **)g_hash_table_get_keys_as_array(watch->told, NULL);

    for (guint i = 0; gpus[i]; i++)
        agent_note_memory(watch->agent, gpus[i], 0, 0, (const char *const[]){NULL},
                          g_get_monotonic_time());
    g_hash_table_remove_all(watch->told);
}

void pressure_watch_refresh(PressureWatch *watch)
{
    gboolean needed = is_needed(watch);

    if (needed && !watch->timer)
        watch->timer = g_timeout_add_seconds(LOOK_SECONDS, look_again, watch);
    if (needed)
        return;
    g_clear_handle_id(&watch->timer, g_source_remove);
    end_all(watch);
}

PressureWatch *pressure_watch_new(const HostView *view, const AgentLink *agent)
{
    PressureWatch *watch = g_new0(PressureWatch, 1);

    watch->view = view;
    watch->agent = agent;
    watch->memory = gpu_memory_new(view);
    watch->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return watch;
}

void pressure_watch_free(PressureWatch *watch)
{
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_hash_table_unref(watch->told);
    gpu_memory_free(watch->memory);
    g_free(watch);
}
