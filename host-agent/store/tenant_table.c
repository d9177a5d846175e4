/* SPDX-License-Identifier: MIT */
#include "host-agent/store/tenant_table.h"

/* Between the entries of a list: it is in no name of a user or a model. */
#define SEPARATOR "\n"

static void free_tenant(void *tenant)
{
    tenant_free(tenant);
}

static GStrv list_of(const char *text)
{
    return *text ? g_strsplit(text, SEPARATOR, -1) : g_new0(char *, 1);
}

static void read_tenant(sqlite3_stmt *row, void *data)
{
    Tenant *tenant = g_new0(Tenant, 1);

    tenant->name = g_strdup(db_text(row, 0));
    tenant->vram = (guint64)sqlite3_column_int64(row, 1);
    tenant->compute = (guint)sqlite3_column_int(row, 2);
    tenant->vgpus = (guint)sqlite3_column_int(row, 3);
    tenant->models = list_of(db_text(row, 4));
    tenant->users = list_of(db_text(row, 5));
    g_ptr_array_add(data, tenant);
}

GPtrArray *tenant_table_read(Db *db, GError **error)
{
    g_autoptr(GPtrArray) tenants = g_ptr_array_new_with_free_func(free_tenant);

    if (!db_each(db, error, read_tenant, tenants,
                 "SELECT name, vram, compute, vgpus, models, users FROM tenant ORDER BY name", ""))
        return NULL;
    return g_steal_pointer(&tenants);
}

gboolean tenant_table_put(Db *db, const Tenant *tenant, GError **error)
{
    g_autofree char *models = g_strjoinv(SEPARATOR, tenant->models);
    g_autofree char *users = g_strjoinv(SEPARATOR, tenant->users);

    return db_run(db, error,
                  "INSERT OR REPLACE INTO tenant (name, vram, compute, vgpus, models, users)"
                  " VALUES (?, ?, ?, ?, ?, ?)",
                  "stuuss", tenant->name, tenant->vram, tenant->compute, tenant->vgpus, models,
                  users);
}

gboolean tenant_table_remove(Db *db, const char *name, GError **error)
{
    return db_run(db, error, "DELETE FROM tenant WHERE name = ?", "s", name);
}
