/* SPDX-License-Identifier: MIT */
/* The host's GPUs, their objects on the bus, and udev's events. */
#ifndef VGPUD_HOST_HOST_H
#define VGPUD_HOST_HOST_H

#include <glib.h>
#include <gio/gio.h>

#include "lib/gpu.h"
#include "vgpu-host.h"
#include "host-agent/daemon/engines/arbiters.h"
#include "host-agent/daemon/engines/vgpu_states.h"
#include "host-agent/model/slice.h"
#include "host-agent/store/db.h"

typedef struct Host Host;

/*
 * @inventory, @db: owned by the caller, and live longer. Nothing is exported yet, so that modules
 * can add themselves first.
 */
Host *host_new(Inventory *inventory, Db *db);

void host_free(Host *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Host, host_free)

/* Reads the host's state, and shows it on @bus. */
void host_export(Host *host, GDBusConnection *bus);

/* Reads the inventory again and signals changes on the bus. */
void host_refresh(Host *host);

/*
 * The same if a GPU has types that are not known yet. When a GPU is registered, a rule of udev runs
 * mdevctl, which asks for vGPUs of it; its event comes after that. The caller holds no Gpu and no
 * Slice.
 */
void host_catch_up(Host *host);

HostRoot *host_root(const Host *host);
Db *host_db(const Host *host);

/* The vGPUs as the driver tells of them, shared by all modules, so that each value is read once. */
VgpuStates *host_vgpu_states(const Host *host);

/* Who uses the GPUs' slices, as their arbiters tell. */
Arbiters *host_arbiters(const Host *host);

/* Of Gpu, in the order of their addresses; valid until the next refresh. */
const GPtrArray *host_gpus(const Host *host);

/* NULL: none (any more). */
const Gpu *host_gpu(const Host *host, const char *address);

/* The same by the path of its object (gpu_object_path()). */
const Gpu *host_gpu_at(const Host *host, const char *path);

/* Smaller is nearer: by NVLink, then by PCIe and NUMA nodes (Distance). */
guint host_distance(const Host *host, const Gpu *from, const Gpu *to);

/* The same by its name as an mdev parent, which differs for a GPU without hardware. */
const Gpu *host_gpu_of_parent(const Host *host, const char *parent);

/* The GPU's interface on the bus, for setting properties; NULL: none. Owned by the host. */
VgpuGpu *host_gpu_interface(const Host *host, const char *address);

/* The manager's interface; modules answer its methods by connecting to its signals "handle-…". */
VgpuManager *host_manager(const Host *host);

/*
 * @added: called for each new GPU before it is on the bus, to connect to its methods; @changed
 * after each refresh. Either may be NULL.
 */
void host_watch(Host *host, void (*added)(VgpuGpu *gpu, void *data), void (*changed)(void *data),
                void *data);

/*
 * @func adds sentences about users of the GPU @gpu that the kernel does not show: containers'
 * slices.
 */
typedef void (*HostUsersFunc)(const char *gpu, GStrvBuilder *users, void *data);
void host_set_users(Host *host, HostUsersFunc func, void *data);

/* @users plus those; to be freed. */
GStrv host_with_users(const Host *host, const char *gpu, const GStrv users);

/*
 * @func says which door a slice of @gpu gets if its request says "auto". Without it: the one whose
 * limits bind all programs.
 */
typedef SliceTransport (*HostDoorFunc)(HostRoot *root, const char *gpu);
void host_set_door(Host *host, HostDoorFunc func);
SliceTransport host_door_of(const Host *host, const char *gpu);

/* What gpus.conf says of its GPUs, as inventory_entries() has it. */
GPtrArray *host_wanted(const Host *host);

/* The signal Event, and a line in the log. @gpu, @vgpu: NULL: none. */
void host_event(Host *host, const char *kind, const char *gpu, const char *vgpu, const char *format,
                ...) G_GNUC_PRINTF(5, 6);

/* A GPU on D-Bus. */

/* "/org/mdev_vgpu/gpu/0000_01_00_0", "/org/mdev_vgpu/gpu/soft_NAME". To be freed. */
char *gpu_object_path(const char *address);

/* Reports possible changes of GPUs, their drivers or their devices, from udev's events. */

typedef struct Hotplug Hotplug;

/*
 * Calls @changed from the main loop, once for events in quick succession, and @vgpu_changed at once
 * for each mediated device that is added, changed or removed. @lost: there may have been others, of
 * anything.
 */
Hotplug *hotplug_new(void (*changed)(gboolean lost, void *data),
                     void (*vgpu_changed)(const char *uuid, void *data), void *data,
                     GError **error);

void hotplug_free(Hotplug *hotplug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hotplug, hotplug_free)

#endif
