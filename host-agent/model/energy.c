/* SPDX-License-Identifier: MIT */
#include "host-agent/model/energy.h"

#define US_TO_NS 1000.0

/* A GPU's last reading. */
typedef struct {
    guint64 uj;
    gint64 at;
} Reading;

/**
 * Part - a slice
 * @since: when it began
 * @gpu_ns, @submissions: its counters, as they were told last
 * @ns, @worked: what has been added to them since the last reading
 * @uj: not taken yet
 * @known: there was a reading after its start
 */
typedef struct {
    char *gpu;
    guint64 promised;
    gint64 since;
    guint64 gpu_ns;
    guint64 submissions;
    double ns;
    gboolean worked;
    double uj;
    gboolean known;
} Part;

struct Energy {
    GHashTable *readings; /* GPU to Reading */
    GHashTable *parts;    /* UUID to Part */
};

static void part_free(void *data)
{
    Part *part = data;

    g_free(part->gpu);
    g_free(part);
}

Energy *energy_new(void)
{
    Energy *energy = g_new0(Energy, 1);

    energy->readings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    energy->parts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, part_free);
    return energy;
}

void energy_free(Energy *energy)
{
    g_hash_table_unref(energy->readings);
    g_hash_table_unref(energy->parts);
    g_free(energy);
}

void energy_clear(Energy *energy)
{
    g_hash_table_remove_all(energy->readings);
    g_hash_table_remove_all(energy->parts);
}

void energy_note(Energy *energy, const char *uuid, const char *gpu, guint64 promised, gint64 now)
{
    Part *part = g_hash_table_lookup(energy->parts, uuid);

    if (!part) {
        part = g_new0(Part, 1);
        part->gpu = g_strdup(gpu);
        part->since = now;
        g_hash_table_insert(energy->parts, g_strdup(uuid), part);
    }
    part->promised = promised;
}

void energy_forget(Energy *energy, const char *uuid)
{
    g_hash_table_remove(energy->parts, uuid);
}

static guint64 moved(guint64 now, guint64 *last)
{
    guint64 by = now < *last ? now : now - *last;

    *last = now;
    return by;
}

void energy_count(Energy *energy, const char *uuid, guint64 gpu_ns, guint64 submissions)
{
    Part *part = g_hash_table_lookup(energy->parts, uuid);

    if (!part)
        return;
    part->ns += (double)moved(gpu_ns, &part->gpu_ns);
    part->worked = moved(submissions, &part->submissions) || part->worked;
}

/* Of the GPU; to be freed. */
static GPtrArray *parts_of(const Energy *energy, const char *gpu)
{
    GPtrArray *parts = g_ptr_array_new();
    GHashTableIter iter;
    void *part;

    g_hash_table_iter_init(&iter, energy->parts);
    while (g_hash_table_iter_next(&iter, NULL, &part))
        if (g_str_equal(((const Part *)part)->gpu, gpu))
            g_ptr_array_add(parts, part);
    return parts;
}

/* How much of the time since @from it has existed, 0 to 1. */
static double presence_of(const Part *part, gint64 from, gint64 now)
{
    return (double)(now - CLAMP(part->since, from, now)) / (double)(now - from);
}

/* The work of a slice that is alone is not measured. */
static void measure_lone(const GPtrArray *parts, gint64 from, gint64 now)
{
    Part *lone = NULL;

    for (guint i = 0; i < parts->len; i++) {
        Part *part = parts->pdata[i];

        if (part->ns > 0 || (part->worked && lone))
            return;
        if (part->worked)
            lone = part;
    }
    if (lone)
        lone->ns = presence_of(lone, from, now) * (double)(now - from) * US_TO_NS;
}

static void split_energy(const GPtrArray *parts, double uj, double whole, gint64 from, gint64 now)
{
    double elapsed = (double)(now - from) * US_TO_NS, ns = 0, promised = 0, busy;

    measure_lone(parts, from, now);
    for (guint i = 0; i < parts->len; i++) {
        const Part *part = parts->pdata[i];

        ns += part->ns;
        promised += (double)part->promised * presence_of(part, from, now);
    }
    busy = MIN(ns / elapsed, 1);
    whole = MAX(whole, promised);
    for (guint i = 0; i < parts->len; i++) {
        Part *part = parts->pdata[i];

        if (ns > 0)
            part->uj += uj * busy * part->ns / ns;
        if (whole > 0)
            part->uj +=
                uj * (1 - busy) * (double)part->promised * presence_of(part, from, now) / whole;
    }
}

static void begin_again(const GPtrArray *parts, gboolean known)
{
    for (guint i = 0; i < parts->len; i++) {
        Part *part = parts->pdata[i];

        part->ns = 0;
        part->worked = FALSE;
        part->known = part->known || known;
    }
}

void energy_read(Energy *energy, const char *gpu, guint64 uj, guint64 whole, gint64 now)
{
    g_autoptr(GPtrArray) parts = parts_of(energy, gpu);
    Reading *last = g_hash_table_lookup(energy->readings, gpu);
    gboolean is_next = last && uj >= last->uj && now > last->at;

    if (last && now == last->at)
        return;
    if (is_next)
        split_energy(parts, (double)(uj - last->uj), (double)whole, last->at, now);
    begin_again(parts, is_next);
    if (!last) {
        last = g_new0(Reading, 1);
        g_hash_table_insert(energy->readings, g_strdup(gpu), last);
    }
    *last = (Reading){uj, now};
}

gboolean energy_take(Energy *energy, const char *uuid, guint64 *uj)
{
    Part *part = g_hash_table_lookup(energy->parts, uuid);

    if (!part || !part->known)
        return FALSE;
    *uj = (guint64)part->uj;
    part->uj -= (double)*uj;
    return TRUE;
}
