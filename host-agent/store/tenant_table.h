/* SPDX-License-Identifier: MIT */
/*
 * Tenants as the database keeps them.
 */
#ifndef STORE_TENANT_TABLE_H
#define STORE_TENANT_TABLE_H

#include "host-agent/model/tenant.h"
#include "host-agent/store/db.h"

/* All of them, of Tenant, by name; NULL with @error. */
GPtrArray *tenant_table_read(Db *db, GError **error);

/* Writes a tenant, new or known. */
gboolean tenant_table_put(Db *db, const Tenant *tenant, GError **error);

gboolean tenant_table_remove(Db *db, const char *name, GError **error);

#endif
