/* SPDX-License-Identifier: MIT */
/* The audit of GPUs that appear, disappear, or change their mode without vgpud. */
#ifndef VGPUD_AUDIT_GPUS_H
#define VGPUD_AUDIT_GPUS_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/operations/operation.h"

typedef struct AuditGpus AuditGpus;

/*
 * Watches @host, before others do, which may begin an operation because of the change. Freed after
 * both.
 */
AuditGpus *audit_gpus_new(Host *host, const Operations *operations);

void audit_gpus_free(AuditGpus *audit);

#endif
