/* SPDX-License-Identifier: MIT */
/* The audit of operations that nobody asked for on the bus: vgpud began or finished them by itself.
 */
#ifndef VGPUD_AUDIT_OPERATIONS_H
#define VGPUD_AUDIT_OPERATIONS_H

#include "host-agent/daemon/operations/operation.h"

typedef struct AuditOperations AuditOperations;

/* Watches @operations, which are freed first. */
AuditOperations *audit_operations_new(Operations *operations);

void audit_operations_free(AuditOperations *audit);

#endif
