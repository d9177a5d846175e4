/* SPDX-License-Identifier: MIT */
/*
 * Which container uses which slice, and which program of "vgpuctl run". A runtime reports through
 * container-hooks/ when a container begins and ends; an unreported end is detected by the first
 * process. A program keeps its slice until that process has ended and its systemd scope is empty;
 * without a scope, until no process uses the slice.
 */
#ifndef VGPUD_CONTAINERS_CLAIMS_H
#define VGPUD_CONTAINERS_CLAIMS_H

#include "host-agent/daemon/slices/slices.h"

typedef struct Claims Claims;

/* @host: lives longer. Reads the database. */
Claims *claims_new(Host *host, GError **error);

void claims_free(Claims *claims);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claims, claims_free)

/*
 * @func is called with the UUID of a slice whose container has ended without a report; it may
 * forget the claim.
 */
void claims_watch(Claims *claims, void (*ended)(const char *uuid, void *data), void *data);

/* @func is called when a container has claimed or released a slice. */
void claims_watch_changes(Claims *claims, SlicesFunc func, void *data);

/* The container that uses the slice now; NULL: none. Valid until the next call. */
const char *claims_container(const Claims *claims, const char *uuid);

/* The same, but its processes may have ended meanwhile. */
const char *claims_claimed_by(const Claims *claims, const char *uuid);

/* Whether a program uses the slice, or was its last user, and that program's user. */
gboolean claims_program_user(const Claims *claims, const char *uuid, guint32 *user);

/* Whether that container is its last user; it may have ended by now. */
gboolean claims_is_of(const Claims *claims, const char *uuid, const char *container);

/*
 * The directory of the cgroup that has the container's or program's processes and no others. To be
 * freed; NULL: nobody uses the slice, or it has none of its own.
 */
char *claims_cgroup(const Claims *claims, const char *uuid);

/*
 * The slice's users, as "container web" or "2 processes", also without a runtime's report; NULL:
 * none. To be freed.
 */
char *claims_user(const Claims *claims, Counters *counters, const Slice *slice);

/*
 * @container, whose first process is @pid, claims the slice. AGENT_ERROR_INVALID (no such process,
 * or no name), AGENT_ERROR_IN_USE (another container uses it). The caller first asks
 * placing_admit() whether its GPU accepts users now.
 * @user: the caller, if the process must belong to it; NULL: any process.
 */
gboolean claims_take(Claims *claims, const Slice *slice, const char *container, guint pid,
                     const guint32 *user, GError **error);

/* The same for a program of @user, called @program, which process @pid is or becomes. */
gboolean claims_take_program(Claims *claims, const Slice *slice, const char *program, guint pid,
                             guint32 user, GError **error);

/* The slice has no user any more. */
void claims_forget(Claims *claims, const char *uuid);

/* For tests, which do not wait. Checks whether containers have ended. */
void claims_look(Claims *claims);

/*
 * Slices of one GPU and tenant that one container uses with transport native: a program sees that
 * GPU once, so they form one share of it, as large as all of them. The arbiter knows it as the
 * first of them, by UUID. In a container with several, the governor's layer uses that one's socket.
 */
/* UUID of the slice that represents it: its own if it is alone. Valid as long as that slice. */
const char *share_group_first(const Slices *slices, const Claims *claims, const Slice *slice);

/* The slice for its arbiter, to be freed; NULL: another slice represents it. */
Slice *share_group_share(const Slices *slices, const Claims *claims, const Slice *slice);

#endif
