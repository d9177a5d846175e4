/* SPDX-License-Identifier: MIT */
/*
 * What the meter knows of the host: GPUs and what they offer, and counters, which it reads itself;
 * and slices with their users, as vgpud has told.
 */
#ifndef METER_HOST_VIEW_H
#define METER_HOST_VIEW_H

#include "host-agent/daemon/slices/offers.h"
#include "host-agent/meter/arbiter_reports.h"
#include "host-agent/meter/counters.h"
#include "host-agent/model/slice.h"
#include "host-agent/store/db.h"
#include "lib/gpu.h"

typedef struct HostView HostView;

/* @db: lives longer. No GPU and no slice is known yet. */
HostView *host_view_new(HostRoot *root, Db *db);

void host_view_free(HostView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HostView, host_view_free)

/* Reads GPUs again. */
void host_view_read_gpus(HostView *view);

/* Reads again what GPUs offer. While a file is wrong, what it said before counts. */
void host_view_read_offers(HostView *view);

/*
 * A slice was added or changed; @told: as metered_slice() has it. NULL: it was removed.
 */
void host_view_set_slice(HostView *view, const char *uuid, GVariant *told);

/* All slices: a{sa{sv}}, by UUID. */
void host_view_set_slices(HostView *view, GVariant *told);

HostRoot *host_view_root(const HostView *view);
Db *host_view_db(const HostView *view);
Offers *host_view_offers(const HostView *view);
Counters *host_view_counters(const HostView *view);
ArbiterReports *host_view_reports(const HostView *view);

/* Of Gpu, in the order of their addresses; valid until they are read again. */
const GPtrArray *host_view_gpus(const HostView *view);

/* NULL: none (any more). */
const Gpu *host_view_gpu(const HostView *view, const char *address);

/* Of Slice; valid until the next change. */
const GPtrArray *host_view_slices(const HostView *view);

/* NULL: none. */
const Slice *host_view_slice(const HostView *view, const char *uuid);

/**
 * SliceUsers
 * @container: one of its present users; NULL: none
 * @containers: all of them, as "web, db"; "": none
 * @claimed: somebody has claimed it, and may have ended meanwhile
 * @cgroup: the directory that has the processes of its only user and no others; NULL: there is none
 * @first: UUID of the slice that it forms one share with, or its own
 */
typedef struct {
    char *container;
    char *containers;
    gboolean claimed;
    char *cgroup;
    char *first;
} SliceUsers;

/* Of a known slice; valid until the next change. */
const SliceUsers *host_view_users(const HostView *view, const char *uuid);

#endif
