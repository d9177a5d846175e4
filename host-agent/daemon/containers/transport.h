/* SPDX-License-Identifier: MIT */
/*
 * Directories for the sockets of containers' slices, so that they can be mounted, by a rootless
 * runtime too. Only root and, by an ACL, the users of the slice's tenant can enter them. Anybody in
 * the container may connect to the sockets inside.
 *
 *   /run/vgpu/containers/UUID          with transport native
 *   /run/vgpu/containers/UUID/slice    mounted
 *   /run/vgpu/containers/UUID/g/GPU/0
 *                                      a link to that in the form of the governor's layer: for a
 *                                      program of the host, which has no mounts of its own
 *   /run/vgpu/slices/UUID              a link to that, where the arbiter makes its socket
 *   /run/vgpu/guard/UUID               with transport guarded; has the socket of its vgpu-guard;
 *                                      mounted
 */
#ifndef VGPUD_CONTAINERS_TRANSPORT_H
#define VGPUD_CONTAINERS_TRANSPORT_H

#include <gio/gio.h>
#include <glib.h>
#include <sys/types.h>

#include "lib/host_root.h"

#define CONTAINERS_DIR "/run/vgpu/containers"
#define GUARD_DIR      "/run/vgpu/guard"
#define GUARD_SOCKET   "vtest.sock"

/*
 * Makes the directories of transport native, or changes who can enter. @uids: of the tenant's
 * users.
 */
gboolean slice_dirs_make(HostRoot *root, const char *uuid, const uid_t *uids, guint count,
                         GError **error);

/* The link for a program; @gpu: address of the slice's GPU. The directories must exist. */
gboolean slice_dirs_link(HostRoot *root, const char *uuid, const char *gpu, GError **error);

/* Its path, for VGPU_GOVERNOR_SLICES. To be freed. */
char *slice_dirs_of_program(HostRoot *root, const char *uuid);

/* The same for transport guarded. */
gboolean slice_dirs_make_guard(HostRoot *root, const char *uuid, const uid_t *uids, guint count,
                               GError **error);

/* There are directories of either transport. */
gboolean slice_dirs_exist(HostRoot *root, const char *uuid);

/* Of both transports, with the sockets. Missing ones are ignored. */
void slice_dirs_remove(HostRoot *root, const char *uuid);

/* UUIDs with directories of transport native, to be freed. */
GStrv slice_dirs_list(HostRoot *root);

/*
 * vgpu-guard@UUID.service of containers' slices: started with its own user, which vgpu-engine-user
 * writes first, and stopped. Steps run one after the other, so that an old guard and a new one with
 * the same UUID are not mixed up.
 */
typedef struct GuardUnits GuardUnits;

/* @bus: a reference is taken. */
GuardUnits *guard_units_new(HostRoot *root, GDBusConnection *bus);

/* Pending steps are dropped. */
void guard_units_free(GuardUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuardUnits, guard_units_free)

/* Neither waits; failures are logged. */
void guard_units_start(GuardUnits *units, const char *uuid);
void guard_units_stop(GuardUnits *units, const char *uuid);

#endif
