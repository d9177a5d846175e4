/* SPDX-License-Identifier: MIT */
/*
 * The modes of the host's GPUs on D-Bus: SetMode, Drain, ListUsers, and their properties.
 * Reconciles each GPU in gpus.conf with its desired mode, unless it is in use.
 */
#ifndef VGPUD_MODES_MODES_H
#define VGPUD_MODES_MODES_H

#include "host-agent/daemon/modes/mode_switch.h"

typedef struct Modes Modes;

/* Both live longer, but @operations ends first: after that no callback of a switch comes. */
Modes *modes_new(Host *host, Operations *operations);

/* Before the first switch. */
void modes_set_pools(Modes *modes, const SwitchPools *pools);

/* @func is called when a switch of a GPU has ended, so that another may begin. NULL: nobody. */
void modes_watch_switches(Modes *modes, void (*func)(const char *address, void *data), void *data);

void modes_free(Modes *modes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Modes, modes_free)

/*
 * If the kernel module is not loaded: shares the GPUs with desired mode shared with containers,
 * before the host is read first.
 */
void modes_share_without_driver(const Modes *modes);

/* Applies the desired modes. The host must have been read, and operations resumed. */
void modes_recover(Modes *modes);

/* gpus.conf may have changed. */
void modes_reload(Modes *modes);

/*
 * SetMode for callers inside vgpud: @func is called later, once, from the main loop. FALSE: not
 * begun, and @func is not called: AGENT_ERROR_NOT_FOUND, AGENT_ERROR_INVALID, AGENT_ERROR_IN_USE
 * (it is being switched already).
 */
gboolean modes_set(Modes *modes, const SwitchRequest *request, SwitchDone func, void *data,
                   GError **error);

/*
 * Ends a switch of the GPU that still waits for its users: everything is restored then. Does not
 * end one that has begun.
 */
void modes_cancel(Modes *modes, const char *address);

#endif
