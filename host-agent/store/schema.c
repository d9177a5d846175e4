/* SPDX-License-Identifier: MIT */
#include "host-agent/store/schema.h"

#include <stddef.h>

/*
 * slice.state: the operation on it; "ready": none. request: of the call that made it, for all or
 * none.
 */
static const char first[] =
    "CREATE TABLE tenant ("
    " name TEXT PRIMARY KEY, vram INTEGER NOT NULL, compute INTEGER NOT NULL,"
    " vgpus INTEGER NOT NULL, models TEXT NOT NULL, users TEXT NOT NULL) STRICT;"

    "CREATE TABLE slice ("
    " uuid TEXT PRIMARY KEY, state TEXT NOT NULL, request TEXT NOT NULL, gpu TEXT NOT NULL,"
    " type TEXT NOT NULL, tenant TEXT NOT NULL, class TEXT NOT NULL, vram INTEGER NOT NULL,"
    " compute INTEGER NOT NULL, weight INTEGER NOT NULL, cap INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, job TEXT NOT NULL, replica TEXT NOT NULL,"
    " defined INTEGER NOT NULL, autostart INTEGER NOT NULL) STRICT;"

    /* A mode switch of a GPU that is under way. phase: draining, switching. */
    "CREATE TABLE mode_switch ("
    " gpu TEXT PRIMARY KEY, origin TEXT NOT NULL, target TEXT NOT NULL, phase TEXT NOT NULL,"
    " partitions INTEGER NOT NULL, deadline INTEGER NOT NULL) STRICT;"

    /* GPUs that an operator drains. */
    "CREATE TABLE drain (gpu TEXT PRIMARY KEY) STRICT;"

    /* What was due last for each GPU, and was handled. due: seconds since 1970. */
    "CREATE TABLE schedule (gpu TEXT PRIMARY KEY, due INTEGER NOT NULL) STRICT;"

    /*
     * vGPUs that were stopped for another mode of their GPU, to be started when it is shared again.
     */
    "CREATE TABLE stopped (uuid TEXT PRIMARY KEY, gpu TEXT NOT NULL) STRICT;"

    /* A GPU's findings. held: stays until an operator clears it. */
    "CREATE TABLE health ("
    " gpu TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, since INTEGER NOT NULL,"
    " held INTEGER NOT NULL, PRIMARY KEY (gpu, kind)) STRICT;"

    /* Errors that an operator has acknowledged: counters of the kernel in the boot of that id. */
    "CREATE TABLE health_cleared ("
    " gpu TEXT PRIMARY KEY, boot TEXT NOT NULL, aer_fatal INTEGER NOT NULL,"
    " ecc INTEGER NOT NULL) STRICT;"

    /*
     * Where a best-effort slice was stopped because memory was short, and until when none is placed
     * again.
     */
    "CREATE TABLE eviction ("
    " gpu TEXT NOT NULL, tenant TEXT NOT NULL, until INTEGER NOT NULL,"
    " PRIMARY KEY (gpu, tenant)) STRICT;"

    /* A vGPU's promises and usage in an hour. hour: seconds since 1970, the hour's start. */
    "CREATE TABLE usage ("
    " hour INTEGER NOT NULL, uuid TEXT NOT NULL, tenant TEXT NOT NULL, gpu TEXT NOT NULL,"
    " type TEXT NOT NULL, seconds INTEGER NOT NULL, busy_seconds INTEGER NOT NULL,"
    " vram INTEGER NOT NULL, compute INTEGER NOT NULL, peak_vram INTEGER NOT NULL,"
    " gpu_ns INTEGER NOT NULL, requests INTEGER NOT NULL,"
    " PRIMARY KEY (hour, uuid, tenant)) STRICT;"
    "CREATE INDEX usage_tenant ON usage (tenant, hour);";

/* Bytes of host memory beyond the VRAM. */
static const char oversubscription[] =
    "ALTER TABLE slice ADD COLUMN oversubscribe INTEGER NOT NULL DEFAULT 0;";

/* The libvirt domain that it is made for and removed with; "": none. */
static const char domains[] = "ALTER TABLE slice ADD COLUMN domain TEXT NOT NULL DEFAULT '';";

/*
 * Containers' slices, and which container uses which. started: when its first process began, in
 * ticks since boot. With pid, it identifies the process even if another gets the same number later.
 */
static const char containers[] =
    "ALTER TABLE slice ADD COLUMN door TEXT NOT NULL DEFAULT 'vm';"
    "ALTER TABLE slice ADD COLUMN name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE slice ADD COLUMN ephemeral INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE claim ("
    " uuid TEXT PRIMARY KEY, container TEXT NOT NULL, boot TEXT NOT NULL, pid INTEGER NOT NULL,"
    " started INTEGER NOT NULL) STRICT;";

/* Number of displays; -1: not known, for slices that were stored before this version. */
static const char displays[] = "ALTER TABLE slice ADD COLUMN display INTEGER NOT NULL DEFAULT -1;";

/* Which of the GPU's engines it may use, by name. */
static const char engines[] = "ALTER TABLE slice ADD COLUMN engines TEXT NOT NULL DEFAULT 'all';";

/*
 * The journal of operations (operation_table.h) records running operations, and slices no longer
 * do. Interrupted ones are undone or finished as before: kinds "create", "change", "remove" and
 * "switch".
 */
static const char operations[] =
    "CREATE TABLE operation ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, objects TEXT NOT NULL,"
    " data TEXT NOT NULL, caller TEXT NOT NULL, begun INTEGER NOT NULL, step TEXT NOT NULL,"
    " item INTEGER NOT NULL, undoing INTEGER NOT NULL) STRICT;"
    "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
    " SELECT CASE state WHEN 'creating' THEN 'create' WHEN 'changing' THEN 'change'"
    "  ELSE 'remove' END, uuid, '', '', 0, '', 0, state = 'creating'"
    " FROM slice WHERE state <> 'ready' ORDER BY uuid;"
    "ALTER TABLE slice DROP COLUMN state;"
    "INSERT INTO operation (kind, objects, data, caller, begun, step, item, undoing)"
    " SELECT 'switch', gpu, printf('{''origin'': <''%s''>, ''target'': <''%s''>,"
    "  ''partitions'': <uint32 %d>}', origin, target, partitions), '', 0,"
    "  CASE phase WHEN 'switching' THEN 'reconcile' ELSE 'wait' END, 0, 0"
    " FROM mode_switch ORDER BY gpu;"
    "DROP TABLE mode_switch;";

/*
 * Of a program that vgpuctl has started: its user, -1 for a container; and its systemd scope, whose
 * processes use the slice, too.
 */
static const char programs[] =
    "ALTER TABLE claim ADD COLUMN user INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE claim ADD COLUMN cgroup TEXT NOT NULL DEFAULT '';";

const char *const schema_steps[] = {first,    oversubscription, domains,    containers,
                                    displays, engines,          operations, programs,
                                    NULL};
