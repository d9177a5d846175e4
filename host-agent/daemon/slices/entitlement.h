/* SPDX-License-Identifier: MIT */
/*
 * What a member of a tenant may ask of a vGPU without an administrator: quotas bound VRAM, compute and number;
 * weight, priority and cap, which are at the cost of the neighbours on the GPU, are bounded by the type.
 */
#ifndef VGPUD_ENTITLEMENT_H
#define VGPUD_ENTITLEMENT_H

#include "host-agent/daemon/slices/offers.h"

/*
 * @wanted has at most its type's weight and priority and at least as tight a cap, or what @before had of them; and no more
 * engines of the GPU than @before.
 * @before: the slice as it is; NULL: it is new. @offer: NULL: the type is not known, and has nothing. AGENT_ERROR_NOT_AUTHORIZED with what is too much.
 */
gboolean entitlement_check(const Slice *wanted, const Slice *before, const Offer *offer,
                           GError **error);

#endif
