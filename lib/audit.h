/* SPDX-License-Identifier: MIT */
/*
 * Changes in the journal: vgpud writes an entry for each, with these fields, and vgpuctl reads
 * them.
 *
 * The state of an object is a text "Key=value; Key=value"; "" is one that does not exist.
 */
#ifndef LIB_AUDIT_H
#define LIB_AUDIT_H

/* Of all entries (journalctl MESSAGE_ID=…). */
#define AUDIT_MESSAGE_ID "6a1c7b0e5d3f4b0f9a2e8c4d7f1b3a95"

#define AUDIT_METHOD "MDEV_VGPU_METHOD" /* of D-Bus, such as SetVgpu */
#define AUDIT_OBJECT "MDEV_VGPU_OBJECT" /* UUID, tenant or GPU */
#define AUDIT_USER   "MDEV_VGPU_USER"
#define AUDIT_UID    "MDEV_VGPU_UID"
#define AUDIT_BEFORE "MDEV_VGPU_BEFORE"
#define AUDIT_AFTER  "MDEV_VGPU_AFTER"
#define AUDIT_RESULT "MDEV_VGPU_RESULT" /* "ok", or "failed: " and the reason */

/* Between the members of a state. */
#define AUDIT_BETWEEN "; "

/* "Weight 100 -> 7; Cap 50 -> 60"; "created", "removed", "". To be freed. */
char *audit_difference(const char *before, const char *after);

#endif
