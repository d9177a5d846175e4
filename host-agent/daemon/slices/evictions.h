/* SPDX-License-Identifier: MIT */
/*
 * What follows when a GPU has less free memory than its water mark (water-mark= in gpus.conf), or
 * when others wait in vain for what best effort has: best-effort vGPUs and slices are told,
 * programs of native slices are suspended, the operator's command runs, and engines, guards and
 * programs are stopped.
 */
#ifndef VGPUD_SLICES_EVICTIONS_H
#define VGPUD_SLICES_EVICTIONS_H

#include "host-agent/daemon/slices/returns.h"
#include "host-agent/daemon/slices/slices.h"
#include "lib/vgpud_conf.h"

typedef struct Evictions Evictions;

/* @grace: seconds between two steps. All of them live longer. */
Evictions *evictions_new(Host *host, Offers *offers, const Slices *slices, Returns *returns,
                         guint grace);

void evictions_free(Evictions *evictions);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Evictions, evictions_free)

void evictions_set_grace(Evictions *evictions, guint grace);
void evictions_set_native(Evictions *evictions, PressureNative native);

/* @error: NULL: the programs of @slice have ended. */
typedef void ProgramsEndedFunc(const Slice *slice, const GError *error, void *data);

/**
 * ProgramsEnded
 * @func: called once, later, unless @cancellable has been cancelled
 */
typedef struct {
    ProgramsEndedFunc *func;
    void *data;
    GCancellable *cancellable;
} ProgramsEnded;

/**
 * ProgramsForRoom - what is done with the programs of native slices
 * @suspend: begins to suspend them. FALSE with @error: they cannot be
 * @resume: begins to let them go on. FALSE with @error: there is no room for what was promised
 * @end: begins to kill them, if there are any. FALSE with @error: they must not be
 */
typedef struct {
    gboolean (*suspend)(const Slice *slice, void *data, GError **error);
    gboolean (*resume)(const Slice *slice, void *data, GError **error);
    gboolean (*end)(const Slice *slice, const ProgramsEnded *done, void *data, GError **error);
} ProgramsForRoom;

/* @programs: lives longer. */
void evictions_set_programs(Evictions *evictions, const ProgramsForRoom *programs, void *data);

/* @bus has systemd, which stops engines. */
void evictions_connect(Evictions *evictions, GDBusConnection *bus);

/* For a meter that begins: what was noted is of one that has ended. */
void evictions_forget(Evictions *evictions);

/*
 * So many bytes are free on @gpu, and @mark should be; slices @without have none of its memory; at
 * @now_us, of the monotonic clock. To be called every few seconds while there are less or a slice
 * of it is suspended, and once when there are as many again.
 */
void evictions_note_memory(Evictions *evictions, const char *gpu, guint64 free, guint64 mark,
                           const char *const *without, gint64 now_us);

#endif
