/* SPDX-License-Identifier: MIT */
#include "host-agent/vgpuctl/window_room.h"

#include "lib/conf.h"
#include "host-agent/doctor/root_ports.h"
#include "host-agent/vgpuctl/listing.h"
#include "host-agent/vgpuctl/slice_options.h"

guint64 window_room(const VmLink *link, const Domain *domain)
{
    guint64 window = MIB;
    RootPorts ports;

    if (!domain->pcie || !root_ports_read(slice_options_uri(), vm_link_name(link), &ports) ||
        ports.window < MIB)
        return 0;
    while (window <= ports.window / 2)
        window *= 2;
    return window;
}

#define MORE_ROOM                                                                                  \
    "for more, give its root ports more (pcie-root-port.pref64-reserve=4G, for example), shut it " \
    "down and start it; " ROOT_PORTS_ADVICE " says how"

gboolean window_room_fit(GVariantDict *dict, guint64 room, const VmLink *link, GError **error)
{
    g_autofree char *wanted = NULL;
    g_autofree char *there = NULL;
    guint64 window = 0;

    if (!room)
        return TRUE;
    if (!g_variant_dict_lookup(dict, "Window", "t", &window)) {
        g_variant_dict_insert(dict, "WindowMost", "t", room);
        return TRUE;
    }
    if (window <= room)
        return TRUE;
    wanted = size_format(window);
    there = size_format(room);
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_NO_ROOM,
                "cannot attach a vGPU with a window of %s to domain %s: behind its free root ports "
                "fits one of %s at most; " MORE_ROOM,
                wanted, vm_link_name(link), there);
    return FALSE;
}

static guint64 window_of_type(GVariant *types, GVariant *vgpu)
{
    g_autofree char *gpu = dict_text(vgpu, "Gpu");
    g_autofree char *id = dict_text(vgpu, "Type");
    guint64 window = 0;

    for (gsize i = 0; i < g_variant_n_children(types); i++) {
        g_autoptr(GVariant) type = g_variant_get_child_value(types, i);
        g_autofree char *other_gpu = dict_text(type, "Gpu");
        g_autofree char *other = dict_text(type, "Id");

        if (g_strcmp0(gpu, other_gpu) == 0 && g_strcmp0(id, other) == 0)
            g_variant_lookup(type, "Window", "t", &window);
    }
    return window;
}

void window_room_tell(const Client *client, const VmLink *link, guint64 room, GVariant *vgpus)
{
    g_autoptr(GVariant) types = client_get(client, "ListTypes", NULL, NULL, NULL);
    g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, 0);
    guint64 of_type = types ? window_of_type(types, vgpu) : 0;
    g_autofree char *wanted = size_format(of_type);
    g_autofree char *there = size_format(room);

    if (of_type > room)
        g_printerr("vgpuctl: domain %s has room for a window of %s behind its root ports, and the "
                   "vGPU's type has one of %s, so the vGPU gets %s; " MORE_ROOM "\n",
                   vm_link_name(link), there, wanted, there);
}
