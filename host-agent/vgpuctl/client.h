/* SPDX-License-Identifier: MIT */
/*
 * vgpud as vgpuctl sees it.
 */
#ifndef VGPUCTL_CLIENT_H
#define VGPUCTL_CLIENT_H

#include "vgpu-host.h"

/* The error domain; its codes are vgpuctl's exit codes, as the man page lists them. */
#define VGPUCTL_ERROR vgpuctl_error_quark()
GQuark vgpuctl_error_quark(void);

typedef enum {
    VGPUCTL_FAILED = 1,      /* vgpud said no, or could not */
    VGPUCTL_USAGE = 2,       /* the command line */
    VGPUCTL_NOT_FOUND = 3,   /* no such GPU or vGPU */
    VGPUCTL_UNREACHABLE = 4, /* no vgpud on the bus */
} VgpuctlError;

typedef struct {
    GDBusObjectManager *objects;
} Client;

/* VGPUCTL_UNREACHABLE where vgpud does not answer. */
Client *client_new(GError **error);

void client_free(Client *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Client, client_free)

/* All GPUs, of VgpuGpu, by their addresses. */
GPtrArray *client_gpus(const Client *client);

/* The GPU with that address; "0000:" may be left out. VGPUCTL_NOT_FOUND. */
VgpuGpu *client_gpu(const Client *client, const char *address, GError **error);

/* The host's own object. */
VgpuManager *client_manager(const Client *client, GError **error);

#endif
