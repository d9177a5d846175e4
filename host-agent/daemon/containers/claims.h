/* SPDX-License-Identifier: MIT */
/*
 * Which container uses which slice, and which program of "vgpuctl run". Several containers may use
 * an owner's slice, as those of a pod do, unless it is a vGPU. A runtime reports through
 * container-hooks/ when a container begins and ends; an unreported end is detected by the first
 * process. A program keeps its slice until that process has ended and its systemd scope is empty;
 * without a scope, until no process uses the slice.
 */
#ifndef VGPUD_CONTAINERS_CLAIMS_H
#define VGPUD_CONTAINERS_CLAIMS_H

#include "host-agent/daemon/slices/slices.h"

/*
 * Those that a user has at a time, of programs and containers; an administrator's runtime has no
 * limit. Each takes two of vgpud's descriptors.
 */
#define CLAIMS_MAX_OF_USER 512

typedef struct Claims Claims;

/* @host, @slices: live longer. Reads the database. */
Claims *claims_new(Host *host, const Slices *slices, GError **error);

void claims_free(Claims *claims);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claims, claims_free)

/*
 * @container has ended without a report, or by a reboot; the function may forget its claim of the
 * slice.
 */
typedef void (*ClaimEndFunc)(const char *uuid, const char *container, void *data);
void claims_watch(Claims *claims, ClaimEndFunc ended, void *data);

/* @func is called when a container has claimed or released a slice. */
void claims_watch_changes(Claims *claims, SlicesFunc func, void *data);

/* A container that uses the slice now; NULL: none does. Valid until the next call. */
const char *claims_container(const Claims *claims, const char *uuid);

/* All of them, as "web, db"; "": none. To be freed. */
char *claims_containers(const Claims *claims, const char *uuid);

/* The last one that has claimed it; its processes may have ended meanwhile. NULL: none. */
const char *claims_claimed_by(const Claims *claims, const char *uuid);

/* Whether a program uses the slice, or was its last user, and that program's user. */
gboolean claims_program_user(const Claims *claims, const char *uuid, guint32 *user);

/* Whether that container has claimed it; it may have ended by now. */
gboolean claims_is_of(const Claims *claims, const char *uuid, const char *container);

/* One container uses both now, and no other uses either. */
gboolean claims_are_of_one(const Claims *claims, const char *uuid, const char *other);

/*
 * The directory of the cgroup that has the container's or program's processes and no others. To be
 * freed; NULL: nobody uses the slice, several do, or there is no cgroup of its own.
 */
char *claims_cgroup(const Claims *claims, const char *uuid);

/*
 * The slice's users, as "container web", "2 processes" or "a client of its guard", also without a
 * runtime's report; NULL: none. To be freed. @members: of its GPU, as of arbiters_members().
 */
char *claims_user(const Claims *claims, GHashTable *members, const Slice *slice);

/*
 * @container, whose first process is @pid, claims the slice. AGENT_ERROR_INVALID (no such process,
 * or no name), AGENT_ERROR_IN_USE (another container uses it, and it has no owner). The caller
 * first asks placing_admit() whether its GPU accepts users now. AGENT_ERROR_QUOTA: @user has
 * CLAIMS_MAX_OF_USER already.
 * @user: the caller, if the process must belong to it; NULL: any process.
 */
gboolean claims_take(Claims *claims, const Slice *slice, const char *container, guint pid,
                     const guint32 *user, GError **error);

/* The same for a program of @user, called @program, which process @pid is or becomes. */
gboolean claims_take_program(Claims *claims, const Slice *slice, const char *program, guint pid,
                             guint32 user, GError **error);

/* The last one that has claimed it did so before the host's last boot. */
gboolean claims_are_past(const Claims *claims, const char *uuid);

/* The container does not use the slice any more. */
void claims_end(Claims *claims, const char *uuid, const char *container);

/*
 * Whether @user may say that the container does not use the slice any more: it has ended, or its
 * process is that user's. AGENT_ERROR_NOT_AUTHORIZED.
 */
gboolean claims_may_release(const Claims *claims, const char *uuid, const char *container,
                            guint32 user, GError **error);

/* Nobody does. */
void claims_forget(Claims *claims, const char *uuid);

/* At the start: those of before the host's last boot have ended. */
void claims_recover(Claims *claims);

/* For tests, which do not wait. Checks whether containers have ended. */
void claims_look(Claims *claims);

#endif
