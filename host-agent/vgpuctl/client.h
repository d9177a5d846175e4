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
    VGPUCTL_NOT_FOUND = 3,      /* no such GPU, vGPU, type or tenant */
    VGPUCTL_UNREACHABLE = 4,    /* no vgpud on the bus */
    VGPUCTL_NOT_AUTHORIZED = 5, /* polkit said no */
    VGPUCTL_IN_USE = 6,         /* somebody is in the way */
    VGPUCTL_NO_ROOM = 7,        /* no GPU has room, or the tenant's quota is too small */
} VgpuctlError;

/**
 * Client
 * @manager: the host's own object, without its properties
 * @objects: NULL until client_objects()
 */
typedef struct {
    VgpuManager *manager;
    GDBusObjectManager *objects;
} Client;

/* VGPUCTL_UNREACHABLE where vgpud does not answer. */
Client *client_new(GError **error);

void client_free(Client *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Client, client_free)

/* A call that makes many vGPUs takes its time: from now on the manager is given it. */
void client_be_patient(Client *client);

/* All objects, with what they have; NULL with VGPUCTL_UNREACHABLE. Stays the client's. */
GDBusObjectManager *client_objects(Client *client, GError **error);

/* All GPUs, of VgpuGpu, by their addresses; NULL with VGPUCTL_UNREACHABLE. */
GPtrArray *client_gpus(Client *client, GError **error);

/* The GPU with that address; "0000:" may be left out. VGPUCTL_NOT_FOUND. */
VgpuGpu *client_gpu(Client *client, const char *address, GError **error);

#endif
