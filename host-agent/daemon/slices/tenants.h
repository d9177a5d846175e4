/* SPDX-License-Identifier: MIT */
/*
 * The tenants of the host, and the manager's methods for them.
 */
#ifndef VGPUD_SLICES_TENANTS_H
#define VGPUD_SLICES_TENANTS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/model/admission.h"
#include "lib/tenants_conf.h"

typedef struct Tenants Tenants;

/* @host, @slices: live longer. */
Tenants *tenants_new(Host *host, const Slices *slices, GError **error);

void tenants_free(Tenants *tenants);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tenants, tenants_free)

/* What /etc/vgpu/tenants.d has now; takes @entries, of Tenant. It holds for tenants that no
 * command has set. */
void tenants_declare(Tenants *tenants, GPtrArray *entries);

/*
 * Forgets what commands have set of tenants that are declared in @entries, of Tenant.
 * @changes: a sentence for each that was set otherwise. AGENT_ERROR_QUOTA if one has more than is
 * declared: nothing is changed.
 */
gboolean tenants_apply(Tenants *tenants, const GPtrArray *entries, gboolean dry_run,
                       GStrvBuilder *changes, GError **error);

/* @func is called when a tenant has come, changed or gone. */
void tenants_watch(Tenants *tenants, void (*func)(void *data), void *data);

/* NULL: no tenant of that name. */
const Tenant *tenants_find(const Tenants *tenants, const char *name);

/* AGENT_ERROR_NOT_FOUND if there is none of that name. */
gboolean tenants_check(const Tenants *tenants, const char *name, GError **error);

/* Whether @user belongs to the tenant. */
gboolean tenants_has_user(const Tenants *tenants, const char *name, const char *user);

/* Whether @user belongs to any tenant. */
gboolean tenants_any_has_user(const Tenants *tenants, const char *user);

/* @user belongs to a tenant that may have slices on that GPU. */
gboolean tenants_user_may_use(const Tenants *tenants, const char *user, const Room *room);

/*
 * The vGPU or slice that @user means: a UUID, in upper case as well; "TENANT/NAME"; or a NAME,
 * which is that of a tenant of the user's, or else of a slice without a tenant. Never another
 * tenant's, and none if two tenants of the user's have that name. @user: NULL: of no tenant. NULL:
 * there is none.
 */
const Slice *tenants_find_slice(const Tenants *tenants, const char *text, const char *user);

/*
 * To be appended to the sentence that there is no such slice: which ones are called so, as
 * "; there is red/web", of the tenants of @user, or of all if it has none; else "". To be freed.
 */
char *tenants_slices_called(const Tenants *tenants, const char *name, const char *user);

/*
 * Adds the uids of the tenant's users whom the host has, those of its groups included, to @uids.
 * FALSE: of some it could not tell yet.
 */
gboolean tenants_add_uids(const Tenants *tenants, const char *name, GArray *uids);

/* Whether @user sees slices of that tenant; NULL sees those of all. */
gboolean tenants_shows(const Tenants *tenants, const char *name, const char *user);

/*
 * Whether the tenant may have slices of @more in addition to its usage. "" is no tenant, and may.
 * An unknown tenant: AGENT_ERROR_NOT_FOUND.
 */
gboolean tenants_admit(const Tenants *tenants, const char *name, const TenantUse *more,
                       GError **error);

#endif
