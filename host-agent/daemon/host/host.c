/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/host.h"

#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/gpu_object.h"
#include "lib/bus.h"
#include "lib/pci.h"

typedef struct {
    void (*added)(VgpuGpu *gpu, void *data);
    void (*changed)(void *data);
    void *data;
} Watch;

struct Host {
    Inventory *inventory;
    Db *db;
    Counters *counters;
    GPtrArray *gpus;
    GHashTable *objects; /* address to VgpuObjectSkeleton */
    GArray *watches;     /* of Watch */
    VgpuManager *interface;
    GDBusObjectManagerServer *objects_server;
    HostUsersFunc users;
    void *users_data;
};

static GVariant *distance_row(const GPtrArray *gpus, const Gpu *from)
{
    GVariantBuilder row;

    g_variant_builder_init(&row, G_VARIANT_TYPE_STRING_ARRAY);
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *to = g_ptr_array_index(gpus, i);

        g_variant_builder_add(&row, "s", distance_name(topology_distance(from->pci, to->pci)));
    }
    return g_variant_builder_end(&row);
}

static void topology_authorized(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Host *host = data;
    g_autoptr(GStrvBuilder) addresses = g_strv_builder_new();
    g_auto(GStrv) list = NULL;
    GVariantBuilder distances;

    (void)caller;
    g_variant_builder_init(&distances, G_VARIANT_TYPE("aas"));
    for (guint i = 0; i < host->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(host->gpus, i);

        g_strv_builder_add(addresses, gpu->pci->address);
        g_variant_builder_add_value(&distances, distance_row(host->gpus, gpu));
    }
    list = g_strv_builder_end(addresses);
    vgpu_manager_complete_get_topology(host->interface, invocation, (const char *const *)list,
                                       g_variant_builder_end(&distances));
}

static gboolean handle_get_topology(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                    void *data)
{
    (void)interface;
    authority_ask(invocation, ACTION_SEE, topology_authorized, data);
    return TRUE;
}

static VgpuManager *manager_new(Host *host)
{
    VgpuManager *interface = vgpu_manager_skeleton_new();

    vgpu_manager_set_version(interface, VGPU_VERSION);
    g_signal_connect(interface, "handle-get-topology", G_CALLBACK(handle_get_topology), host);
    return interface;
}

Host *host_new(Inventory *inventory, Db *db)
{
    Host *host = g_new0(Host, 1);

    host->inventory = inventory;
    host->db = db;
    host->counters = counters_new(inventory_root(inventory));
    host->gpus = g_ptr_array_new();
    host->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    host->watches = g_array_new(FALSE, FALSE, sizeof(Watch));
    host->interface = manager_new(host);
    host->objects_server = g_dbus_object_manager_server_new(VGPU_ROOT_PATH);
    return host;
}

void host_free(Host *host)
{
    g_object_unref(host->objects_server);
    g_object_unref(host->interface);
    g_array_unref(host->watches);
    g_hash_table_unref(host->objects);
    g_ptr_array_unref(host->gpus);
    counters_free(host->counters);
    g_free(host);
}

void host_export(Host *host, GDBusConnection *bus)
{
    g_autoptr(VgpuObjectSkeleton) object = vgpu_object_skeleton_new(VGPU_MANAGER_PATH);

    vgpu_object_skeleton_set_manager(object, host->interface);
    g_dbus_object_manager_server_export(host->objects_server, G_DBUS_OBJECT_SKELETON(object));
    host_refresh(host);
    g_dbus_object_manager_server_set_connection(host->objects_server, bus);
}

HostRoot *host_root(const Host *host)
{
    return inventory_root(host->inventory);
}

GPtrArray *host_wanted(const Host *host)
{
    return inventory_entries(host->inventory);
}

Db *host_db(const Host *host)
{
    return host->db;
}

Counters *host_counters(const Host *host)
{
    return host->counters;
}

const GPtrArray *host_gpus(const Host *host)
{
    return host->gpus;
}

