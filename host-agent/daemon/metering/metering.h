/* SPDX-License-Identifier: MIT */
/*
 * vgpud's side of the meter: what the meter must know, and what it tells. There is one meter at a
 * time; without one, vgpud goes on with what it was told last.
 */
#ifndef VGPUD_METERING_METERING_H
#define VGPUD_METERING_METERING_H

#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/findings.h"
#include "host-agent/daemon/slices/evictions.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef struct Metering Metering;

/**
 * MeteringParts - all of them live longer
 */
typedef struct {
    Host *host;
    Slices *slices;
    const Tenants *tenants;
    const Claims *claims;
    Findings *findings;
    Evictions *evictions;
    const MeterLink *meter;
} MeteringParts;

Metering *metering_new(const MeteringParts *parts);

void metering_free(Metering *metering);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Metering, metering_free)

/* What a meter that begins must know: the answer of Begin. Floating. */
GVariant *metering_state(const Metering *metering);

/* A meter begins: what an earlier one has told of memory is no longer so. */
void metering_begin_anew(Metering *metering);

/* A method that the meter calls. */
void metering_call(Metering *metering, const char *method, GVariant *arguments);

/* A slice was added, changed or removed, or its users have changed. */
void metering_slice_changed(const Metering *metering, const char *uuid);
void metering_users_changed(const Metering *metering, const char *uuid);

#endif
