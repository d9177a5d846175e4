/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/client.h"

#include <string.h>

#include "lib/bus.h"

#define PATIENCE_MS (10 * 60 * 1000)

G_DEFINE_QUARK(vgpuctl - error - quark, vgpuctl_error)

static void set_unreachable(const GError *cause, GError **error)
{
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_UNREACHABLE,
                "vgpud can't be reached%s%s; \"systemctl status vgpud\" says why",
                cause ? ": " : "", cause ? cause->message : "");
}

/* Without the properties, which only some commands want: the rest need not wait for them. */
Client *client_new(GError **error)
{
    g_autoptr(Client) client = g_new0(Client, 1);
    g_autoptr(GError) cause = NULL;

    client->manager = vgpu_manager_proxy_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES, VGPU_BUS_NAME,
        VGPU_MANAGER_PATH, NULL, &cause);
    if (client->manager)
        return g_steal_pointer(&client);
    set_unreachable(cause, error);
    return NULL;
}

void client_free(Client *client)
{
    g_clear_object(&client->manager);
    g_clear_object(&client->objects);
    g_free(client);
}

void client_be_patient(Client *client)
{
    g_dbus_proxy_set_default_timeout(G_DBUS_PROXY(client->manager), PATIENCE_MS);
}

GDBusObjectManager *client_objects(Client *client, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *owner = NULL;

    if (client->objects)
        return client->objects;
    client->objects = vgpu_object_manager_client_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE, VGPU_BUS_NAME, VGPU_ROOT_PATH,
        NULL, &cause);
    if (client->objects)
        owner = g_dbus_object_manager_client_get_name_owner(
            G_DBUS_OBJECT_MANAGER_CLIENT(client->objects));
    if (owner)
        return client->objects;
    set_unreachable(cause, error);
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    return strcmp(vgpu_gpu_get_address(*(VgpuGpu *const *)a),
                  vgpu_gpu_get_address(*(VgpuGpu *const *)b));
}

GPtrArray *client_gpus(Client *client, GError **error)
{
    GDBusObjectManager *manager = client_objects(client, error);
    GList *objects = manager ? g_dbus_object_manager_get_objects(manager) : NULL;
    GPtrArray *gpus = manager ? g_ptr_array_new_with_free_func(g_object_unref) : NULL;

    for (GList *at = objects; at; at = at->next) {
        VgpuGpu *gpu = vgpu_object_get_gpu(VGPU_OBJECT(at->data));

        if (gpu)
            g_ptr_array_add(gpus, gpu);
    }
    g_list_free_full(objects, g_object_unref);
    if (gpus)
        g_ptr_array_sort(gpus, by_address);
    return gpus;
}

static gboolean is_at(VgpuGpu *gpu, const char *address)
{
    const char *full = vgpu_gpu_get_address(gpu);

    return g_str_equal(full, address) ||
           (g_str_has_prefix(full, "0000:") && g_str_equal(full + strlen("0000:"), address));
}

VgpuGpu *client_gpu(Client *client, const char *address, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);

    if (!gpus)
        return NULL;
    for (guint i = 0; i < gpus->len; i++) {
        VgpuGpu *gpu = g_ptr_array_index(gpus, i);

        if (is_at(gpu, address))
            return g_object_ref(gpu);
    }
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NOT_FOUND,
                "this host has no GPU %s; \"vgpuctl gpu list\" shows those that it has", address);
    return NULL;
}
