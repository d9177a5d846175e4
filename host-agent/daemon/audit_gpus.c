/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/audit_gpus.h"

#include "host-agent/daemon/host/audit_log.h"
#include "lib/audit.h"

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

static void changed(void *data)
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
    host_watch(host, NULL, changed, audit);
    return audit;
}

void audit_gpus_free(AuditGpus *audit)
{
    g_hash_table_unref(audit->modes);
    g_free(audit);
}
