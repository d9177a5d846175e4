/* SPDX-License-Identifier: MIT */
/*
 * The audit: who changed which object by which method, from which state to which, in the journal
 * (lib/audit.h has the fields). Calls that change nothing leave no entry.
 */
#ifndef VGPUD_AUDIT_H
#define VGPUD_AUDIT_H

#include "host-agent/daemon/host/authority.h"

typedef enum {
    AUDIT_SLICE,  /* a vGPU or a slice, by UUID or name */
    AUDIT_TENANT, /* by name */
    AUDIT_GPU,    /* by the path of its object */
    AUDIT_CONFIG, /* /etc/vgpu */
} AuditKind;

/* The state of the object, to be freed; NULL: none. @name becomes its own name. */
typedef char *(*AuditDescribe)(AuditKind kind, char **name, void *data);

/* NULL: ends the audit. */
void audit_set_describe(AuditDescribe func, void *data);

/* The caller is authorized, and @invocation is about to be executed. Called for every method. */
void audit_begin(GDBusMethodInvocation *invocation, const Caller *caller);

/* Takes an entry, "FIELD=value" each. For tests; NULL: the journal. */
typedef void (*AuditSink)(const char *const *fields, void *data);
void audit_set_sink(AuditSink func, void *data);

#endif
