/* SPDX-License-Identifier: MIT */
#include "host.h"

#include "bus_names.h"
#include "gpu_object.h"
#include "lists.h"
#include "topology.h"

struct Host {
    Inventory *inventory;
    GPtrArray *gpus;
    GHashTable *objects; /* address to VgpuObjectSkeleton */
    GDBusObjectManagerServer *manager;
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

static gboolean handle_get_topology(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                    void *data)
{
    const Host *host = data;
    g_autoptr(GStrvBuilder) addresses = g_strv_builder_new();
    g_auto(GStrv) list = NULL;
    GVariantBuilder distances;

    g_variant_builder_init(&distances, G_VARIANT_TYPE("aas"));
    for (guint i = 0; i < host->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(host->gpus, i);

        g_strv_builder_add(addresses, gpu->pci->address);
        g_variant_builder_add_value(&distances, distance_row(host->gpus, gpu));
    }
    list = g_strv_builder_end(addresses);
    vgpu_manager_complete_get_topology(interface, invocation, (const char *const *)list,
                                       g_variant_builder_end(&distances));
    return TRUE;
}

static gboolean handle_list_vgpus(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                  void *data)
{
    const Host *host = data;

    vgpu_manager_complete_list_vgpus(interface, invocation,
                                     list_vgpus(inventory_root(host->inventory)));
    return TRUE;
}

static gboolean handle_list_types(VgpuManager *interface, GDBusMethodInvocation *invocation,
                                  void *data)
{
    const Host *host = data;

    vgpu_manager_complete_list_types(interface, invocation, list_types(host->gpus));
    return TRUE;
}

static void export_manager(Host *host)
{
    g_autoptr(VgpuObjectSkeleton) object = vgpu_object_skeleton_new(VGPU_MANAGER_PATH);
    g_autoptr(VgpuManager) interface = vgpu_manager_skeleton_new();

    vgpu_manager_set_version(interface, VGPU_VERSION);
    g_signal_connect(interface, "handle-get-topology", G_CALLBACK(handle_get_topology), host);
    g_signal_connect(interface, "handle-list-vgpus", G_CALLBACK(handle_list_vgpus), host);
    g_signal_connect(interface, "handle-list-types", G_CALLBACK(handle_list_types), host);
    vgpu_object_skeleton_set_manager(object, interface);
    g_dbus_object_manager_server_export(host->manager, G_DBUS_OBJECT_SKELETON(object));
}

Host *host_new(GDBusConnection *bus, Inventory *inventory)
{
    Host *host = g_new0(Host, 1);

    host->inventory = inventory;
    host->gpus = g_ptr_array_new();
    host->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    host->manager = g_dbus_object_manager_server_new(VGPU_ROOT_PATH);
    export_manager(host);
    host_refresh(host);
    g_dbus_object_manager_server_set_connection(host->manager, bus);
    return host;
}

void host_free(Host *host)
{
    g_object_unref(host->manager);
    g_hash_table_unref(host->objects);
    g_ptr_array_unref(host->gpus);
    g_free(host);
}

static gboolean has(const GPtrArray *gpus, const char *address)
{
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (g_str_equal(gpu->pci->address, address))
            return TRUE;
    }
    return FALSE;
}

static void remove_gone(Host *host)
{
    GHashTableIter iter;
    void *address;
    void *object;

    g_hash_table_iter_init(&iter, host->objects);
    while (g_hash_table_iter_next(&iter, &address, &object)) {
        if (has(host->gpus, address))
            continue;
        g_message("GPU %s is gone", (const char *)address);
        g_dbus_object_manager_server_unexport(host->manager,
                                              g_dbus_object_get_object_path(G_DBUS_OBJECT(object)));
        g_hash_table_iter_remove(&iter);
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
    g_dbus_object_manager_server_export(host->manager, G_DBUS_OBJECT_SKELETON(object));
    g_hash_table_insert(host->objects, g_strdup(gpu->pci->address), object);
}

void host_refresh(Host *host)
{
    g_ptr_array_unref(host->gpus);
    host->gpus = inventory_read(host->inventory);
    remove_gone(host);
    for (guint i = 0; i < host->gpus->len; i++)
        add_or_update(host, g_ptr_array_index(host->gpus, i));
}
