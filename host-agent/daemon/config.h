/* SPDX-License-Identifier: MIT */
/*
 * /etc/vgpu against what was set by command.
 */
#ifndef VGPUD_CONFIG_H
#define VGPUD_CONFIG_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/tenants.h"

/* The tenants that are declared now, of TenantEntry; NULL with AGENT_ERROR_INVALID. */
GPtrArray *config_tenants(const char *root, GError **error);

/*
 * Forgets what commands have set that /etc/vgpu declares; or, by the option DryRun, finds out what
 * that would change. Returns a sentence for each change; NULL with @error: nothing was changed. The
 * files are not read again by that.
 */
GStrv config_apply(Host *host, Tenants *tenants, GVariant *options, gboolean *dry_run,
                   GError **error);

#endif
