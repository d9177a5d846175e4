/* SPDX-License-Identifier: MIT */
/*
 * /dev/vgpu-control. Every errno becomes a sentence that a person can act on.
 */
#ifndef LIB_CONTROL_H
#define LIB_CONTROL_H

#include <glib.h>

#include "lib/plan.h"

/* A file descriptor for the other functions, the caller closes it. REGISTRAR_ERROR_NO_DRIVER. */
int control_open(const char *root, GError **error);

/*
 * Registers a GPU. One that is registered already is no error: it stays as it is and *@existed is
 * set.
 */
gboolean control_add(int fd, const char *root, const Plan *plan, gboolean *existed,
                     GError **error);

/* Changes a registered GPU's memory and types. REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_update(int fd, const char *root, const Plan *plan, GError **error);

/* REGISTRAR_ERROR_ABSENT: not registered. */
gboolean control_remove(int fd, const char *root, const char *gpu, GError **error);

/*
 * While a GPU is drained nobody can make a vGPU on it, and no VM can open one that it has. Doing it twice is no
 * error. REGISTRAR_ERROR_ABSENT: not registered.
 */
gboolean control_drain(int fd, const char *gpu, gboolean on, GError **error);

/* The system call itself: 0, or -1 with errno. Unit tests bring their own. */
int control_call(int fd, unsigned long request, void *argument);

#endif
