/* SPDX-License-Identifier: MIT */
/*
 * A change that mdevctl is about to make to a vGPU, checked against ledger, quota and the state of
 * the GPU.
 */
#ifndef VGPUD_SLICES_DEFINITION_CHECK_H
#define VGPUD_SLICES_DEFINITION_CHECK_H

#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/slices/tenants.h"

typedef enum {
    CHECK_DEFINE,
    CHECK_MODIFY, /* the definition only */
    CHECK_START,
    CHECK_LIVE, /* the running vGPU */
} CheckAction;

/**
 * DefinitionCheck
 * @parent: mdevctl's name of the GPU
 * @vram, @window, @oversubscribe: bytes; like the others below only if they are given
 * @tenant: NULL or "": not given
 */
typedef struct {
    const char *uuid;
    const char *parent;
    const char *type;
    CheckAction action;
    gboolean autostart;
    gboolean vram_given, weight_given, cap_given, priority_given, class_given, oversubscribe_given;
    guint64 vram;
    guint64 window;
    guint weight;
    guint cap;
    guint priority;
    char *tenant;
    SliceClass class;
    guint64 oversubscribe;
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
