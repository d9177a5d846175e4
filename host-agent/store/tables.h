/* SPDX-License-Identifier: MIT */
/* The tables of the database. A row that is missing is no error for a function that removes it. */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "host-agent/model/gpu_health.h"
#include "host-agent/model/slice.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/usage.h"
#include "host-agent/store/db.h"

/*
 * Slices in the database. The kernel and mdevctl determine whether one is present, defined or
 * started at boot; the database keeps the last known values.
 */

/* All of them, of Slice; NULL with @error. */
GPtrArray *slice_table_read(Db *db, GError **error);

/* Writes a slice, new or known. */
gboolean slice_table_put(Db *db, const Slice *slice, GError **error);

gboolean slice_table_remove(Db *db, const char *uuid, GError **error);

/*
 * Ephemeral slices whose users have ended, and whose removal has failed: their UUIDs, also after a
 * restart of vgpud. An error of reading is logged.
 */
gboolean slice_table_set_unreturned(Db *db, const char *uuid, GError **error);
GStrv slice_table_unreturned(Db *db);

/*
 * Slices that are suspended, each with the id of the boot in which its programs were: no program
 * survives a boot.
 */

/* UUID to boot; NULL with @error. */
GHashTable *suspension_table_read(Db *db, GError **error);

gboolean suspension_table_put(Db *db, const char *uuid, const char *boot, GError **error);

gboolean suspension_table_remove(Db *db, const char *uuid, GError **error);

/*
 * Those of them that were suspended because memory was short, with the bytes that their programs
 * had of the GPU; 0: it is none of them (any more).
 */
typedef void (*WayBackFunc)(const char *uuid, guint64 bytes, void *data);

gboolean way_back_table_read(Db *db, WayBackFunc func, void *data, GError **error);

gboolean way_back_table_set(Db *db, const char *uuid, guint64 bytes, GError **error);

/*
 * UUIDs of tenants' slices that are older than tenants' own names, to their names of then; NULL
 * with @error.
 */
GHashTable *old_name_table_read(Db *db, GError **error);

/* Tenants in the database. */

/* All of them, of Tenant, by name; NULL with @error. */
GPtrArray *tenant_table_read(Db *db, GError **error);

/* Writes a tenant, new or known. */
gboolean tenant_table_put(Db *db, const Tenant *tenant, GError **error);

gboolean tenant_table_remove(Db *db, const char *name, GError **error);

/*
 * Which container or program uses which slice, in the database, so that it survives a restart of
 * vgpud.
 */

#define CLAIM_NO_USER (-1)

/**
 * Claim
 * @uuid: of the slice
 * @container: its runtime's name for it; for a program "NAME[PID]"
 * @pid: of its first process
 * @started: when that began, in the kernel's ticks since boot
 * @user: of a program that "vgpuctl run" has started; CLAIM_NO_USER: it is a container
 * @member: of the slice's tenant, who has claimed it for a container; CLAIM_NO_USER: an
 * administrator has
 * @cgroup: of a program: its own systemd scope, below /sys/fs/cgroup; "": none
 * @past: it was made before the host's last boot, so its processes have ended
 */
typedef struct {
    char *uuid;
    char *container;
    guint pid;
    guint64 started;
    gint64 user;
    gint64 member;
    char *cgroup;
    gboolean past;
} Claim;

void claim_free(Claim *claim);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claim, claim_free)

/* All, of Claim. @boot: the id of this boot; "": it is not known. NULL with @error. */
GPtrArray *claim_table_read(Db *db, const char *boot, GError **error);

gboolean claim_table_put(Db *db, const char *boot, const Claim *claim, GError **error);

gboolean claim_table_remove(Db *db, const char *uuid, const char *container, GError **error);

/* Usage in the database by the month, and its sum. Months are UTC's. */

/* So many months are kept: two years, and the present one. */
#define USAGE_MONTHS 25

/*
 * Adds @rows, of UsageRow, to the database's rows of their months, and to those of their hours
 * (memory_table.h): all, or none.
 */
gboolean usage_table_add(Db *db, const GPtrArray *rows, GError **error);

/* Forgets all but the last USAGE_MONTHS of those in which there was something. */
gboolean usage_table_prune(Db *db, GError **error);

/*
 * The months that begin from @begin on, before @end, summed for each vGPU of @tenant ("": all); of
 * ReportRow.
 */
