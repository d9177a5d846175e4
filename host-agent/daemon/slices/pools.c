/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/pools.h"

#include "lib/bus.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/model/request.h"
#include "host-agent/store/owner_table.h"

struct Pools {
    Host *host;
    const Slices *slices;
};

/* What was set by command counts before gpus.conf. To be freed. */
static char *pool_of(const Pools *pools, const GPtrArray *entries, const char *gpu)
{
    char *set = pool_table_get(host_db(pools->host), gpu);
    const GpuEntry *entry = gpus_find(entries, gpu);

    if (set)
        return set;
    return g_strdup(entry && entry->pool ? entry->pool : GPU_POOL_LOCAL);
}

void pools_refresh(const Pools *pools)
{
    g_autoptr(GPtrArray) entries = host_wanted(pools->host);
    const GPtrArray *gpus = host_gpus(pools->host);

    for (guint i = 0; i < gpus->len; i++) {
        const char *gpu = ((const Gpu *)g_ptr_array_index(gpus, i))->pci->address;
        VgpuGpu *interface = host_gpu_interface(pools->host, gpu);
        g_autofree char *pool = pool_of(pools, entries, gpu);

        if (interface)
            vgpu_gpu_set_pool(interface, pool);
    }
}

static void changed(void *data)
{
    pools_refresh(data);
}

/* Work of another engine would be on the GPU beside that of the new one. */
static gboolean check_free(const Pools *pools, const char *gpu, const char *pool, GError **error)
{
    const GPtrArray *slices = slices_all(pools->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!*slice->owner || !g_str_equal(slice->gpu, gpu) ||
            g_strcmp0(*slice->pool ? slice->pool : GPU_POOL_LOCAL, pool) == 0)
            continue;
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_IN_USE,
            "cannot give GPU %s to pool %s: %s has slice %s of it; \"vgpuctl gpu drain %s\" "
            "keeps new work away until it has ended",
            gpu, pool, slice->owner, slice->uuid, gpu);
        return FALSE;
    }
    return TRUE;
}

static gboolean read_call(GDBusMethodInvocation *invocation, const char **pool, gboolean *dry_run,
                          GError **error)
{
    const DictKey keys[] = {{"DryRun", 'b', dry_run, NULL, 0, 0}};
    g_autoptr(GVariant) options = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", pool,
                  &options);
    if (!dict_read(options, keys, G_N_ELEMENTS(keys), error))
        return FALSE;
    if (gpu_pool_valid(*pool))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "the pool must be " GPU_POOL_RULE ", not \"%s\"", *pool);
    return FALSE;
}

static gboolean set(const Pools *pools, const char *gpu, const char *pool, const char *user,
                    GError **error)
{
    if (!pool_table_set(host_db(pools->host), gpu, pool, error))
        return FALSE;
    pools_refresh(pools);
    host_event(pools->host, "pool", gpu, NULL, "GPU %s was given to pool %s by %s", gpu, pool,
               user);
    return TRUE;
}

static const char *gpu_of_call(const Pools *pools, GDBusMethodInvocation *invocation)
{
    const char *called = g_dbus_method_invocation_get_object_path(invocation);
    const GPtrArray *gpus = host_gpus(pools->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autofree char *path = gpu_object_path(gpu->pci->address);

        if (g_str_equal(path, called))
            return gpu->pci->address;
    }
    return NULL;
}

static void set_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Pools *pools = data;
    const char *gpu = gpu_of_call(pools, invocation);
    g_autoptr(GError) error = NULL;
    gboolean dry_run = FALSE;
    const char *pool;

    if (!gpu)
        g_set_error(&error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "the GPU has just gone");
    if (error || !read_call(invocation, &pool, &dry_run, &error) ||
        !check_free(pools, gpu, pool, &error) ||
        (!dry_run && !set(pools, gpu, pool, caller->user, &error)))
        g_dbus_method_invocation_return_gerror(invocation, error);
    else
        g_dbus_method_invocation_return_value(invocation, NULL);
}

static void gpu_added(VgpuGpu *gpu, void *data)
{
    authority_answer(gpu, "handle-set-pool", ACTION_ADMINISTER, set_allowed, NULL, data);
}

Pools *pools_new(Host *host, const Slices *slices)
{
    Pools *pools = g_new0(Pools, 1);

    pools->host = host;
    pools->slices = slices;
    host_watch(host, gpu_added, changed, pools);
    return pools;
}

void pools_free(Pools *pools)
{
    g_free(pools);
}
