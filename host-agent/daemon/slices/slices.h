/* SPDX-License-Identifier: MIT */
/*
 * All slices of the host: what the database wants, held against what the kernel and mdevctl have. Where they
 * differ the kernel is right; what others made is taken over, what others removed is forgotten.
 */
#ifndef VGPUD_SLICES_SLICES_H
#define VGPUD_SLICES_SLICES_H

#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/operations/operation.h"
#include "host-agent/daemon/slices/offers.h"
#include "host-agent/model/room.h"
#include "host-agent/model/slice.h"

typedef struct Slices Slices;

/*
 * All of them live longer. Reads the database only: slices_refresh() does the rest. What one of
 * @operations works on is neither taken over from the kernel nor forgotten.
 */
Slices *slices_new(Host *host, Offers *offers, const Operations *operations, GError **error);

void slices_free(Slices *slices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Slices, slices_free)

/* @func is called when a slice has come, changed or gone; it changes none. */
typedef void (*SlicesFunc)(const char *uuid, void *data);
void slices_watch(Slices *slices, SlicesFunc func, void *data);

/* Of Slice; valid until the next call that changes something. */
const GPtrArray *slices_all(const Slices *slices);

/* NULL: there is none. */
const Slice *slices_find(const Slices *slices, const char *uuid);

/* The one with that UUID, in capitals as well, or name; NULL: there is none. */
const Slice *slices_find_called(const Slices *slices, const char *name);

/* Holds all slices against the kernel and mdevctl's configuration. */
void slices_refresh(Slices *slices);

/* The same for one, which costs the same however many there are. */
void slices_update(Slices *slices, const char *uuid);

/* Stores a slice, new or known, in the database and here. Takes @slice, also where it fails. */
gboolean slices_put(Slices *slices, Slice *slice, GError **error);

/* Several at once: all or none. @list: of Slice, copied. */
gboolean slices_put_all(Slices *slices, const GPtrArray *list, GError **error);

/* An operation works on that one. */
gboolean slices_are_busy(const Slices *slices, const char *uuid);

/* Room is kept for it, until slices_settle(). */
void slices_set_reserved(Slices *slices, const char *uuid);

/* It is being removed, until slices_settle() or slices_forget(). */
void slices_set_leaving(Slices *slices, const char *uuid);

/*
 * An operation with it has ended, well or not: from now on it is as the kernel and mdevctl have it.
 * @uuid: not the slice's own.
 */
void slices_settle(Slices *slices, const char *uuid);

/* Forgets one. */
void slices_forget(Slices *slices, const char *uuid);

/*
 * Per cent of the GPU's compute that are promised to @slice: @asked, where that is not 0, else its
 * part of the GPU's VRAM; nothing for best effort, never more than its cap. @gpu: NULL: it is not
 * there, and the slice keeps what it has.
 */
guint slices_compute(const Slices *slices, const Gpu *gpu, const Slice *slice, guint asked);

/* The ledger of a GPU, to be freed. */
Room *slices_room(const Slices *slices, const Gpu *gpu);

#endif