GPtrArray *usage_table_sum(Db *db, const char *tenant, gint64 begin, gint64 end, GError **error);

/*
 * What is stored for each GPU besides its mode: its findings, where a best-effort slice was stopped
 * because memory was short, and which switch of the timetable was handled. Times are seconds since
 * 1970.
 */

/* @gpu has the finding @kind, for @reason. */
gboolean gpu_table_add_finding(Db *db, const char *gpu, HealthKind kind, const char *reason,
                               gint64 since, GError **error);
gboolean gpu_table_end_finding(Db *db, const char *gpu, HealthKind kind, GError **error);

/*
 * An operator has cleared the findings of @gpu, and has acknowledged errors up to these counters of
 * the kernel in @boot.
 */
gboolean gpu_table_clear(Db *db, const char *gpu, const char *boot, guint64 aer_fatal, guint64 ecc,
                         GError **error);

typedef void (*GpuFindingFunc)(const char *gpu, HealthKind kind, const char *reason, void *data);
typedef void (*GpuClearedFunc)(const char *gpu, guint64 aer_fatal, guint64 ecc, void *data);

/*
 * Forgets the findings that end by themselves, and calls @finding for each of the others, which an
 * operator has to clear; @cleared for those that were cleared in @boot.
 */
gboolean gpu_table_load(Db *db, const char *boot, GpuFindingFunc finding, GpuClearedFunc cleared,
                        void *data, GError **error);

/*
 * None of the tenant's best-effort slices is placed on @gpu again for EVICTED_S. Forgets those that
 * are over.
 */
gboolean gpu_table_evict(Db *db, const char *gpu, const char *tenant, gint64 now, GError **error);

/* For so long. */
#define EVICTED_S (10 * 60)

/*
 * Errors are logged, and mean no. So does an end that is more than EVICTED_S away: the clock was
 * ahead, as before NTP has set it.
 */
gboolean gpu_table_is_evicted(Db *db, const char *gpu, const char *tenant, gint64 now);

/* When the last handled switch was due; 0: none, or it cannot be read, which is logged. */
gint64 gpu_table_due(Db *db, const char *gpu);
gboolean gpu_table_set_due(Db *db, const char *gpu, gint64 due, GError **error);

/*
 * What outlives a switch of a GPU's mode: vGPUs that come back when it is shared again, and drains.
 */

/* vGPUs to be started when the GPU is shared again. */
gboolean journal_add_stopped(Db *db, const char *gpu, const char *const *uuids, GError **error);
GStrv journal_stopped(Db *db, const char *gpu);
void journal_forget_stopped(Db *db, const char *uuid);

/* Whether an operator drains the GPU. */
gboolean journal_drained(Db *db, const char *gpu);
gboolean journal_set_drained(Db *db, const char *gpu, gboolean drained, GError **error);

/*
 * The journal of operations and of their progress. A row exists from before the first step until
 * after the last one, so a row at the start of vgpud is an interrupted operation.
 */

/**
 * OperationRow
 * @id: set by operation_table_begin()
 * @kind: name of its kind
 * @objects: UUIDs of its slices and addresses of its GPUs
 * @data: further input of its steps, in its kind's format; "": none
 * @caller: who asked for it, for people to read; "": vgpud itself
 * @begun: seconds since 1970
 * @step, @item: the step that was begun last; "": none
 * @undoing: it is being rolled back
 */
typedef struct {
    guint64 id;
    char *kind;
    GStrv objects;
    char *data;
    char *caller;
    gint64 begun;
    char *step;
    guint item;
    gboolean undoing;
} OperationRow;

void operation_row_free(OperationRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OperationRow, operation_row_free)

/* Of OperationRow, the oldest first. NULL with @error. */
GPtrArray *operation_table_read(Db *db, GError **error);

/* Survives kill -9 and power loss when it returns. Sets @row's id. */
gboolean operation_table_begin(Db *db, OperationRow *row, GError **error);

/*
 * A step of the row is about to be run, or undone. This survives kill -9, and power loss only
 * together with the next write: after power loss no vGPU is left to be undone.
 */
gboolean operation_table_mark(Db *db, const OperationRow *row, GError **error);

/* As operation_table_begin(). A missing row is no error. */
gboolean operation_table_end(Db *db, guint64 id, GError **error);

#endif
