/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/pools.h"

#include "lib/bus.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/model/request.h"
#include "host-agent/store/owner_table.h"

struct Pools {
    Host *host;
    const Slices *slices;
};

/* NULL: gpus.conf gives none. */
static const char *declared_of(const GPtrArray *entries, const char *gpu)
{
    const GpuEntry *entry = gpus_find(entries, gpu);

    return entry ? entry->pool : NULL;
}

/* As wanted_source() has it. */
static const char *source_of(const char *set, const char *declared)
{
    if (!set)
        return declared ? "declared" : "";
    if (!declared)
        return "by command";
    return g_str_equal(set, declared) ? "declared" : "by command, declared otherwise";
}

void pools_refresh(const Pools *pools)
{
    g_autoptr(GPtrArray) entries = host_wanted(pools->host);
    const GPtrArray *gpus = host_gpus(pools->host);

    for (guint i = 0; i < gpus->len; i++) {
        const char *gpu = ((const Gpu *)g_ptr_array_index(gpus, i))->pci->address;
        VgpuGpu *interface = host_gpu_interface(pools->host, gpu);
        g_autofree char *set = pool_table_get(host_db(pools->host), gpu);
        const char *declared = declared_of(entries, gpu);

        if (!interface)
            continue;
        vgpu_gpu_set_pool(interface, set ? set : declared ? declared : GPU_POOL_LOCAL);
        vgpu_gpu_set_pool_source(interface, source_of(set, declared));
    }
}

static void gpus_changed(void *data)
{
    pools_refresh(data);
}

/* Work of another engine would be on the GPU beside that of the new one. */
static gboolean is_in_the_way(const Slice *slice, const char *gpu, const char *pool)
{
    return *slice->owner && g_str_equal(slice->gpu, gpu) &&
           g_strcmp0(*slice->pool ? slice->pool : GPU_POOL_LOCAL, pool) != 0;
}

static gboolean check_free(const Pools *pools, const char *gpu, const char *pool, GError **error)
{
    const GPtrArray *slices = slices_all(pools->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (!is_in_the_way(slice, gpu, pool))
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

static gboolean set_pool(const Pools *pools, const char *gpu, const char *pool, const char *user,
                         GError **error)
{
    if (!pool_table_set(host_db(pools->host), gpu, pool, error))
        return FALSE;
    pools_refresh(pools);
    host_event(pools->host, "pool", gpu, NULL, "GPU %s was given to pool %s by %s", gpu, pool,
               user);
    return TRUE;
}

static gboolean has_pool(const char *gpu, const char *pool, void *data)
{
    const Pools *pools = data;
    VgpuGpu *interface = host_gpu_interface(pools->host, gpu);

    return interface && g_strcmp0(vgpu_gpu_get_pool(interface), pool) == 0;
}

static void add_users(const char *gpu, const char *pool, GStrvBuilder *users, void *data)
{
    const Pools *pools = data;
    const GPtrArray *slices = slices_all(pools->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (is_in_the_way(slice, gpu, pool))
            g_strv_builder_take(users, g_strdup_printf("%s has slice %s, which is not of pool %s",
                                                       slice->owner, slice->uuid, pool));
    }
}

static gboolean set_by_schedule(const char *gpu, const char *pool, GError **error, void *data)
{
    return has_pool(gpu, pool, data) || set_pool(data, gpu, pool, AUDIT_BY_SCHEDULE, error);
}

SwitchPools pools_for_switches(Pools *pools)
{
    return (SwitchPools){has_pool, add_users, set_by_schedule, pools};
}

/* Of a GPU whose pool is declared, so that what was set by command is to be forgotten. */
static gboolean forget_pool(const Pools *pools, const char *gpu, const char *declared,
                            gboolean dry_run, GStrvBuilder *changes, GError **error)
{
    g_autofree char *set = pool_table_get(host_db(pools->host), gpu);

    if (g_strcmp0(set, declared) != 0) {
        if (!check_free(pools, gpu, declared, error))
            return FALSE;
        g_strv_builder_take(changes, g_strdup_printf("GPU %s: pool %s as " GPUS_CONF
                                                     " declares it, not %s as set by command",
                                                     gpu, declared, set));
    }
    return dry_run || pool_table_set(host_db(pools->host), gpu, NULL, error);
}

gboolean pools_apply(const Pools *pools, gboolean dry_run, GStrvBuilder *changes, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) entries = gpus_load_conf(host_root(pools->host), &cause);
    g_auto(GStrv) gpus = NULL;

    if (!entries) {
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
        return FALSE;
    }
    gpus = pool_table_gpus(host_db(pools->host), error);
    for (guint i = 0; gpus && gpus[i]; i++) {
        const char *declared = declared_of(entries, gpus[i]);

        if (declared && !forget_pool(pools, gpus[i], declared, dry_run, changes, error))
            return FALSE;
    }
    return gpus != NULL;
}

static void set_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Pools *pools = data;
    const Gpu *gpu = call_gpu(invocation, pools->host);
    g_autoptr(GError) error = NULL;
    gboolean dry_run = FALSE;
    const char *pool;

    if (!gpu)
        return;
    if (!read_call(invocation, &pool, &dry_run, &error) ||
        !check_free(pools, gpu->pci->address, pool, &error) ||
        (!dry_run && !set_pool(pools, gpu->pci->address, pool, caller->user, &error)))
        call_fail(invocation, error);
    else
        call_answer(invocation, NULL);
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
    host_watch(host, gpu_added, gpus_changed, pools);
    return pools;
}

void pools_free(Pools *pools)
{
    g_free(pools);
}
