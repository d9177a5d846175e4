/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/alone_time.h"

#include "lib/drm_clients.h"
#include "lib/nvidia_readings.h"

/* Of a slice: nobody keeps vgpud busy with more. */
#define MOST_PROCESSES 256
#define MOST_FILES     4096
/* A per cent of a microsecond, in ns. */
#define PERCENT_NS 10

/**
 * Part - of one slice
 * @clients: the time of each client of the GPU's driver, ns by its id, at the last look; NULL: it
 * was not alone then
 * @at: of the last look
 * @ns: what has accumulated
 */
typedef struct {
    GHashTable *clients;
    gint64 at;
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
    GHashTable *clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    guint files = MOST_FILES;

    for (guint i = 0; i < MIN(pids->len, MOST_PROCESSES); i++)
        drm_process_times(root, g_array_index(pids, guint, i), gpu, clients, &files);
    return clients;
}

/* A client that was not there at the last look has had all its time since. */
static guint64 moved(GHashTable *before, GHashTable *now)
{
    guint64 sum = 0;
    GHashTableIter iter;
    void *id, *value;

    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &id, &value)) {
        const guint64 *then = g_hash_table_lookup(before, id);
        guint64 ns = *(const guint64 *)value;

        sum += then ? ns - MIN(*then, ns) : ns;
    }
    return sum;
}

static void look(HostRoot *root, Part *part, const char *gpu, const GArray *pids, gint64 now)
{
    GHashTable *clients = clients_of(root, gpu, pids);
    guint percent;

    part->known = TRUE;
    if (g_hash_table_size(clients))
        part->ns += part->clients ? moved(part->clients, clients) : 0;
    else if (nvidia_busy(root, gpu, &percent))
        part->ns += part->clients ? (guint64)(now - part->at) * percent * PERCENT_NS : 0;
    else
        part->known = FALSE;
    g_clear_pointer(&part->clients, g_hash_table_unref);
    part->clients = clients;
    part->at = now;
}

void alone_time_add(AloneTime *times, const char *gpu, const char *uuid, SliceUse *use,
                    const GArray *pids, gint64 now)
{
    Part *part = part_of(times, uuid);

    if (use->alone)
        look(times->root, part, gpu, pids, now);
    else
        g_clear_pointer(&part->clients, g_hash_table_unref);
    use->alone_ns = part->ns;
    use->alone_known = part->known;
}

void alone_time_forget(AloneTime *times, const char *uuid)
{
    g_hash_table_remove(times->parts, uuid);
}
