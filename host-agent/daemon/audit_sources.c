/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/audit_sources.h"

#include "lib/bus.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/model/slice_keys.h"

/* The audit of GPUs that appear, disappear, or change their mode without vgpud. */

/**
 * struct AuditGpus
 * @modes: address to "Mode=shared", as last seen
 * @was_read: there was a first look, which has nothing to compare with
 */
struct AuditGpus {
    const Host *host;
    const Operations *operations;
    GHashTable *modes;
    gboolean was_read;
};

/* A change during an operation is the operation's. */
static void write_found(const AuditGpus *audit, const char *gpu, const char *before,
                        const char *after)
{
    if (audit->was_read && audit_is_on() && !g_str_equal(before, after) &&
        !operations_doing(audit->operations, gpu))
        audit_write(&(AuditEntry){.who = AUDIT_BY_KERNEL,
                                  .what = AUDIT_DO_FIND,
                                  .object = gpu,
                                  .before = before,
                                  .after = after});
}

static void look_at(const AuditGpus *audit, const Gpu *gpu)
{
    const char *address = gpu->pci->address;
    const char *before = g_hash_table_lookup(audit->modes, address);
    char *after = g_strconcat("Mode=", gpu_mode_name(gpu->mode), NULL);

    write_found(audit, address, before ? before : "", after);
    g_hash_table_replace(audit->modes, g_strdup(address), after);
}

static void look_for_gone(const AuditGpus *audit)
{
    GHashTableIter iter;
    void *gpu;
    void *mode;

    g_hash_table_iter_init(&iter, audit->modes);
    while (g_hash_table_iter_next(&iter, &gpu, &mode)) {
        if (host_gpu(audit->host, gpu))
            continue;
        write_found(audit, gpu, mode, "");
        g_hash_table_iter_remove(&iter);
    }
}

static void gpus_changed(void *data)
{
    AuditGpus *audit = data;
    const GPtrArray *gpus = host_gpus(audit->host);

    for (guint i = 0; i < gpus->len; i++)
        look_at(audit, g_ptr_array_index(gpus, i));
    look_for_gone(audit);
    audit->was_read = TRUE;
}

AuditGpus *audit_gpus_new(Host *host, const Operations *operations)
{
    AuditGpus *audit = g_new0(AuditGpus, 1);

    audit->host = host;
    audit->operations = operations;
    audit->modes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    host_watch(host, NULL, gpus_changed, audit);
    return audit;
}

void audit_gpus_free(AuditGpus *audit)
{
    g_hash_table_unref(audit->modes);
    g_free(audit);
}

/* The audit of operations that nobody asked for on the bus: vgpud began or finished them by itself.
 */

/**
 * struct AuditOperations
 * @before: of running operations, to their objects' states as a GStrv
 */
struct AuditOperations {
    GHashTable *before;
};

/* NULL: the caller's call is in the audit already. */
static const char *source_of(const Operation *operation)
{
    return operation_is_replayed(operation) ? AUDIT_BY_RECOVERY : operation_source(operation);
}

/* Slices and vGPUs have UUIDs. */
static AuditKind kind_of(const char *object)
{
    return g_uuid_string_is_valid(object) ? AUDIT_SLICE : AUDIT_GPU;
}

static GStrv states_of(const Operation *operation)
{
    g_autoptr(GStrvBuilder) states = g_strv_builder_new();

    for (guint i = 0; i < operation_objects(operation); i++) {
        const char *object = operation_object(operation, i);

        g_strv_builder_take(states, audit_state_of(kind_of(object), object));
    }
    return g_strv_builder_end(states);
}

static void operation_begins(const Operation *operation, void *data)
{
    const AuditOperations *audit = data;

    if (source_of(operation))
        g_hash_table_replace(audit->before, (void *)operation, states_of(operation));
}

static void operation_ended(const Operation *operation, const GError *error, void *data)
{
    const AuditOperations *audit = data;
    const char *source = source_of(operation);
    const GStrv before = g_hash_table_lookup(audit->before, operation);

    for (guint i = 0; source && before && i < operation_objects(operation); i++) {
        const char *object = operation_object(operation, i);

        audit_write_change(source, operation_kind(operation)->name, kind_of(object), object,
                           before[i], error);
    }
    g_hash_table_remove(audit->before, operation);
}

