/* SPDX-License-Identifier: MIT */
/* The states of objects for the audit. */
#ifndef VGPUD_AUDIT_STATE_H
#define VGPUD_AUDIT_STATE_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/audit_log.h"
#include "host-agent/daemon/slices/tenants.h"

/* The audit's sources; live as long as it. */
typedef struct {
    Host *host;
    const Slices *slices;
    const Tenants *tenants;
    const Claims *claims;
} AuditWorld;

/* An AuditDescribe; @world: an AuditWorld. */
char *audit_state(AuditKind kind, char **name, void *world);

#endif
