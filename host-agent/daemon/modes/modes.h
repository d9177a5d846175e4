/* SPDX-License-Identifier: MIT */
/*
 * The modes of the host's GPUs on D-Bus: SetMode, Drain, ListUsers, and the properties that tell of
 * them. Sees to it that each GPU that gpus.conf names has the mode that is wanted, as far as nobody
 * is in the way.
 */
#ifndef VGPUD_MODES_MODES_H
#define VGPUD_MODES_MODES_H

#include "host-agent/daemon/modes/mode_switch.h"

typedef struct Modes Modes;

/* Both live longer, but @operations ends first: after that nothing of a switch comes back. */
Modes *modes_new(Host *host, Operations *operations);

void modes_free(Modes *modes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Modes, modes_free)

/*
 * Where the kernel module is not loaded: shares the GPUs that are wanted so with containers, before
 * the host is read first.
 */
void modes_share_without_driver(const Modes *modes);

/* Gives GPUs the modes that are wanted. The host must have been read, and operations resumed. */
void modes_recover(Modes *modes);

/* gpus.conf may have changed. */
void modes_reload(Modes *modes);

/*
 * SetMode's own way, for callers inside: @func is called later, once, from the main loop. FALSE:
 * not begun, and @func is not called: AGENT_ERROR_NOT_FOUND, AGENT_ERROR_INVALID,
 * AGENT_ERROR_IN_USE (it is being switched already).
 */
gboolean modes_set(Modes *modes, const SwitchRequest *request, SwitchDone func, void *data,
                   GError **error);

/* Ends a switch of the GPU that still waits for its users: all is as before then. Not one that has
 * begun. */
void modes_cancel(Modes *modes, const char *address);

#endif
