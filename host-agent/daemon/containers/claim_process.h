/* SPDX-License-Identifier: MIT */
/*
 * The processes that keep a claim: the first one of a container or program, and the others of a
 * program's systemd scope.
 */
#ifndef DAEMON_CONTAINERS_CLAIM_PROCESS_H
#define DAEMON_CONTAINERS_CLAIM_PROCESS_H

#include "host-agent/store/tables.h"
#include "lib/host_root.h"

/*
 * When the process began, in ticks since boot; 0: it does not exist, or has ended, or that can't be
 * told now.
 */
guint64 claim_process_started(HostRoot *root, guint pid);

/*
 * Where its stack begins. exec() chooses that by chance, and a forked child has its parent's. 0: it
 * is not known.
 */
guint64 claim_process_stack(HostRoot *root, guint pid);

/*
 * The cgroup of the process, if that is the scope that "vgpuctl run" has made for the slice
 * @uuid; else "". To be freed.
 */
char *claim_process_scope(HostRoot *root, guint pid, const char *uuid);

/*
 * The cgroup that has the processes of @claim and no others: the program's scope, or the
 * container's, which its runtime names after it. If a member has claimed it, it is below the
 * member's own user@UID.service. Without the mount point. To be freed; NULL: there is none.
 */
char *claim_process_own_cgroup(HostRoot *root, const Claim *claim);

/* The last one counts if a claim has two: of its first process and of its scope. */
typedef enum {
    CLAIM_STATE_ENDED,   /* there are no such processes, or it was made before a reboot */
    CLAIM_STATE_UNKNOWN, /* vgpud can't look now */
    CLAIM_STATE_ALIVE,   /* its first process has not ended, or its scope has processes */
} ClaimState;

ClaimState claim_process_state(HostRoot *root, const Claim *claim);

/* It is not known to have ended: what can't be told now must not take a slice from its user. */
gboolean claim_process_is_alive(HostRoot *root, const Claim *claim);

typedef struct ClaimWatch ClaimWatch;

/* @func is called from the main loop when a process or scope of @claim may have ended. */
ClaimWatch *claim_watch_new(HostRoot *root, const Claim *claim, void (*func)(void *data),
                            void *data);

/* May also be called from @func. */
void claim_watch_free(ClaimWatch *watch);

/* The kernel reports every change that claim_process_is_alive() depends on. */
gboolean claim_watch_is_complete(const ClaimWatch *watch);

#endif
