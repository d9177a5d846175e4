/* SPDX-License-Identifier: MIT */
/*
 * vgpud on D-Bus and in the journal: its names and errors, the words of the audit, and calls of it
 * for hooks, which do not wait for long.
 */
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
    AGENT_ERROR_NO_ROOM_NOW,    /* NoRoomNow: only what moves has none, so wait and ask again */
    AGENT_ERROR_QUOTA,          /* Quota: the tenant's or the user's is exceeded */
    AGENT_ERROR_EXISTS,         /* Exists: with other properties than the requested ones */
} AgentError;

/* vgpud's name and paths on the bus. */
#define VGPU_BUS_NAME     "org.mdev_vgpu.Host1"
#define VGPU_ROOT_PATH    "/org/mdev_vgpu"
#define VGPU_MANAGER_PATH VGPU_ROOT_PATH "/manager"
#define VGPU_GPU_PATH     VGPU_ROOT_PATH "/gpu"

#define VGPU_MANAGER_INTERFACE "org.mdev_vgpu.Host1.Manager"

/* The meter's name, and what it and vgpud have for each other. */
#define VGPU_METER_NAME         "org.mdev_vgpu.Meter1"
#define VGPU_METER_PATH         VGPU_ROOT_PATH "/meter"
#define VGPU_METER_INTERFACE    "org.mdev_vgpu.Host1.Meter"
#define VGPU_METERING_PATH      VGPU_ROOT_PATH "/metering"
#define VGPU_METERING_INTERFACE "org.mdev_vgpu.Host1.Metering"

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
/* If vgpud is being started, as at boot or while its package is upgraded. */
#define AGENT_START_PATIENCE_MS 20000

typedef struct AgentClient AgentClient;

/*
 * @start: let the bus start vgpud if it does not run. NULL if it does not answer in time; the
 * message ends with what to do.
 */
AgentClient *agent_client_open(gboolean start, GError **error);

void agent_client_free(AgentClient *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AgentClient, agent_client_free)

/*
 * The same for those who can wait: AGENT_START_PATIENCE_MS while vgpud is being started. One that
 * runs must answer as soon as others'.
 */
AgentClient *agent_client_open_at_start(GError **error);

/* The same for those who fail without vgpud: a busy one, too, has AGENT_START_PATIENCE_MS. */
AgentClient *agent_client_open_patiently(GError **error);

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

/*
 * Any method of an object at @path, and its answer: the first value of it, or all of them as a
 * tuple. Waits for its end, or for @milliseconds.
 */
GVariant *agent_client_get(AgentClient *link, const char *path, const char *interface,
                           const char *method, GVariant *parameters, int milliseconds,
                           GError **error);
GVariant *agent_client_get_all(AgentClient *link, const char *path, const char *interface,
                               const char *method, GVariant *parameters, int milliseconds,
                               GError **error);

/*
 * Changes in the journal: vgpud writes an entry for each, with these fields, and vgpuctl reads
 * them.
 *
 * The state of an object is a text "Key=value; Key=value"; "" is one that does not exist.
 *
 * What nobody asked for by a call on the bus has a source in place of a user, and no AUDIT_UID.
 */

/* Of all entries (journalctl MESSAGE_ID=…). */
#define AUDIT_MESSAGE_ID "6a1c7b0e5d3f4b0f9a2e8c4d7f1b3a95"

#define AUDIT_METHOD "MDEV_VGPU_METHOD" /* of D-Bus, such as SetSlice; or AUDIT_DO_… */
#define AUDIT_OBJECT "MDEV_VGPU_OBJECT" /* UUID, tenant or GPU */
#define AUDIT_USER   "MDEV_VGPU_USER"   /* or a source, one of AUDIT_BY_… */
#define AUDIT_UID    "MDEV_VGPU_UID"
#define AUDIT_BEFORE "MDEV_VGPU_BEFORE"
#define AUDIT_AFTER  "MDEV_VGPU_AFTER"
#define AUDIT_RESULT "MDEV_VGPU_RESULT" /* "ok", or "failed: " and the reason */

/* Sources. */
#define AUDIT_BY_SCHEDULE  "schedule"        /* schedule.conf */
#define AUDIT_BY_CONFIG    "gpus.conf"       /* the mode that is declared, or was set before */
#define AUDIT_BY_LIBVIRT   "libvirt"         /* a VM has ended */
#define AUDIT_BY_CONTAINER "container"       /* a container has ended */
#define AUDIT_BY_SYSTEMD   "systemd"         /* a program of "vgpuctl run" has ended */
#define AUDIT_BY_RECOVERY  "recovery"        /* vgpud had died in the middle of it; or a boot */
#define AUDIT_BY_MDEVCTL   "mdevctl"         /* mdevctl's configuration was changed */
#define AUDIT_BY_KERNEL    "kernel"          /* sysfs was changed, or the hardware */
#define AUDIT_BY_HEALTH    "health"          /* sensors, errors, crashes */
#define AUDIT_BY_PRESSURE  "memory-pressure" /* a GPU was short of memory */

/* Actions; operations have the names of their kinds, such as "switch" and "remove". */
#define AUDIT_DO_FIND    "found"    /* vgpud saw it, and did nothing */
#define AUDIT_DO_RELEASE "released" /* the slice's user is gone */
#define AUDIT_DO_EVICT   "evicted"  /* the engine was stopped */
#define AUDIT_DO_RESUME  "resume"   /* it has again what was promised to it */

/* Between the members of a state. */
#define AUDIT_BETWEEN "; "

/* "Weight 100 -> 7; Cap 50 -> 60"; "created", "removed", "". To be freed. */
char *audit_difference(const char *before, const char *after);

#endif
