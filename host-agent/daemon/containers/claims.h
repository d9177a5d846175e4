/* SPDX-License-Identifier: MIT */
/*
 * Which container has which slice, and which program that "vgpuctl run" has started. A runtime tells
 * by container-hooks/ when a container begins and ends; an end that nobody tells of is seen by the
 * first process. A program has its slice until that process has ended and its scope of systemd is
 * empty; without a scope, until no process uses the slice.
 */
#ifndef VGPUD_CONTAINERS_CLAIMS_H
#define VGPUD_CONTAINERS_CLAIMS_H

#include "host-agent/daemon/slices/slices.h"

#define CLAIM_MAX_CONTAINER 255

typedef struct Claims Claims;

/* @host: lives longer. Reads the database. */
Claims *claims_new(Host *host, GError **error);

void claims_free(Claims *claims);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claims, claims_free)

/* @func is called with the UUID of a slice whose container has ended without a word; it may forget
 * the claim. */
void claims_watch(Claims *claims, void (*ended)(const char *uuid, void *data), void *data);

/* @func is called when a slice has got a container, or lost it. */
void claims_watch_changes(Claims *claims, SlicesFunc func, void *data);

/* The container that has the slice now; NULL: none. Valid until the next call. */
const char *claims_container(const Claims *claims, const char *uuid);

/* One container has both now. */
gboolean claims_are_of_one(const Claims *claims, const char *uuid, const char *other);

/* Whether a program has it, or had it last, and whose that is. */
gboolean claims_program_user(const Claims *claims, const char *uuid, guint32 *user);

/* Whether it was that container's, which may have ended by now. */
gboolean claims_is_of(const Claims *claims, const char *uuid, const char *container);

/*
 * Who uses the slice, as "container web" or "2 processes", also where no runtime has told; NULL:
 * nobody. To be freed.
 */
char *claims_user(const Claims *claims, Counters *counters, const Slice *slice);

/*
 * @container, whose first process is @pid, has the slice from now on. AGENT_ERROR_INVALID (no such
 * process, or no name), AGENT_ERROR_IN_USE (another container has it). Whether its GPU takes
 * anybody now is asked before (placing_admit()).
 * @user: who says so, where the process must be theirs; NULL: anybody's will do.
 */
gboolean claims_take(Claims *claims, const Slice *slice, const char *container, guint pid,
                     const guint32 *user, GError **error);

/*
 * The same for a program of @user's, called @program, which process @pid is or becomes.
 */
gboolean claims_take_program(Claims *claims, const Slice *slice, const char *program, guint pid,
                             guint32 user, GError **error);

/* Nobody has it any more. */
void claims_forget(Claims *claims, const char *uuid);

/* For tests, which don't wait. Looks whether containers have ended. */
void claims_look(Claims *claims);

/*
 * Slices of one GPU and tenant that one container has by the door native: a program sees that GPU once, so
 * they are one share of it, as large as all of them. The arbiter knows it as the first of them, by
 * UUID, whose socket is the one that the governor's layer takes in a container that has several.
 */
/* UUID of the slice that stands for it: its own, where it is alone. Valid as long as that slice. */
const char *share_group_first(const Slices *slices, const Claims *claims, const Slice *slice);

/* As its arbiter is to know it, to be freed; NULL: not at all, another stands for it. */
Slice *share_group_share(const Slices *slices, const Claims *claims, const Slice *slice);

#endif
