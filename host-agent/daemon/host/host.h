/* SPDX-License-Identifier: MIT */
/*
 * The host on D-Bus: its GPUs, kept as they are in the kernel. What vgpud does with them is in modules of their own
 * (slices, modes, health, usage), which find here what they share.
 */
#ifndef VGPUD_HOST_HOST_H
#define VGPUD_HOST_HOST_H

#include <gio/gio.h>

#include "host-agent/daemon/engines/counters.h"
#include "host-agent/model/slice.h"
#include "host-agent/store/db.h"
#include "lib/gpu.h"
#include "vgpu-host.h"

typedef struct Host Host;

/*
 * @inventory, @db: stay the caller's, and live longer. Nothing is on the bus yet, so that modules can add
 * themselves before.
 */
Host *host_new(Inventory *inventory, Db *db);

void host_free(Host *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Host, host_free)

/* Reads what there is, and shows it on @bus. */
void host_export(Host *host, GDBusConnection *bus);

/* Reads the inventory anew and tells the bus what has changed. */
void host_refresh(Host *host);

const char *host_root(const Host *host);
Db *host_db(const Host *host);

/* What the vGPUs do, for all who want to know: what one has read, the next need not. */
Counters *host_counters(const Host *host);

/* Of Gpu, in the order of their addresses; valid until the next refresh. */
const GPtrArray *host_gpus(const Host *host);

/* NULL: there is none (any more). */
const Gpu *host_gpu(const Host *host, const char *address);

/* The same by the name that it has as an mdev parent, which for a GPU without hardware is another. */
const Gpu *host_gpu_of_parent(const Host *host, const char *parent);

/* The GPU's interface on the bus, to set properties of; NULL: there is none. Stays the host's. */
VgpuGpu *host_gpu_interface(const Host *host, const char *address);

/* The manager's, whose methods modules answer by connecting to its signals "handle-…". */
VgpuManager *host_manager(const Host *host);

/*
 * @added: called for each GPU that comes, before it is on the bus, to connect to its methods; @changed after each
 * refresh. Either may be NULL.
 */
void host_watch(Host *host, void (*added)(VgpuGpu *gpu, void *data), void (*changed)(void *data),
                void *data);

/* @func adds sentences on who has something of the GPU @gpu that is not to be seen in the kernel: containers' slices. */
typedef void (*HostUsersFunc)(const char *gpu, GStrvBuilder *users, void *data);
void host_set_users(Host *host, HostUsersFunc func, void *data);

/* @users and those; to be freed. */
GStrv host_with_users(const Host *host, const char *gpu, const GStrv users);

/* What gpus.conf says of its GPUs, as inventory_entries() has it. */
GPtrArray *host_wanted(const Host *host);

/* The signal Event, and a line in the log. @gpu, @vgpu: NULL: none. */
void host_event(Host *host, const char *kind, const char *gpu, const char *vgpu,
                const char *format, ...) G_GNUC_PRINTF(5, 6);

#endif
