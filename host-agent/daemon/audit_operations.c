/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/audit_operations.h"

#include "host-agent/daemon/host/audit_log.h"
#include "lib/audit.h"

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

static void begins(const Operation *operation, void *data)
{
    const AuditOperations *audit = data;

    if (source_of(operation))
        g_hash_table_replace(audit->before, (void *)operation, states_of(operation));
}

static void ended(const Operation *operation, const GError *error, void *data)
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
    operations_watch(operations, &(OperationWatch){begins, ended, audit});
    return audit;
}

void audit_operations_free(AuditOperations *audit)
{
    g_hash_table_unref(audit->before);
    g_free(audit);
}