const Gpu *host_gpu(const Host *host, const char *address)
{
    for (guint i = 0; i < host->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(host->gpus, i);

        if (g_str_equal(gpu->pci->address, address))
            return gpu;
    }
    return NULL;
}

const Gpu *host_gpu_of_parent(const Host *host, const char *parent)
{
    const Gpu *gpu = host_gpu(host, parent);
    g_autofree char *soft = g_strconcat(GPU_SOFT_PREFIX, parent, NULL);

    return gpu ? gpu : host_gpu(host, soft);
}

/* The object keeps it alive. */
VgpuGpu *host_gpu_interface(const Host *host, const char *address)
{
    VgpuObjectSkeleton *object = g_hash_table_lookup(host->objects, address);

    return object ? vgpu_object_peek_gpu(VGPU_OBJECT(object)) : NULL;
}

VgpuManager *host_manager(const Host *host)
{
    return host->interface;
}

void host_watch(Host *host, void (*added)(VgpuGpu *gpu, void *data), void (*changed)(void *data),
                void *data)
{
    const Watch watch = {added, changed, data};

    g_array_append_val(host->watches, watch);
}

void host_set_users(Host *host, HostUsersFunc func, void *data)
{
    host->users = func;
    host->users_data = data;
}

GStrv host_with_users(const Host *host, const char *gpu, const GStrv users)
{
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();

    g_strv_builder_addv(all, (const char **)users);
    if (host->users)
        host->users(gpu, all, host->users_data);
    return g_strv_builder_end(all);
}

void host_event(Host *host, const char *kind, const char *gpu, const char *vgpu,
                const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list values;

    va_start(values, format);
    text = g_strdup_vprintf(format, values);
    va_end(values);
    g_message("%s", text);
    vgpu_manager_emit_event(host->interface, kind, gpu ? gpu : "", vgpu ? vgpu : "", text);
}

static void remove_gone(Host *host)
{
    GHashTableIter iter;
    void *address;
    void *object;

    g_hash_table_iter_init(&iter, host->objects);
    while (g_hash_table_iter_next(&iter, &address, &object)) {
        if (host_gpu(host, address))
            continue;
        g_message("GPU %s is gone", (const char *)address);
        g_dbus_object_manager_server_unexport(host->objects_server,
                                              g_dbus_object_get_object_path(G_DBUS_OBJECT(object)));
        g_hash_table_iter_remove(&iter);
    }
}

static void tell_added(const Host *host, VgpuObjectSkeleton *object)
{
    for (guint i = 0; i < host->watches->len; i++) {
        const Watch *watch = &g_array_index(host->watches, Watch, i);

        if (watch->added)
            watch->added(vgpu_object_peek_gpu(VGPU_OBJECT(object)), watch->data);
    }
}

static void tell_changed(const Host *host)
{
    for (guint i = 0; i < host->watches->len; i++) {
        const Watch *watch = &g_array_index(host->watches, Watch, i);

        if (watch->changed)
            watch->changed(watch->data);
    }
}

static void add_or_update(Host *host, const Gpu *gpu)
{
    VgpuObjectSkeleton *object = g_hash_table_lookup(host->objects, gpu->pci->address);

    if (object) {
        gpu_object_update(object, gpu);
        return;
    }
    g_message("GPU %s: %s, mode %s", gpu->pci->address, gpu->name, gpu_mode_name(gpu->mode));
    object = gpu_object_new(gpu);
    tell_added(host, object);
    g_dbus_object_manager_server_export(host->objects_server, G_DBUS_OBJECT_SKELETON(object));
    g_hash_table_insert(host->objects, g_strdup(gpu->pci->address), object);
}

void host_refresh(Host *host)
{
    g_ptr_array_unref(host->gpus);
    host->gpus = inventory_read(host->inventory);
    remove_gone(host);
    for (guint i = 0; i < host->gpus->len; i++)
        add_or_update(host, g_ptr_array_index(host->gpus, i));
    tell_changed(host);
}
