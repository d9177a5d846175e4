/* SPDX-License-Identifier: MIT */
/*
 * vGPUs as ListVgpus() returns them.
 */
#ifndef VGPUD_VGPU_LIST_H
#define VGPUD_VGPU_LIST_H

#include <glib.h>

/* All vGPUs of @root; floating, of type aa{sv}. */
GVariant *vgpu_list(const char *root);

#endif
