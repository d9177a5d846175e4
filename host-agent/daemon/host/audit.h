/* SPDX-License-Identifier: MIT */
/* The audit of calls on the bus. Those that change nothing leave no entry. */
#ifndef VGPUD_AUDIT_H
#define VGPUD_AUDIT_H

#include "host-agent/daemon/host/audit_log.h"
#include "host-agent/daemon/host/authority.h"

/* The caller is authorized, and @invocation is about to be executed. Called for every method. */
void audit_begin(GDBusMethodInvocation *invocation, const Caller *caller);

#endif
