/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/config.h"

#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/model/request.h"
#include "lib/bus.h"

GPtrArray *config_tenants(HostRoot *root, GError **error)
{
    g_autoptr(GError) cause = NULL;
    GPtrArray *entries = tenants_conf_load(root, &cause);

    if (!entries)
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
    return entries;
}

/* Tenants first, because they can refuse it. */
static gboolean apply(Host *host, Tenants *tenants, const GPtrArray *entries, gboolean dry_run,
                      GStrvBuilder *changes, GError **error)
{
    return tenants_apply(tenants, entries, dry_run, changes, error) &&
           wanted_apply(host_root(host), dry_run, changes, error);
}

GStrv config_apply(Host *host, Tenants *tenants, GVariant *options, gboolean *dry_run,
                   GError **error)
{
    const DictKey keys[] = {{"DryRun", 'b', dry_run, NULL, 0, 0}};
    g_autoptr(GPtrArray) entries = NULL;
    g_autoptr(GStrvBuilder) changes = g_strv_builder_new();

    if (!dict_read(options, keys, G_N_ELEMENTS(keys), error))
        return NULL;
    entries = config_tenants(host_root(host), error);
    if (!entries || !apply(host, tenants, entries, *dry_run, changes, error))
        return NULL;
    return g_strv_builder_end(changes);
}
