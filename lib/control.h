/* SPDX-License-Identifier: MIT */
/* /dev/vgpu-control. Every errno becomes a sentence that a person can act on. */
#ifndef LIB_CONTROL_H
#define LIB_CONTROL_H

#include <glib.h>

#include "lib/host_root.h"
#include "lib/plan.h"

/* A file descriptor for the other functions; the caller closes it. REGISTRAR_ERROR_NO_DRIVER. */
int control_open(HostRoot *root, GError **error);

/*
 * Registers a GPU. If it is registered already, that is no error: it is not changed and *@existed
 * is set.
 */
gboolean control_add(int fd, HostRoot *root, const Plan *plan, gboolean *existed, GError **error);

/* Changes a registered GPU's memory and types. REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_update(int fd, HostRoot *root, const Plan *plan, GError **error);

/* REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_remove(int fd, HostRoot *root, const char *gpu, GError **error);

/*
 * While a GPU is drained, no vGPU can be made on it and no VM can open one of its vGPUs. Draining
 * twice is no error. REGISTRAR_ERROR_ABSENT: not registered.
 */
gboolean control_drain(int fd, const char *gpu, gboolean on, GError **error);

/* The system call itself: 0, or -1 with errno. Unit tests replace it. */
int control_call(int fd, unsigned long request, void *argument);

#endif