AuditOperations *audit_operations_new(Operations *operations)
{
    AuditOperations *audit = g_new0(AuditOperations, 1);

    audit->before =
        g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, (GDestroyNotify)g_strfreev);
    operations_watch(operations, &(OperationWatch){operation_begins, operation_ended, audit});
    return audit;
}

void audit_operations_free(AuditOperations *audit)
{
    g_hash_table_unref(audit->before);
    g_free(audit);
}

/* The states of objects for the audit. */

static void add_value(GString *text, const char *key, const char *value)
{
    g_string_append_printf(text, "%s%s=%s", text->len ? AUDIT_BETWEEN : "", key, value);
}

static void add_number(GString *text, const char *key, guint64 number)
{
    g_autofree char *value = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    add_value(text, key, value);
}

static void add_flag(GString *text, const char *key, gboolean flag)
{
    add_value(text, key, flag ? "yes" : "no");
}

static void add_key(GString *text, const SliceKey *key, const Slice *slice)
{
    g_autofree char *value = NULL;

    if (key->type == SLICE_KEY_FLAG || key->type == SLICE_KEY_SWITCH) {
        add_flag(text, key->name, slice_key_number(key, slice) > 0);
        return;
    }
    value = slice_key_text(key, slice);
    add_value(text, key->name, value);
}

static void rename_to(char **name, const char *own)
{
    g_free(*name);
    *name = g_strdup(own);
}

static char *slice_state(const AuditWorld *world, char **name, const char *caller)
{
    const Slice *slice = tenants_find_slice(world->tenants, *name, caller);
    const char *user = slice ? claims_claimed_by(world->claims, slice->uuid) : NULL;
    GString *text;

    if (!slice)
        return NULL;
    rename_to(name, slice->uuid);
    text = g_string_new(NULL);
    for (guint i = 0; i < slice_keys_count; i++)
        if (slice_keys[i].uses & SLICE_KEY_AUDITED)
            add_key(text, &slice_keys[i], slice);
    add_value(text, "User", user ? user : "");
    return g_string_free(text, FALSE);
}

static char *tenant_state(const AuditWorld *world, const char *name)
{
    const Tenant *tenant = tenants_find(world->tenants, name);
    g_autofree char *models = tenant ? g_strjoinv(",", tenant->models) : NULL;
    g_autofree char *users = tenant ? g_strjoinv(",", tenant->users) : NULL;
    GString *text;

    if (!tenant)
        return NULL;
    text = g_string_new(NULL);
    add_number(text, "Vram", tenant->vram);
    add_number(text, "Compute", tenant->compute);
    add_number(text, "Vgpus", tenant->vgpus);
    add_value(text, "Models", models);
    add_value(text, "Users", users);
    return g_string_free(text, FALSE);
}

static char *reasons_of(VgpuGpu *interface)
{
    const char *const *reasons = vgpu_gpu_get_health_reasons(interface);

    return reasons ? g_strjoinv(", ", (GStrv)reasons) : g_strdup("");
}

static char *gpu_state(const AuditWorld *world, char **name)
{
    const Gpu *gpu =
        *name[0] == '/' ? host_gpu_at(world->host, *name) : host_gpu(world->host, *name);
    VgpuGpu *interface = gpu ? host_gpu_interface(world->host, gpu->pci->address) : NULL;
    g_autofree char *reasons = NULL;
    GString *text;

    if (!interface)
        return NULL;
    reasons = reasons_of(interface);
    rename_to(name, gpu->pci->address);
    text = g_string_new(NULL);
    add_value(text, "Mode", vgpu_gpu_get_mode(interface));
    add_value(text, "WantedMode", vgpu_gpu_get_wanted_mode(interface));
    add_value(text, "Pool", vgpu_gpu_get_pool(interface));
    add_flag(text, "Draining", vgpu_gpu_get_draining(interface));
    add_flag(text, "Healthy", vgpu_gpu_get_healthy(interface));
    add_value(text, "HealthReasons", reasons);
    return g_string_free(text, FALSE);
}

char *audit_state(AuditKind kind, char **name, const char *user, void *world)
{
    switch (kind) {
    case AUDIT_SLICE:
        return slice_state(world, name, user);
    case AUDIT_TENANT:
        return tenant_state(world, *name);
    case AUDIT_GPU:
        return gpu_state(world, name);
    default:
        return NULL;
    }
}
