/* SPDX-License-Identifier: MIT */
#include "host-agent/doctor/root_ports.h"

#include <string.h>

#include "lib/program.h"
#include "host-agent/doctor/findings.h"

static gboolean has_device(const char *info, guint bus)
{
    g_autofree char *line = g_strdup_printf("  Bus %2u, device", bus);

    return strstr(info, line) != NULL;
}

/* The bytes of "prefetchable memory range [0x…, 0x…]"; 0 for a range that ends before it begins. */
static guint64 range_of(const char *bridge)
{
    static const char words[] = " prefetchable memory range [";
    const char *at = strstr(bridge, words);
    guint64 first;
    guint64 last;
    char *end;

    if (!at)
        return 0;
    first = g_ascii_strtoull(at + strlen(words), &end, 0);
    last = *end == ',' ? g_ascii_strtoull(end + 2, NULL, 0) : 0;
    return last > first ? last - first + 1 : 0;
}

/* One device of QEMU's "info pci". */
static void count_bridge(RootPorts *ports, const char *info, const char *device)
{
    const char *secondary = strstr(device, "secondary bus ");
    guint64 window;

    if (!secondary ||
        has_device(info, (guint)g_ascii_strtoull(secondary + strlen("secondary bus "), NULL, 10)))
        return;
    window = range_of(device);
    ports->window = ports->count ? MIN(ports->window, window) : window;
    ports->count++;
}

gboolean root_ports_read(const char *uri, const char *name, RootPorts *ports)
{
    const char *const ask[] = {"virsh",    "-q", "qemu-monitor-command", name, "--hmp",
                               "info pci", NULL};
    const char *const ask_at[] = {"virsh", "-q",    "-c",       uri, "qemu-monitor-command",
                                  name,    "--hmp", "info pci", NULL};
    const Program program = {.argv = uri ? ask_at : ask, .seconds = CHECK_SECONDS};
    g_autofree char *info = NULL;
    g_auto(GStrv) devices = NULL;

    *ports = (RootPorts){0};
    if (!program_run(&program, &info, NULL))
        return FALSE;
    devices = g_strsplit(info, "  Bus ", -1);
    for (guint i = 0; devices[i]; i++)
        count_bridge(ports, info, devices[i]);
    return TRUE;
}
