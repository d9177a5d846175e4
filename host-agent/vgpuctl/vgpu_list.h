/* SPDX-License-Identifier: MIT */
/*
 * vGPUs as they are listed.
 */
#ifndef VGPUCTL_VGPU_LIST_H
#define VGPUCTL_VGPU_LIST_H

#include <glib.h>

/* @vgpus: of aa{sv}. @none: what is said where there is none. */
void vgpu_print_list(GVariant *vgpus, gboolean json, const char *none);

#endif
