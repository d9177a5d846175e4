/* SPDX-License-Identifier: MIT */
/*
 * What the audit says of objects before and after a call, and of changes without a call:
 * operations that vgpud begins by itself, and the modes of GPUs.
 */
#ifndef VGPUD_AUDIT_SOURCES_H
#define VGPUD_AUDIT_SOURCES_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/tenants.h"

/* The audit of GPUs that appear, disappear, or change their mode without vgpud. */

typedef struct AuditGpus AuditGpus;

/*
 * Watches @host, before others do, which may begin an operation because of the change. Freed after
 * both.
 */
AuditGpus *audit_gpus_new(Host *host, const Operations *operations);

void audit_gpus_free(AuditGpus *audit);

/* The audit of operations that nobody asked for on the bus: vgpud began or finished them by itself.
 */

typedef struct AuditOperations AuditOperations;

/* Watches @operations, which are freed first. */
AuditOperations *audit_operations_new(Operations *operations);

void audit_operations_free(AuditOperations *audit);

/* The states of objects for the audit. */

/* The audit's sources; live as long as it. */
typedef struct {
    Host *host;
    const Slices *slices;
    const Tenants *tenants;
    const Claims *claims;
} AuditWorld;

/* An AuditDescribe; @world: an AuditWorld. */
char *audit_state(AuditKind kind, char **name, const char *user, void *world);

#endif
