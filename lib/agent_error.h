/* SPDX-License-Identifier: MIT */
/*
 * Errors of vgpud, as they are on the bus: org.mdev_vgpu.Host1.Error.NAME. Their messages are sentences that
 * say what failed, on which device, and what to do.
 */
#ifndef VGPU_AGENT_ERROR_H
#define VGPU_AGENT_ERROR_H

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

#endif
