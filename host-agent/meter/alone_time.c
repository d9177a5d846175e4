/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/alone_time.h"

#include "lib/drm_clients.h"
#include "lib/nvidia_readings.h"

/* Of a slice: nobody keeps the meter busy with more. */
#define MOST_PROCESSES 256
#define MOST_FILES     4096
/* A per cent of a microsecond, in ns. */
#define PERCENT_NS 10
#define US_NS      1000
/* NVIDIA's sample says nothing about more than this before it. */
#define SAMPLE_US (2 * 60 * G_USEC_PER_SEC)

/**
 * Part - of one slice
 * @clients: the clients of the GPU's driver at the last look; NULL: it was not alone then
 * @at: of the last look
 * @measured, @measured_of_gpu: by the arbiter until then, of the slice and of all slices of the GPU
 * @ns: what has accumulated
 */
typedef struct {
    GHashTable *clients;
    gint64 at;
    guint64 measured;
    guint64 measured_of_gpu;
    guint64 ns;
    gboolean known;
} Part;

struct AloneTime {
    HostRoot *root;
    GHashTable *parts; /* UUID to Part */
};

static void part_free(void *data)
{
    Part *part = data;

    g_clear_pointer(&part->clients, g_hash_table_unref);
    g_free(part);
}

AloneTime *alone_time_new(HostRoot *root)
{
    AloneTime *times = g_new0(AloneTime, 1);

    times->root = host_root_ref(root);
    times->parts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, part_free);
    return times;
}

void alone_time_free(AloneTime *times)
{
    g_hash_table_unref(times->parts);
    host_root_unref(times->root);
    g_free(times);
}

static Part *part_of(AloneTime *times, const char *uuid)
{
    Part *part = g_hash_table_lookup(times->parts, uuid);

    if (!part) {
        part = g_new0(Part, 1);
        g_hash_table_insert(times->parts, g_strdup(uuid), part);
    }
    return part;
}

static GHashTable *clients_of(HostRoot *root, const char *gpu, const GArray *pids)
{
    GHashTable *clients = drm_uses_new();
    guint files = MOST_FILES;

    for (guint i = 0; i < MIN(pids->len, MOST_PROCESSES); i++)
        drm_process_add(root, g_array_index(pids, guint, i), gpu, clients, &files);
    return clients;
}

/* A counter that has decreased has restarted. */
static guint64 growth(guint64 before, guint64 now)
{
    return now < before ? now : now - before;
}

/* What the others did is in none of the members' files. */
static guint64 of_members(const SliceUse *use)
{
    return use->gpu_ns - MIN(use->gpu_ns, use->ungoverned_ns);
}

/* Others may have worked between two looks, too: then the arbiter has measured a part of the time.
 */
static void look_at_part(HostRoot *root, Part *part, const ReportedSlice *slice,
                         const SliceUse *use)
{
    GHashTable *clients = clients_of(root, slice->gpu, slice->pids);
    gint64 elapsed = slice->now - part->at;
    guint64 ns = 0, measured = 0;
    guint percent;

    part->known = TRUE;
    if (drm_uses_have_times(clients)) {
        ns = part->clients ? drm_uses_growth(part->clients, clients, (guint64)elapsed * US_NS) : 0;
        measured = growth(part->measured, of_members(use));
    } else if (nvidia_busy(root, slice->gpu, &percent)) {
        if (part->clients && elapsed <= SAMPLE_US)
            ns = (guint64)elapsed * percent * PERCENT_NS;
        measured = growth(part->measured_of_gpu, slice->measured);
    } else {
        part->known = FALSE;
    }
    part->ns += ns - MIN(measured, ns);
    g_clear_pointer(&part->clients, g_hash_table_unref);
    part->clients = clients;
    part->at = slice->now;
    part->measured = of_members(use);
    part->measured_of_gpu = slice->measured;
}

void alone_time_add(AloneTime *times, const ReportedSlice *slice, SliceUse *use)
{
    Part *part = part_of(times, slice->uuid);

    if (use->alone)
        look_at_part(times->root, part, slice, use);
    else
        g_clear_pointer(&part->clients, g_hash_table_unref);
    use->alone_ns = part->ns;
    use->alone_known = part->known;
}

void alone_time_forget(AloneTime *times, const char *uuid)
{
    g_hash_table_remove(times->parts, uuid);
}
