/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <string.h>

#include "bus_names.h"

G_DEFINE_QUARK(vgpuctl - error - quark, vgpuctl_error)

Client *client_new(GError **error)
{
    g_autoptr(Client) client = g_new0(Client, 1);
    g_autoptr(GError) cause = NULL;
    g_autofree char *owner = NULL;

    client->objects = vgpu_object_manager_client_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE, VGPU_BUS_NAME, VGPU_ROOT_PATH,
        NULL, &cause);
    if (client->objects)
        owner = g_dbus_object_manager_client_get_name_owner(
            G_DBUS_OBJECT_MANAGER_CLIENT(client->objects));
    if (!owner) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_UNREACHABLE,
                    "vgpud can't be reached%s%s; \"systemctl status vgpud\" says why",
                    cause ? ": " : "", cause ? cause->message : "");
        return NULL;
    }
    return g_steal_pointer(&client);
}

void client_free(Client *client)
{
    g_clear_object(&client->objects);
    g_free(client);
}

static int by_address(const void *a, const void *b)
{
    return strcmp(vgpu_gpu_get_address(*(VgpuGpu *const *)a),
                  vgpu_gpu_get_address(*(VgpuGpu *const *)b));
}

GPtrArray *client_gpus(const Client *client)
{
    GPtrArray *gpus = g_ptr_array_new_with_free_func(g_object_unref);
    GList *objects = g_dbus_object_manager_get_objects(client->objects);

    for (GList *at = objects; at; at = at->next) {
        VgpuGpu *gpu = vgpu_object_get_gpu(VGPU_OBJECT(at->data));

        if (gpu)
            g_ptr_array_add(gpus, gpu);
    }
    g_list_free_full(objects, g_object_unref);
    g_ptr_array_sort(gpus, by_address);
    return gpus;
}

static gboolean is_at(VgpuGpu *gpu, const char *address)
{
    const char *full = vgpu_gpu_get_address(gpu);

    return g_str_equal(full, address) ||
           (g_str_has_prefix(full, "0000:") && g_str_equal(full + strlen("0000:"), address));
}

VgpuGpu *client_gpu(const Client *client, const char *address, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client);

    for (guint i = 0; i < gpus->len; i++) {
        VgpuGpu *gpu = g_ptr_array_index(gpus, i);

        if (is_at(gpu, address))
            return g_object_ref(gpu);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "this host has no GPU %s; \"vgpuctl gpu list\" shows those that it has", address);
    return NULL;
}

VgpuManager *client_manager(const Client *client, GError **error)
{
    g_autoptr(GDBusInterface) interface = g_dbus_object_manager_get_interface(
        client->objects, VGPU_MANAGER_PATH, VGPU_BUS_NAME ".Manager");

    if (!interface) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                    "vgpud has no object for the host itself; is it of another version?");
        return NULL;
    }
    return VGPU_MANAGER(g_steal_pointer(&interface));
}
