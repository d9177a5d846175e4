/* SPDX-License-Identifier: MIT */
/*
 * The tenants of the host, and the manager's methods for them.
 */
#ifndef VGPUD_SLICES_TENANTS_H
#define VGPUD_SLICES_TENANTS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/model/tenant.h"

typedef struct Tenants Tenants;

/* @host, @slices: live longer. */
Tenants *tenants_new(Host *host, const Slices *slices, GError **error);

void tenants_free(Tenants *tenants);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tenants, tenants_free)

/* @func is called when a tenant was added, changed or removed. */
void tenants_watch(Tenants *tenants, void (*func)(void *data), void *data);

/* NULL: no tenant of that name. */
const Tenant *tenants_find(const Tenants *tenants, const char *name);

/* AGENT_ERROR_NOT_FOUND if there is none of that name. */
gboolean tenants_check(const Tenants *tenants, const char *name, GError **error);

/* Whether @user belongs to the tenant. */
gboolean tenants_has_user(const Tenants *tenants, const char *name, const char *user);

/* Whether @user belongs to any tenant. */
gboolean tenants_any_has_user(const Tenants *tenants, const char *user);

/* Users of all tenants; to be freed. */
GStrv tenants_users(const Tenants *tenants);

/* Whether @user sees slices of that tenant; NULL sees those of all. */
gboolean tenants_shows(const Tenants *tenants, const char *name, const char *user);

/*
 * Whether the tenant may have slices of @more in addition to its usage. "" is no tenant, and may.
 * An unknown tenant: AGENT_ERROR_NOT_FOUND.
 */
gboolean tenants_admit(const Tenants *tenants, const char *name, const TenantUse *more,
                       GError **error);

#endif
