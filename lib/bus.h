/* SPDX-License-Identifier: MIT */
/*
 * Errors of vgpud, as they are on the bus: org.mdev_vgpu.Host1.Error.NAME. Their messages are sentences that
 * say what failed, on which device, and what to do.
 */
#ifndef LIB_BUS_H
#define LIB_BUS_H

#include <gio/gio.h>

#define AGENT_ERROR agent_error_quark()
GQuark agent_error_quark(void);

typedef enum {
    AGENT_ERROR_FAILED,         /* Failed: the system said no */
    AGENT_ERROR_INVALID,        /* InvalidArgument: a value that is never right */
    AGENT_ERROR_NOT_FOUND,      /* NotFound: no such GPU, vGPU, tenant or type */
    AGENT_ERROR_NOT_AUTHORIZED, /* NotAuthorized: polkit said no */
    AGENT_ERROR_IN_USE,         /* InUse: somebody is in the way; the message names who */
    AGENT_ERROR_NO_ROOM,        /* NoRoom: no GPU has what is asked for */
    AGENT_ERROR_QUOTA,          /* Quota: the tenant's is too small */
} AgentError;

/*
 * Where vgpud is on the bus.
 */
#define VGPU_BUS_NAME     "org.mdev_vgpu.Host1"
#define VGPU_ROOT_PATH    "/org/mdev_vgpu"
#define VGPU_MANAGER_PATH VGPU_ROOT_PATH "/manager"
#define VGPU_GPU_PATH     VGPU_ROOT_PATH "/gpu"

#define VGPU_MANAGER_INTERFACE "org.mdev_vgpu.Host1.Manager"

/*
 * In the environment of what vgpud runs: it has decided already, so mdevctl's callout does not ask it again. Who can
 * set this for mdevctl is root, and has "mdevctl --force" anyway.
 */
#define VGPU_CHECKED_ENV "VGPU_CHECKED"

#endif
