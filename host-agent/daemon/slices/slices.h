/* SPDX-License-Identifier: MIT */
/*
 * All slices of the host: the database's desired state, reconciled with the kernel and mdevctl. If
 * they differ, the kernel is right: slices that others made are adopted, slices that others removed
 * are forgotten.
 */
#ifndef VGPUD_SLICES_SLICES_H
#define VGPUD_SLICES_SLICES_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/offers.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/slice.h"

typedef struct Slices Slices;

/*
 * All of them live longer. Reads the database only: slices_refresh() does the rest. A slice that
 * one of @operations works on is neither adopted from the kernel nor forgotten.
 */
Slices *slices_new(Host *host, Offers *offers, const Operations *operations, GError **error);

void slices_free(Slices *slices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Slices, slices_free)

/* @func is called when a slice was added, changed or removed; it must not change any. */
typedef void (*SlicesFunc)(const char *uuid, void *data);
void slices_watch(Slices *slices, SlicesFunc func, void *data);

/* How much of the host's memory may be reserved for memory that is displaced. */
void slices_set_displaced(Slices *slices, guint64 most);
guint64 slices_displaced(const Slices *slices);

/*
 * What slices are expected to use of their GPUs' memory by the hour of the day: a{sat}, by UUID, as
 * org.mdev_vgpu.Host1.Metering.SetExpected has it. Of others it is no longer known.
 */
void slices_set_expected(Slices *slices, GVariant *expected);

/* Memory of a slice of that GPU moves. */
gboolean slices_have_lent(const Slices *slices, const char *gpu);

/* Of Slice; valid until the next call that changes something. */
const GPtrArray *slices_all(const Slices *slices);

/* NULL: none. */
const Slice *slices_find(const Slices *slices, const char *uuid);

/* The one that @tenant ("": none) calls so; NULL: none. Each tenant has names of its own. */
const Slice *slices_find_named(const Slices *slices, const char *tenant, const char *name);

/* That part of the owner's; @part: NULL: any. NULL: none. */
const Slice *slices_find_owned(const Slices *slices, const char *owner, const char *part);

/* Reconciles all slices with the kernel and mdevctl's configuration. */
void slices_refresh(Slices *slices);

/* Sets each GPU's properties of the ledger. Called again when GPUs, modes or gpus.conf have
 * changed. */
void slices_show_capacity(const Slices *slices);

/* The same for one, at a cost that does not depend on the number of slices. */
void slices_update(Slices *slices, const char *uuid);

/* Stores a slice, new or known, in the database and here. Takes @slice, even on failure. */
gboolean slices_put(Slices *slices, Slice *slice, GError **error);

/* Several at once: all or none. @list: of Slice, copied. */
gboolean slices_put_all(Slices *slices, const GPtrArray *list, GError **error);

/* An operation works on the slice. */
gboolean slices_are_busy(const Slices *slices, const char *uuid);

/* Room is kept for it, until slices_settle(). */
void slices_set_reserved(Slices *slices, const char *uuid);

/*
 * Its programs were suspended: it has no memory until they go on, and what was promised to it is
 * free for others, unless it is a vGPU (slice_is_promised()). The mark of a vGPU ends when it is
 * stopped. FALSE: it could not be stored, and nothing has changed.
 */
gboolean slices_set_suspended(Slices *slices, const char *uuid, gboolean suspended, GError **error);

/* UUIDs of those that were suspended in an earlier boot, which no program survives. To be freed. */
GStrv slices_suspended_before_boot(const Slices *slices);

/* It is being removed, until slices_settle() or slices_forget(). */
void slices_set_leaving(Slices *slices, const char *uuid);

/*
 * An operation on it has ended, successfully or not: from now on it follows the kernel and mdevctl.
 * @uuid: not the slice's own.
 */
void slices_settle(Slices *slices, const char *uuid);

/* Forgets one. FALSE: it could not be removed from the database, and nothing has changed. */
gboolean slices_forget(Slices *slices, const char *uuid, GError **error);

/*
 * Per cent of the GPU's compute that are promised to @slice: @asked, if that is not 0, else its
 * resident memory's part of the GPU's VRAM; nothing for best effort, never more than its cap. @gpu:
 * NULL: it is absent, and the slice keeps its value.
 */
guint slices_compute(const Slices *slices, const Gpu *gpu, const Slice *slice, guint asked);

/* The ledger of a GPU, to be freed. */
Room *slices_room(const Slices *slices, const Gpu *gpu);

#endif
