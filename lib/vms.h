/* SPDX-License-Identifier: MIT */
/*
 * Which VM has which vGPU open, by the processes that have VFIO's nodes. What was found once costs
 * one system call a vGPU from then on; all of /proc is read only for those that are new.
 */
#ifndef MODES_VMS_H
#define MODES_VMS_H

#include <glib.h>

typedef struct Vms Vms;

/* @root: "" in production; copied. */
Vms *vms_new(const char *root);

void vms_free(Vms *vms);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Vms, vms_free)

/* Looks who has those of @uuids, which are open. */
void vms_look(Vms *vms, const char *const *uuids);

/* What vms_look() found: the VM's name. NULL: nobody, or a process that is no VM's. Valid until the
 * next vms_look(). */
const char *vms_name(const Vms *vms, const char *uuid);

#endif
