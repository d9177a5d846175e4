/* SPDX-License-Identifier: MIT */
/* Admission and placement, asked by every way in: the methods, mdevctl's callout, boot. */
#ifndef VGPUD_SLICES_PLACING_H
#define VGPUD_SLICES_PLACING_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/request.h"

/*
 * The request's slices, with their GPUs; of Slice, reserved if they are vGPUs. Nothing is stored.
 * @others: of Slice, not stored either, which get their room before; NULL: none.
 * AGENT_ERROR_NOT_FOUND, _NO_ROOM, _NO_ROOM_NOW, _QUOTA, _IN_USE (a UUID that exists already).
 */
GPtrArray *placing_find(const Host *host, Offers *offers, const Slices *slices,
                        const Tenants *tenants, const Request *request, const GPtrArray *others,
                        GError **error);

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

/*
 * Whether a suspended slice may have again what was promised to it: as if it came new, because
 * others may have been promised that meanwhile. Errors are placing_admit()'s.
 */
gboolean placing_admit_resumed(const Host *host, const Slices *slices, const Tenants *tenants,
                               const Slice *slice, GError **error);

/*
 * At the start, when the GPUs are known: slices that were suspended before this boot have no
 * programs any more. Those that have room are suspended no longer, the others wait for ResumeSlice.
 */
void placing_resume_after_boot(const Host *host, Slices *slices, const Tenants *tenants);

/*
 * A change that mdevctl is about to make to a vGPU, checked against ledger, quota and the state of
 * the GPU.
 */

typedef enum {
    CHECK_DEFINE,
    CHECK_MODIFY, /* the definition only */
    CHECK_START,
    CHECK_LIVE, /* the running vGPU */
} CheckAction;

/**
 * DefinitionCheck
 * @parent: mdevctl's name of the GPU
 * @values: those of its attributes that are given, of a slice; an empty Tenant is not given
 * @given: which, of slice_key_bit()
 */
typedef struct {
    const char *uuid;
    const char *parent;
    const char *type;
    CheckAction action;
    gboolean autostart;
    guint64 window;
    Slice *values;
    guint64 given;
} DefinitionCheck;

void definition_check_clear(DefinitionCheck *check);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DefinitionCheck, definition_check_clear)

/* Reads the method's options. AGENT_ERROR_INVALID. */
gboolean definition_check_parse(GVariant *options, DefinitionCheck *check, GError **error);

/*
 * TRUE also if the GPU or the type is unknown. AGENT_ERROR_IN_USE, _NO_ROOM, _QUOTA, _NOT_FOUND
 * (its tenant), with a sentence.
 */
gboolean definition_check(const Host *host, Offers *offers, const Slices *slices,
                          const Tenants *tenants, const DefinitionCheck *check, GError **error);

#endif
