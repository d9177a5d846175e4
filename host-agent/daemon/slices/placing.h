/* SPDX-License-Identifier: MIT */
/* Requests checked against the host's state: ledger, quotas, health, drains, evictions. */
#ifndef VGPUD_SLICES_PLACING_H
#define VGPUD_SLICES_PLACING_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/request.h"

/*
 * The request's slices, with their GPUs; of Slice, reserved if they are vGPUs. Nothing is stored.
 * AGENT_ERROR_NOT_FOUND, _NO_ROOM, _QUOTA, _IN_USE (a UUID that exists already).
 */
GPtrArray *placing_find(const Host *host, Offers *offers, const Slices *slices,
                        const Tenants *tenants, const Request *request, GError **error);

/* The slice as it would be with @change; NULL if ledger or quota do not allow it. */
Slice *placing_change(const Host *host, const Slices *slices, const Tenants *tenants,
                      const Slice *slice, const Change *change, GError **error);

/*
 * Whether @wanted may be on its GPU in place of @before (NULL: it is new), by that entry path. All
 * paths except ADMISSION_CREATE, which is placing_find(), use this. AGENT_ERROR_IN_USE, _NO_ROOM,
 * _QUOTA, _NOT_FOUND (its tenant, its GPU).
 */
gboolean placing_admit(const Host *host, const Slices *slices, const Tenants *tenants,
                       AdmissionWay way, const Slice *before, const Slice *wanted, GError **error);

#endif
