/* SPDX-License-Identifier: MIT */
#include "lib/gpu.h"

#include <pci/pci.h>
#include <string.h>

#include "lib/gpus.h"
#include "lib/mdev.h"
#include "lib/pci.h"
#include "lib/host_root.h"

#define PCI_CLASS_BRIDGE 0x06

static GStrv drm_nodes(HostRoot *root, const char *dir)
{
    g_autofree char *drm = g_build_filename(dir, "drm", NULL);

    return sysfs_list(root, drm);
}

/* Bridges stay in the group with their own driver: VFIO allows them. */
static gboolean must_be_freed(const PciDevice *device)
{
    return device->driver && !g_str_equal(device->driver, "vfio-pci") &&
           device->class >> 16 != PCI_CLASS_BRIDGE;
}

static void read_group(Gpu *gpu, HostRoot *root)
{
    g_auto(GStrv) members =
        gpu->pci->iommu_group ? pci_group_members(root, gpu->pci->iommu_group) : NULL;
    g_autoptr(GStrvBuilder) others = g_strv_builder_new();
    g_autoptr(GStrvBuilder) in_use = g_strv_builder_new();

    for (guint i = 0; members && members[i]; i++) {
        g_autoptr(PciDevice) member = NULL;

        if (g_str_equal(members[i], gpu->pci->address))
            continue;
        g_strv_builder_add(others, members[i]);
        member = pci_device_read(root, members[i]);
        if (member && must_be_freed(member))
            g_strv_builder_add(in_use, members[i]);
    }
    gpu->group = g_strv_builder_end(others);
    gpu->group_in_use = g_strv_builder_end(in_use);
}

/* Without a driver nothing can run on it, whatever the desired mode. */
static gboolean is_for_containers(HostRoot *root, const PciDevice *pci)
{
    return (pci->driver || gpu_name_is_soft(pci->address)) &&
           containers_only_is(root, pci->address);
}

static GpuMode mode_of(HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) instances = nvidia_instances(root, gpu->pci->address);

    if (g_strcmp0(gpu->pci->driver, "vfio-pci") == 0)
        return GPU_MODE_PASSTHROUGH;
    if (gpu->types[0])
        return GPU_MODE_SHARED;
    if (gpu->pci->vfs || instances[0])
        return GPU_MODE_PARTITIONED;
    return is_for_containers(root, gpu->pci) ? GPU_MODE_SHARED : GPU_MODE_HOST;
}

/* The registrar's order: the operator's entry has precedence over the hardware's. */
static void read_vram(Gpu *gpu, HostRoot *root, const GpuEntry *entry)
{
    const char *driver = gpu->pci->driver ? gpu->pci->driver : "no driver";

    if (entry && entry->vram_bytes) {
        gpu->vram = entry->vram_bytes;
        gpu->vram_source = g_strdup("vram= in gpus.conf");
    } else if (!hardware_vram(root, gpu->pci->dir, driver, &gpu->vram, &gpu->vram_source, NULL)) {
        gpu->vram = 0;
    }
}

Gpu *gpu_new(HostRoot *root, PciDevice *pci, const char *name, const GpuEntry *entry)
{
    Gpu *gpu = g_new0(Gpu, 1);

    gpu->pci = pci;
    gpu->name = g_strdup(name);
    gpu->drm_nodes = drm_nodes(root, pci->dir);
    gpu->types = mdev_type_ids(root, pci->dir);
    gpu->mode = mode_of(root, gpu);
    gpu->health_ignore = entry ? entry->health_ignore : 0;
    gpu->containers_only = gpu->mode == GPU_MODE_SHARED && !gpu->types[0];
    read_vram(gpu, root, entry);
    read_group(gpu, root);
    return gpu;
}

gboolean gpu_has_new_types(HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) types = gpu->types[0] ? NULL : mdev_type_ids(root, gpu->pci->dir);

    return types && types[0];
}

GStrv gpu_nodes(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    int minor = nvidia_minor(root, gpu->pci->address);

    if (minor >= 0)
        g_strv_builder_take(nodes, g_strdup_printf("/dev/nvidia%d", minor));
    for (guint render = 0; render < 2; render++)
        for (guint i = 0; gpu->drm_nodes && gpu->drm_nodes[i]; i++)
            if (g_str_has_prefix(gpu->drm_nodes[i], "renderD") == (gboolean)render)
                g_strv_builder_take(nodes, g_strconcat("/dev/dri/", gpu->drm_nodes[i], NULL));
    return g_strv_builder_end(nodes);
}

void gpu_free(Gpu *gpu)
{
    pci_device_free(gpu->pci);
    g_free(gpu->name);
    g_free(gpu->vram_source);
    g_strfreev(gpu->drm_nodes);
    g_strfreev(gpu->group);
    g_strfreev(gpu->group_in_use);
    g_strfreev(gpu->types);
    g_free(gpu);
}

#define NAME_LENGTH 256

/**
 * Memory - a GPU's, as its driver last reported it
 * @driver: NULL: none was bound
 */
typedef struct {
    char *driver;
    char *source;
    guint64 vram;
} Memory;

static Memory *memory_new(const char *driver, const char *source, guint64 vram)
{
    Memory *memory = g_new0(Memory, 1);

    memory->driver = g_strdup(driver);
    memory->source = g_strdup(source);
    memory->vram = vram;
    return memory;
}

static void memory_free(void *data)
{
    Memory *memory = data;

    g_free(memory->driver);
    g_free(memory->source);
    g_free(memory);
}

static GHashTable *memories_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, memory_free);
}

/**
 * struct Inventory
 * @entries: of GpuEntry: the last valid gpus.conf
 * @memories: address to Memory
 * @complaint: what is wrong with it now, so that it is reported once; NULL: nothing
 */
