/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/domains/domain_watch.h"

#include "host-agent/daemon/domains/domain_release.h"
#include "lib/processes.h"
#include "lib/vgpu.h"

#define PERIOD_S 30

struct DomainWatch {
    const Lifecycle *life;
    GHashTable *since; /* UUID to gint64: when it was first found unused */
    guint timer;
};

static gboolean is_left_alone(const DomainWatch *watch, const Slice *slice)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(watch->life->host), slice->uuid);

    return (!vgpu || g_str_equal(vgpu->device, "closed")) &&
           !vm_is_running(host_root(watch->life->host), slice->domain);
}

/* Unused for long enough at @now. */
static gboolean is_over(DomainWatch *watch, const Slice *slice, gint64 now)
{
    const gint64 *since = g_hash_table_lookup(watch->since, slice->uuid);

    if (!slice->domain[0] || 
        operations_doing(watch->life->operations, slice->uuid) || !is_left_alone(watch, slice)) {
        g_hash_table_remove(watch->since, slice->uuid);
        return FALSE;
    }
    if (!since) {
        g_hash_table_insert(watch->since, g_strdup(slice->uuid), g_memdup2(&now, sizeof(now)));
        return FALSE;
    }
    return now - *since >= DOMAIN_WATCH_GRACE;
}

static void released(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("cannot remove a vGPU whose VM has ended: %s; it will be tried again",
                  error->message);
}

void domain_watch_look(DomainWatch *watch, gint64 now)
{
    const GPtrArray *slices = slices_all(watch->life->slices);
    g_autoptr(GStrvBuilder) over = g_strv_builder_new();
    g_auto(GStrv) uuids = NULL;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (is_over(watch, slice, now))
            g_strv_builder_add(over, slice->uuid);
    }
    uuids = g_strv_builder_end(over);
    for (guint i = 0; uuids[i]; i++)
        g_hash_table_remove(watch->since, uuids[i]);
    if (uuids[0])
        domain_release_run(watch->life, (const char *const *)uuids, released, NULL);
}

static gboolean look(void *data)
{
    domain_watch_look(data, g_get_monotonic_time());
    return G_SOURCE_CONTINUE;
}

DomainWatch *domain_watch_new(const Lifecycle *life)
{
    DomainWatch *watch = g_new0(DomainWatch, 1);

    watch->life = life;
    watch->since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    watch->timer = g_timeout_add_seconds(PERIOD_S, look, watch);
    return watch;
}

void domain_watch_free(DomainWatch *watch)
{
    g_source_remove(watch->timer);
    g_hash_table_unref(watch->since);
    g_free(watch);
}
