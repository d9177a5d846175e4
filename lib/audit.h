/* SPDX-License-Identifier: MIT */
/*
 * Changes in the journal: vgpud writes an entry for each, with these fields, and vgpuctl reads
 * them.
 *
 * The state of an object is a text "Key=value; Key=value"; "" is one that does not exist.
 *
 * What nobody asked for by a call on the bus has a source in place of a user, and no AUDIT_UID.
 */
#ifndef LIB_AUDIT_H
#define LIB_AUDIT_H

/* Of all entries (journalctl MESSAGE_ID=…). */
#define AUDIT_MESSAGE_ID "6a1c7b0e5d3f4b0f9a2e8c4d7f1b3a95"

#define AUDIT_METHOD "MDEV_VGPU_METHOD" /* of D-Bus, such as SetVgpu; or AUDIT_DO_… */
#define AUDIT_OBJECT "MDEV_VGPU_OBJECT" /* UUID, tenant or GPU */
#define AUDIT_USER   "MDEV_VGPU_USER"   /* or a source, one of AUDIT_BY_… */
#define AUDIT_UID    "MDEV_VGPU_UID"
#define AUDIT_BEFORE "MDEV_VGPU_BEFORE"
#define AUDIT_AFTER  "MDEV_VGPU_AFTER"
#define AUDIT_RESULT "MDEV_VGPU_RESULT" /* "ok", or "failed: " and the reason */

/* Sources. */
#define AUDIT_BY_SCHEDULE  "schedule"        /* schedule.conf */
#define AUDIT_BY_CONFIG    "gpus.conf"       /* the mode that is declared, or was set before */
#define AUDIT_BY_LIBVIRT   "libvirt"         /* a VM has ended */
#define AUDIT_BY_CONTAINER "container"       /* a container has ended */
#define AUDIT_BY_SYSTEMD   "systemd"         /* a program of "vgpuctl run" has ended */
#define AUDIT_BY_RECOVERY  "recovery"        /* vgpud had died in the middle of it */
#define AUDIT_BY_MDEVCTL   "mdevctl"         /* mdevctl's configuration was changed */
#define AUDIT_BY_KERNEL    "kernel"          /* sysfs was changed, or the hardware */
#define AUDIT_BY_HEALTH    "health"          /* sensors, errors, crashes */
#define AUDIT_BY_PRESSURE  "memory-pressure" /* a GPU was short of memory */

/* Actions; operations have the names of their kinds, such as "switch" and "remove". */
#define AUDIT_DO_FIND    "found"    /* vgpud saw it, and did nothing */
#define AUDIT_DO_RELEASE "released" /* the slice's user is gone */
#define AUDIT_DO_EVICT   "evicted"  /* the engine was stopped */

/* Between the members of a state. */
#define AUDIT_BETWEEN "; "

/* "Weight 100 -> 7; Cap 50 -> 60"; "created", "removed", "". To be freed. */
char *audit_difference(const char *before, const char *after);

#endif
