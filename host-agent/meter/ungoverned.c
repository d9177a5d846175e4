/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/ungoverned.h"

#include "lib/drm_clients.h"
#include "lib/nvidia_readings.h"

/* Of a slice: nobody keeps the meter busy with more. */
#define MOST_FILES 16384
/* Drivers round, and so do the doors. */
#define ROUNDING (G_GUINT64_CONSTANT(64) << 20)
#define US_NS    1000
/* A per cent of a microsecond, in ns. */
#define PERCENT_NS 10
/* A reading says nothing about more than this before it. */
#define READING_US (2 * 60 * G_USEC_PER_SEC)

/**
 * Part - of one slice
 * @at: of the last look; of NVIDIA's driver, of the last reading
 * @clients: of the others, at the last look; NULL: there was none
 * @requested: by the members, at the last look
 * @beyond: what they had beyond that; @charged: the least of the last two
 * @others: what the others have
 * @gpu_ns: so far
 */
typedef struct {
    char *gpu;
    guint round;
    gint64 at;
    GHashTable *clients;
    guint64 requested;
    guint64 beyond;
    guint64 charged;
    guint64 others;
    guint64 gpu_ns;
} Part;

struct Ungoverned {
    HostRoot *root;
    GHashTable *parts; /* UUID to Part */
    guint round;
};

static void part_free(void *data)
{
    Part *part = data;

    g_clear_pointer(&part->clients, g_hash_table_unref);
    g_free(part->gpu);
    g_free(part);
}

Ungoverned *ungoverned_new(HostRoot *root)
{
    Ungoverned *ungoverned = g_new0(Ungoverned, 1);

    ungoverned->root = host_root_ref(root);
    ungoverned->parts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, part_free);
    shares_forget_all_ungoverned(root);
    return ungoverned;
}

void ungoverned_free(Ungoverned *ungoverned)
{
    g_hash_table_unref(ungoverned->parts);
    host_root_unref(ungoverned->root);
    g_free(ungoverned);
}

static Part *part_of(Ungoverned *ungoverned, const Slice *slice)
{
    Part *part = g_hash_table_lookup(ungoverned->parts, slice->uuid);

    if (!part) {
        part = g_new0(Part, 1);
        part->gpu = g_strdup(slice->gpu);
        g_hash_table_insert(ungoverned->parts, g_strdup(slice->uuid), part);
    }
    part->round = ungoverned->round;
    return part;
}

/*
 * @has: what the members have. They may have requested or returned some of it since it was read, so
 * the larger of two requests counts.
 */
static void note_members(Part *part, guint64 has, guint64 requested)
{
    guint64 most = MAX(part->requested, requested);
    guint64 beyond = has > most ? has - most : 0;

    if (beyond < ROUNDING)
        beyond = 0;
    part->charged = MIN(part->beyond, beyond);
    part->beyond = beyond;
}

static void note_time(Part *part, gint64 elapsed_us, guint64 ns)
{
    part->gpu_ns += MIN(ns, (guint64)MAX(elapsed_us, 0) * US_NS);
}

static guint64 vram_of(const GArray *pids, GHashTable *processes, guint *busy)
{
    guint64 vram = 0;

    for (guint i = 0; i < pids->len; i++) {
        const NvidiaProcess *process =
            g_hash_table_lookup(processes, GUINT_TO_POINTER(g_array_index(pids, guint, i)));

        vram += process ? process->vram : 0;
        *busy += process ? process->busy : 0;
    }
    return vram;
}

/* The same reading is seen several times. */
static void look_at_readings(Part *part, const UngovernedLook *look)
{
    gint64 elapsed = part->at ? MIN(look->nvidia_at - part->at, READING_US) : 0;
    guint busy = 0, of_members = 0;

    part->others = vram_of(look->others, look->nvidia, &busy);
    if (look->nvidia_at == part->at)
        return;
    note_members(part, vram_of(look->members->pids, look->nvidia, &of_members),
                 look->members->requested);
    note_time(part, elapsed, (guint64)MAX(elapsed, 0) * busy * PERCENT_NS);
    part->at = look->nvidia_at;
}

/* Those of @others that no member has, too. */
static GHashTable *clients_of_others(HostRoot *root, const char *gpu, const UngovernedLook *look)
{
    GHashTable *clients = drm_uses_new();
    guint files = MOST_FILES;
    GHashTableIter iter;
    void *id;

    for (guint i = 0; i < look->others->len; i++)
        drm_process_add(root, g_array_index(look->others, guint, i), gpu, clients, &files);
    g_hash_table_iter_init(&iter, look->clients);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_remove(clients, id);
    return clients;
}

/* @shared: without memory that several may have. FALSE: the driver does not say what that is. */
static gboolean sum_vram(GHashTable *clients, gboolean shared, guint64 *vram)
{
    GHashTableIter iter;
    void *value;

    *vram = 0;
    g_hash_table_iter_init(&iter, clients);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const DrmClientUse *use = value;

        if (!shared && !use->has_shared)
            return FALSE;
        *vram += shared ? use->vram : use->vram - use->shared;
    }
    return TRUE;
}

static void look_at_files(HostRoot *root, Part *part, const UngovernedLook *look)
{
    GHashTable *clients = clients_of_others(root, part->gpu, look);
    gint64 now = g_get_monotonic_time(), elapsed = now - part->at;
    guint64 of_members;

    sum_vram(clients, TRUE, &part->others);
    if (!sum_vram(look->clients, FALSE, &of_members))
        of_members = 0;
    note_members(part, of_members, look->members->requested);
    if (part->clients)
        note_time(part, elapsed, drm_uses_growth(part->clients, clients, (guint64)elapsed * US_NS));
    g_clear_pointer(&part->clients, g_hash_table_unref);
    part->clients = clients;
    part->at = now;
}

void ungoverned_look(Ungoverned *ungoverned, const Slice *slice, const UngovernedLook *look)
{
    Part *part = part_of(ungoverned, slice);
    g_autoptr(GError) error = NULL;

    if (look->nvidia)
        look_at_readings(part, look);
    else
        look_at_files(ungoverned->root, part, look);
    part->requested = look->members->requested;
    if (!shares_put_ungoverned(ungoverned->root, slice, part->others + part->charged, part->gpu_ns,
                               &error))
        g_warning("the arbiter of GPU %s can't be told what slice %s uses without its governor: %s",
                  slice->gpu, slice->uuid, error->message);
}

void ungoverned_keep(Ungoverned *ungoverned, const Slice *slice)
{
    Part *part = g_hash_table_lookup(ungoverned->parts, slice->uuid);

    if (part)
        part->round = ungoverned->round;
}

static gboolean leave_round(void *uuid, void *value, void *data)
{
    const Ungoverned *ungoverned = data;
    const Part *part = value;

    if (part->round == ungoverned->round)
        return FALSE;
    shares_forget_ungoverned(ungoverned->root, part->gpu, uuid);
    return TRUE;
}

void ungoverned_end_round(Ungoverned *ungoverned)
{
    g_hash_table_foreach_remove(ungoverned->parts, leave_round, ungoverned);
    ungoverned->round++;
}
