/* SPDX-License-Identifier: MIT */
/* vgpud on D-Bus: its names and errors, and calls of it for hooks, which do not wait for long. */
#ifndef LIB_BUS_H
#define LIB_BUS_H

#include <gio/gio.h>

#define AGENT_ERROR agent_error_quark()
GQuark agent_error_quark(void);

typedef enum {
    AGENT_ERROR_FAILED,         /* Failed: the system refused */
    AGENT_ERROR_INVALID,        /* InvalidArgument: a value that is never valid */
    AGENT_ERROR_NOT_FOUND,      /* NotFound: no such GPU, vGPU, tenant or type */
    AGENT_ERROR_NOT_AUTHORIZED, /* NotAuthorized: polkit refused */
    AGENT_ERROR_IN_USE,         /* InUse: the message names the user */
    AGENT_ERROR_NO_ROOM,        /* NoRoom: no GPU has the requested room */
    AGENT_ERROR_QUOTA,          /* Quota: the tenant's is exceeded */
} AgentError;

/* vgpud's name and paths on the bus. */
#define VGPU_BUS_NAME     "org.mdev_vgpu.Host1"
#define VGPU_ROOT_PATH    "/org/mdev_vgpu"
#define VGPU_MANAGER_PATH VGPU_ROOT_PATH "/manager"
#define VGPU_GPU_PATH     VGPU_ROOT_PATH "/gpu"

#define VGPU_MANAGER_INTERFACE "org.mdev_vgpu.Host1.Manager"

/*
 * Environment variable of the programs that vgpud runs: it has decided already, so mdevctl's
 * callout does not ask it again. Only root can set this for mdevctl, and root has "mdevctl --force"
 * anyway.
 */
#define VGPU_CHECKED_ENV "VGPU_CHECKED"

/*
 * vgpud, for a program that must not wait for it: the hook blocks libvirt's domain, or the
 * container runtime's container, as long as it runs.
 */

/*
 * How long vgpud may take to show that it runs: connection, start by the bus, and one answer
 * together.
 */
#define AGENT_PATIENCE_MS 2000

typedef struct AgentClient AgentClient;

/*
 * @start: let the bus start vgpud if it does not run. NULL if it does not answer in time; the
 * message ends with what to do.
 */
AgentClient *agent_client_open(gboolean start, GError **error);

void agent_client_free(AgentClient *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentClient, agent_client_free)

/* Calls a method of the Manager and waits for its end. @parameters: floating. vgpud's errors are
 * AGENT_ERROR. */
gboolean agent_client_call(AgentClient *link, const char *method, GVariant *parameters,
                           GError **error);

/* The same with a timeout. */
gboolean agent_client_call_within(AgentClient *link, int milliseconds, const char *method,
                                  GVariant *parameters, GError **error);

/* The same for the GPU at that address. */
gboolean agent_client_call_gpu(AgentClient *link, const char *address, const char *method,
                               GVariant *parameters, GError **error);

#endif
