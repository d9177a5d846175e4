/* SPDX-License-Identifier: MIT */
/* Compares /etc/vgpu with the settings of commands. */
#ifndef VGPUD_CONFIG_H
#define VGPUD_CONFIG_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/slices/tenants.h"
#include "lib/host_root.h"

/* The tenants that are declared now, of TenantEntry; NULL with AGENT_ERROR_INVALID. */
GPtrArray *config_tenants(HostRoot *root, GError **error);

/*
 * Forgets settings of commands that /etc/vgpu declares; with the option DryRun, only determines
 * what would change. Returns a sentence for each change; NULL with @error: nothing was changed. It
 * does not read the files again.
 */
GStrv config_apply(Host *host, Tenants *tenants, GVariant *options, gboolean *dry_run,
                   GError **error);

#endif