struct Inventory {
    HostRoot *root;
    struct pci_access *names;
    GPtrArray *entries;
    GHashTable *memories;
    char *complaint;
};

/*
 * libpci's messages about its files are of no use to the operator: without the files, numbers are
 * shown.
 */
static void say_nothing(char *format, ...)
{
    (void)format;
}

Inventory *inventory_new(HostRoot *root)
{
    Inventory *inventory = g_new0(Inventory, 1);

    inventory->root = host_root_ref(root);
    inventory->entries = g_ptr_array_new();
    inventory->memories = memories_new();
    /*
     * Only for its names, so without pci_init(), which would set these two but ends the process on
     * a host without PCI.
     */
    inventory->names = pci_alloc();
    inventory->names->warning = say_nothing;
    inventory->names->debug = say_nothing;
    return inventory;
}

void inventory_free(Inventory *inventory)
{
    pci_cleanup(inventory->names);
    g_ptr_array_unref(inventory->entries);
    g_hash_table_unref(inventory->memories);
    g_free(inventory->complaint);
    host_root_unref(inventory->root);
    g_free(inventory);
}

HostRoot *inventory_root(const Inventory *inventory)
{
    return inventory->root;
}

/* Data-centre GPUs without a display call themselves 3D controllers or accelerators. */
static gboolean is_gpu(const PciDevice *device)
{
    guint base = device->class >> 16;

    return base == PCI_CLASS_DISPLAY || base == PCI_CLASS_ACCELERATOR;
}

static char *name_of(const Inventory *inventory, const PciDevice *device)
{
    char name[NAME_LENGTH];

    return g_strdup(pci_lookup_name(inventory->names, name, sizeof(name),
                                    PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, (int)device->vendor,
                                    (int)device->device));
}

static void read_entries(Inventory *inventory)
{
    g_autoptr(GError) error = NULL;
    GPtrArray *entries = gpus_load(inventory->root, &error);

    if (!entries) {
        if (g_strcmp0(error->message, inventory->complaint) != 0)
            g_warning("%s", error->message);
        g_free(inventory->complaint);
        inventory->complaint = g_strdup(error->message);
        return;
    }
    g_clear_pointer(&inventory->complaint, g_free);
    g_ptr_array_unref(inventory->entries);
    inventory->entries = entries;
}

GPtrArray *inventory_entries(Inventory *inventory)
{
    read_entries(inventory);
    return g_ptr_array_ref(inventory->entries);
}

static void add_pci_gpus(const Inventory *inventory, GPtrArray *gpus)
{
    g_auto(GStrv) addresses = pci_addresses(inventory->root);

    for (guint i = 0; addresses[i]; i++) {
        PciDevice *device = pci_device_read(inventory->root, addresses[i]);
        const GpuEntry *entry = gpus_find(inventory->entries, addresses[i]);
        g_autofree char *name = NULL;

        if (!device)
            continue;
        if (!entry && !is_gpu(device)) {
            pci_device_free(device);
            continue;
        }
        name = name_of(inventory, device);
        g_ptr_array_add(gpus, gpu_new(inventory->root, device, name, entry));
    }
}

static void add_soft_gpus(const Inventory *inventory, GPtrArray *gpus)
{
    for (guint i = 0; i < inventory->entries->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(inventory->entries, i);

        if (gpu_name_is_soft(entry->name))
            g_ptr_array_add(gpus, gpu_new(inventory->root, pci_device_soft(entry->name),
                                          "GPU without a PCI device", entry));
    }
}

/* NULL: neither reported now nor, by the same driver, before; or gpus.conf has it. */
static Memory *memory_of(const Inventory *inventory, const Gpu *gpu)
{
    const GpuEntry *entry = gpus_find(inventory->entries, gpu->pci->address);
    const Memory *before = g_hash_table_lookup(inventory->memories, gpu->pci->address);

    if (entry && entry->vram_bytes)
        return NULL;
    if (gpu->vram)
        return memory_new(gpu->pci->driver, gpu->vram_source, gpu->vram);
    return before && g_strcmp0(before->driver, gpu->pci->driver) == 0
               ? memory_new(before->driver, before->source, before->vram)
               : NULL;
}

/*
 * A GPU's memory does not change while its driver is bound, but the driver may not report it for a
 * while: NVIDIA's library fails, or the service that asks it starts again.
 */
static void recall_memories(Inventory *inventory, const GPtrArray *gpus)
{
    GHashTable *memories = memories_new();

    for (guint i = 0; i < gpus->len; i++) {
        Gpu *gpu = g_ptr_array_index(gpus, i);
        Memory *memory = memory_of(inventory, gpu);

        if (!memory)
            continue;
        if (!gpu->vram) {
            gpu->vram = memory->vram;
            gpu->vram_source = g_strconcat("an earlier reading of ", memory->source, NULL);
        }
        g_hash_table_insert(memories, g_strdup(gpu->pci->address), memory);
    }
    g_hash_table_unref(inventory->memories);
    inventory->memories = memories;
}

static int by_address(const void *a, const void *b)
{
    const Gpu *left = *(const Gpu *const *)a, *right = *(const Gpu *const *)b;

    return strcmp(left->pci->address, right->pci->address);
}

GPtrArray *inventory_read(Inventory *inventory)
{
    GPtrArray *gpus = g_ptr_array_new_with_free_func((GDestroyNotify)gpu_free);

    read_entries(inventory);
    add_pci_gpus(inventory, gpus);
    add_soft_gpus(inventory, gpus);
    recall_memories(inventory, gpus);
    g_ptr_array_sort(gpus, by_address);
    return gpus;
}
