/* SPDX-License-Identifier: MIT */
/*
 * Requests held against the host as it is: ledger, quotas, health, drains, evictions.
 */
#ifndef VGPUD_SLICES_PLACING_H
#define VGPUD_SLICES_PLACING_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/request.h"

/*
 * The slices that the request comes to, with their GPUs; of Slice, reserved if they are vGPUs. Nothing is stored.
 * AGENT_ERROR_NOT_FOUND, _NO_ROOM, _QUOTA, _IN_USE (a UUID that there is already).
 */
GPtrArray *placing_find(const Host *host, Offers *offers, const Slices *slices,
                        const Tenants *tenants, const Request *request, GError **error);

/* The slice as it would be with @change; NULL where ledger or quota are against it. */
Slice *placing_change(const Host *host, const Slices *slices, const Tenants *tenants,
                      const Slice *slice, const Change *change, GError **error);

/*
 * Whether @wanted may be on its GPU in place of @before (NULL: it is new), by that way in. All ways
 * but ADMISSION_CREATE, which placing_find() is, ask this. AGENT_ERROR_IN_USE, _NO_ROOM, _QUOTA,
 * _NOT_FOUND (its tenant, its GPU).
 */
gboolean placing_admit(const Host *host, const Slices *slices, const Tenants *tenants,
                       AdmissionWay way, const Slice *before, const Slice *wanted, GError **error);

#endif
