/* SPDX-License-Identifier: MIT */
/*
 * Room for a vGPU's window behind the root ports of running VMs. Firmware allocates it when a VM
 * starts. A window that does not fit leaves the guest without GPU memory, and the cause is hard to
 * see.
 */
#include <string.h>

#include "host-agent/doctor/findings.h"
#include "lib/program.h"
#include "lib/types.h"
#include "lib/units.h"

/**
 * Ports - the free root ports of a VM
 * @count: how many
 * @window: bytes of the largest prefetchable window among them
 */
typedef struct {
    guint count;
    guint64 window;
} Ports;

/* A program's output; NULL if it fails. To be freed. */
static char *output_of(const char *const *argv)
{
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    char *out = NULL;

    return program_run(&program, &out, NULL) ? out : NULL;
}

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
static void count_bridge(Ports *ports, const char *info, const char *device)
{
    const char *secondary = strstr(device, "secondary bus ");
    guint64 window;

    if (!secondary ||
        has_device(info, (guint)g_ascii_strtoull(secondary + strlen("secondary bus "), NULL, 10)))
        return;
    window = range_of(device);
    ports->count++;
    ports->window = MAX(ports->window, window);
}

static Ports ports_of(const char *info)
{
    g_auto(GStrv) devices = g_strsplit(info, "  Bus ", -1);
    Ports ports = {0};

    for (guint i = 0; devices[i]; i++)
        count_bridge(&ports, info, devices[i]);
    return ports;
}

/* Of the smallest window among the types; 0: no types. */
static guint64 least_window(HostRoot *root)
{
    g_autoptr(GPtrArray) types = types_load(root, NULL);
    guint64 least = 0;

    for (guint i = 0; types && i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);

        least = least ? MIN(least, type->window_bytes) : type->window_bytes;
    }
    return least;
}

static void judge(Examination *exam, const char *vm, const Ports *ports, guint64 least)
{
    g_autofree char *window = size_format(ports->window);
    g_autofree char *needed = size_format(least);

    if (!ports->count)
        finding_add(exam, FINDING_WARNING, "VM",
                    g_strdup_printf("%s has no free root port, so no vGPU can be attached while "
                                    "it runs",
                                    vm),
                    g_strdup("add <controller type='pci' model='pcie-root-port'/> to it, and "
                             "restart it"));
    else if (ports->window < least)
        finding_add(exam, FINDING_WARNING, "VM",
                    g_strdup_printf("%s has room for windows of %s behind its free root ports, "
                                    "and a vGPU needs %s at least",
                                    vm, window, needed),
                    g_strdup("see \"Room for the window\" in the operator's guide: memory above "
                             "4 GiB and 46 address bits, or OVMF; the VM has to be restarted"));
    else
        finding_ok(exam, "VM", "%s: %u free root ports, windows of up to %s", vm, ports->count,
                   window);
}

void check_vms(Examination *exam)
{
    const char *const list[] = {"virsh", "-q", "list", "--name", NULL};
    g_autofree char *names = output_of(list);
    g_auto(GStrv) vms = g_strsplit(names ? names : "", "\n", -1);
    guint64 least = least_window(exam->root);

    for (guint i = 0; least && vms[i]; i++) {
        const char *const ask[] = {"virsh", "-q",    "qemu-monitor-command", vms[i],
                                   "--hmp", "info pci", NULL};
        g_autofree char *info = *vms[i] ? output_of(ask) : NULL;
        Ports ports;

        if (!info)
            continue;
        ports = ports_of(info);
        judge(exam, vms[i], &ports, least);
    }
}
