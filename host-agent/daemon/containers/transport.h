/* SPDX-License-Identifier: MIT */
/*
 * Where the sockets of containers' slices are, so that they can be mounted, by a rootless runtime
 * too. Directories that root and, by an ACL, the users of the slice's tenant get through, and
 * nobody else; what is behind them anybody in the container may connect to.
 *
 *   /run/vgpu/containers/UUID          of the door native: so
 *   /run/vgpu/containers/UUID/slice    what is mounted
 *   /run/vgpu/containers/UUID/g/GPU/0
 *                                      a link to that, as the governor's layer looks for it: of a
 *                                      program of the host, which has nothing mounted
 *   /run/vgpu/slices/UUID              a link to that, where the arbiter makes its socket
 *   /run/vgpu/guard/UUID               of the door guarded: so, with the socket of its vgpu-guard,
 * which is mounted
 */
#ifndef VGPUD_CONTAINERS_TRANSPORT_H
#define VGPUD_CONTAINERS_TRANSPORT_H

#include <gio/gio.h>
#include <glib.h>
#include <sys/types.h>

#define CONTAINERS_DIR "/run/vgpu/containers"
#define GUARD_DIR      "/run/vgpu/guard"
#define GUARD_SOCKET   "vtest.sock"

/* Makes those of the door native, or changes who gets through. @uids: of the tenant's users. */
gboolean slice_dirs_make(const char *root, const char *uuid, const uid_t *uids, guint count,
                         GError **error);

/* The link for a program; @gpu: address of the slice's GPU. The directories must be there. */
gboolean slice_dirs_link(const char *root, const char *uuid, const char *gpu, GError **error);

/* Where it is, for VGPU_GOVERNOR_SLICES. To be freed. */
char *slice_dirs_of_program(const char *root, const char *uuid);

/* The same of the door guarded. */
gboolean slice_dirs_make_guard(const char *root, const char *uuid, const uid_t *uids, guint count,
                               GError **error);

/* There are some of either door. */
gboolean slice_dirs_exist(const char *root, const char *uuid);

/* Of both doors, with the sockets. What is not there is passed over. */
void slice_dirs_remove(const char *root, const char *uuid);

/* UUIDs that have such directories of the door native, to be freed. */
GStrv slice_dirs_list(const char *root);

/*
 * vgpu-guard@UUID.service of containers' slices: started with a user of its own, which
 * vgpu-engine-user writes first, and stopped. One step after the other, so that a guard that goes
 * and one that comes with its UUID are not mixed up.
 */
typedef struct GuardUnits GuardUnits;

/* @root: in place of /, as everywhere. @bus: a reference is taken. */
GuardUnits *guard_units_new(const char *root, GDBusConnection *bus);

/* What is not done yet is left undone. */
void guard_units_free(GuardUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuardUnits, guard_units_free)

/* Neither waits; what fails is in the log. */
void guard_units_start(GuardUnits *units, const char *uuid);
void guard_units_stop(GuardUnits *units, const char *uuid);

#endif
