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

/* @func is called when a tenant has come, changed or gone. */
void tenants_watch(Tenants *tenants, void (*func)(void *data), void *data);

/* NULL: there is none of that name. */
const Tenant *tenants_find(const Tenants *tenants, const char *name);

/* AGENT_ERROR_NOT_FOUND where there is none of that name. */
gboolean tenants_check(const Tenants *tenants, const char *name, GError **error);

/* Whether @user belongs to the tenant. */
gboolean tenants_has_user(const Tenants *tenants, const char *name, const char *user);

/* Whether @user belongs to any tenant. */
gboolean tenants_any_has_user(const Tenants *tenants, const char *user);

/* Whether @user sees slices of that tenant; NULL sees those of all. */
gboolean tenants_shows(const Tenants *tenants, const char *name, const char *user);

/*
 * Whether the tenant may have slices that come to @more beside what it has. "" is nobody, and may. A tenant that
 * there is not: AGENT_ERROR_NOT_FOUND.
 */
gboolean tenants_admit(const Tenants *tenants, const char *name, const TenantUse *more,
                       GError **error);

#endif
