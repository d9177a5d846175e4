/* SPDX-License-Identifier: MIT */
/* vgpud as vgpuctl sees it. */
#ifndef VGPUCTL_CLIENT_H
#define VGPUCTL_CLIENT_H

#include "vgpu-host.h"

/* The error domain; its codes are vgpuctl's exit codes, as the man page lists them. */
#define VGPUCTL_ERROR vgpuctl_error_quark()
GQuark vgpuctl_error_quark(void);

typedef enum {
    VGPUCTL_FAILED = 1,         /* vgpud refused, or could not */
    VGPUCTL_USAGE = 2,          /* the command line */
    VGPUCTL_NOT_FOUND = 3,      /* no such GPU, vGPU, type or tenant */
    VGPUCTL_UNREACHABLE = 4,    /* no vgpud on the bus */
    VGPUCTL_NOT_AUTHORIZED = 5, /* polkit refused */
    VGPUCTL_IN_USE = 6,         /* it is in use */
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

/* VGPUCTL_UNREACHABLE if vgpud does not answer. */
Client *client_new(GError **error);

void client_free(Client *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Client, client_free)

/**
 * client_call() - a method of the manager
 * @arguments: a tuple, floating, consumed; NULL: none
 * @what: for a progress line, as "removing vGPU red"; NULL: it takes no time
 *
 * polkit may ask the user for a password meanwhile, and the main loop runs. There is no limit but
 * vgpud's own. Returns the answer, a tuple; NULL with @error.
 */
GVariant *client_call(const Client *client, const char *method, GVariant *arguments,
                      const char *what, GError **error);

/* The same for a method of one object, for as long as @limit seconds as the progress line has it.
 */
GVariant *client_call_object(GDBusProxy *object, const char *method, GVariant *arguments,
                             const char *what, guint limit, GError **error);

/* The only value that a method answers. */
GVariant *client_get(const Client *client, const char *method, GVariant *arguments,
                     const char *what, GError **error);

/* All objects, with what they have; NULL with VGPUCTL_UNREACHABLE. Stays the client's. */
GDBusObjectManager *client_objects(Client *client, GError **error);

/* All GPUs, of VgpuGpu, by their addresses; NULL with VGPUCTL_UNREACHABLE. */
GPtrArray *client_gpus(Client *client, GError **error);

/* The GPU with that address; "0000:" may be left out. VGPUCTL_NOT_FOUND. */
VgpuGpu *client_gpu(Client *client, const char *address, GError **error);

/* The address @full is called @short_name: the same, or without "0000:". */
gboolean client_address_is(const char *full, const char *short_name);

#endif
