/* SPDX-License-Identifier: MIT */
#include "lib/topology.h"

#include <string.h>

#include "lib/gpus.h"

/* A device right below a port of a switch: the port, and the device itself. */
#define BELOW_ONE_SWITCH 2u

/* The components of its place in /sys/devices from the host bridge ("pci0000:00") on. */
static GStrv bridges_of(const PciDevice *device)
{
    const char *host_bridge = strstr(device->dir, "/devices/");

    return g_strsplit(host_bridge ? host_bridge + strlen("/devices/") : device->dir, "/", -1);
}

static Distance between_host_bridges(const PciDevice *a, const PciDevice *b)
{
    return a->numa_node >= 0 && a->numa_node == b->numa_node ? DISTANCE_NODE : DISTANCE_SYS;
}

Distance topology_distance(const PciDevice *a, const PciDevice *b)
{
    g_auto(GStrv) left = bridges_of(a);
    g_auto(GStrv) right = bridges_of(b);
    guint common = 0;

    if (g_str_equal(a->address, b->address))
        return DISTANCE_SELF;
    if (gpu_name_is_soft(a->address) || gpu_name_is_soft(b->address))
        return DISTANCE_SYS;
    while (left[common] && right[common] && g_str_equal(left[common], right[common]))
        common++;
    if (common == 0)
        return between_host_bridges(a, b);
    if (common == 1)
        return DISTANCE_PHB;
    if (g_strv_length(left) - common <= BELOW_ONE_SWITCH &&
        g_strv_length(right) - common <= BELOW_ONE_SWITCH)
        return DISTANCE_PIX;
    return DISTANCE_PXB;
}

const char *distance_name(Distance distance)
{
    static const char *const names[] = {
        [DISTANCE_SELF] = "X",  [DISTANCE_PIX] = "PIX",   [DISTANCE_PXB] = "PXB",
        [DISTANCE_PHB] = "PHB", [DISTANCE_NODE] = "NODE", [DISTANCE_SYS] = "SYS",
    };

    return names[distance];
}
