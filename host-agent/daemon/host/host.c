/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/host.h"

#include <errno.h>
#include <glib-unix.h>
#include <libudev.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/cards.h"
#include "lib/gpu_identity.h"
#include "lib/nvidia_readings.h"
#include "lib/pci.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"

/* A GPU on D-Bus. */

/*
 * "soft_NAME" with every character that is not a letter or digit in hexadecimal, so that all are
 * different.
 */
static char *soft_object_name(const char *name)
{
    GString *escaped = g_string_new("soft_");

    for (; *name; name++) {
        if (g_ascii_isalnum(*name))
            g_string_append_c(escaped, *name);
        else
            g_string_append_printf(escaped, "_%02x", (guint)*name);
    }
    return g_string_free(escaped, FALSE);
}

char *gpu_object_path(const char *address)
{
    g_autofree char *name = gpu_name_is_soft(address)
                                ? soft_object_name(address + strlen(GPU_SOFT_PREFIX))
                                : g_strdelimit(g_strdup(address), ":.", '_');

    return g_strconcat(VGPU_GPU_PATH, "/", name, NULL);
}

/* Properties that modules set when they have a value. */
static void set_defaults(VgpuGpu *interface, const Gpu *gpu)
{
    static const char *const none[] = {NULL};

    vgpu_gpu_set_healthy(interface, TRUE);
    vgpu_gpu_set_health_reasons(interface, none);
    vgpu_gpu_set_health_grade(interface, "good");
    vgpu_gpu_set_health_findings(interface, g_variant_new("aa{sv}", NULL));
    vgpu_gpu_set_partitions(interface, none);
    vgpu_gpu_set_switching(interface, "");
    vgpu_gpu_set_pool(interface, GPU_POOL_LOCAL);
    vgpu_gpu_set_pool_source(interface, "");
    vgpu_gpu_set_mode_source(interface, "");
    vgpu_gpu_set_vulkan_device(interface, "");
    vgpu_gpu_set_vulkan_missing(interface, "");
    vgpu_gpu_set_vulkan_driver(interface, "");
    vgpu_gpu_set_vulkan_api(interface, "");
    vgpu_gpu_set_vulkan_features(interface, none);
    vgpu_gpu_set_wanted_mode(interface, gpu_mode_name(gpu->mode));
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void set_pci(VgpuGpu *interface, const PciDevice *pci)
{
    vgpu_gpu_set_address(interface, pci->address);
    vgpu_gpu_set_vendor_id(interface, (guint16)pci->vendor);
    vgpu_gpu_set_device_id(interface, (guint16)pci->device);
    vgpu_gpu_set_driver(interface, or_empty(pci->driver));
    vgpu_gpu_set_numa_node(interface, pci->numa_node);
    vgpu_gpu_set_iommu_group(interface, or_empty(pci->iommu_group));
    vgpu_gpu_set_link_speed(interface, pci->link.speed);
    vgpu_gpu_set_link_width(interface, pci->link.width);
    vgpu_gpu_set_link_speed_max(interface, pci->max_link.speed);
    vgpu_gpu_set_link_width_max(interface, pci->max_link.width);
    vgpu_gpu_set_link_bandwidth(interface, pci_link_bandwidth(&pci->max_link));
    vgpu_gpu_set_sriov_total(interface, pci->total_vfs);
    vgpu_gpu_set_sriov_active(interface, pci->vfs);
    vgpu_gpu_set_physical_function(interface, or_empty(pci->physfn));
}

/* What clusters know it by. */
static void set_identity(VgpuGpu *interface, HostRoot *root, const Gpu *gpu)
{
    g_autofree char *model = gpu_model(gpu->name, gpu->pci, gpu->vram);
    g_autofree char *uuid = gpu_uuid(root, gpu->pci);
    g_autofree char *cpus = gpu_local_cpus(root, gpu->pci);
    g_autofree char *pcie_root = gpu_pcie_root(gpu->pci);
    g_auto(GStrv) nodes = gpu_nodes(root, gpu);
    guint64 flops, bandwidth;

    nvidia_speeds(root, gpu->pci->address, &flops, &bandwidth);
    vgpu_gpu_set_flops(interface, flops);
    vgpu_gpu_set_memory_bandwidth(interface, bandwidth);
    vgpu_gpu_set_model(interface, model);
    vgpu_gpu_set_uuid(interface, uuid);
    vgpu_gpu_set_local_cpus(interface, cpus);
    vgpu_gpu_set_pcie_root(interface, pcie_root);
    vgpu_gpu_set_nodes(interface, (const char *const *)nodes);
}

/* Sets the GPU's current properties; changes are signalled on the bus. */
static void gpu_object_update(VgpuObjectSkeleton *object, HostRoot *root, const Gpu *gpu)
{
    g_autoptr(VgpuGpu) interface = vgpu_object_get_gpu(VGPU_OBJECT(object));

    set_pci(interface, gpu->pci);
    set_identity(interface, root, gpu);
    vgpu_gpu_set_name(interface, gpu->name);
    vgpu_gpu_set_mode(interface, gpu_mode_name(gpu->mode));
    vgpu_gpu_set_vram(interface, gpu->vram);
    vgpu_gpu_set_vram_source(interface, or_empty(gpu->vram_source));
    vgpu_gpu_set_iommu_group_members(interface, (const char *const *)gpu->group);
    vgpu_gpu_set_iommu_group_in_use(interface, (const char *const *)gpu->group_in_use);
    vgpu_gpu_set_drm_nodes(interface, (const char *const *)gpu->drm_nodes);
    vgpu_gpu_set_containers_only(interface, gpu->containers_only);
    vgpu_gpu_set_mdev_types(interface, (const char *const *)gpu->types);
}

/* A new object with the GPU's interface, not exported yet. */
static VgpuObjectSkeleton *gpu_object_new(HostRoot *root, const Gpu *gpu)
{
    g_autofree char *path = gpu_object_path(gpu->pci->address);
    VgpuObjectSkeleton *object = vgpu_object_skeleton_new(path);
    g_autoptr(VgpuGpu) interface = vgpu_gpu_skeleton_new();

    set_defaults(interface, gpu);
    vgpu_object_skeleton_set_gpu(object, interface);
    gpu_object_update(object, root, gpu);
    return object;
}

typedef struct {
    void (*added)(VgpuGpu *gpu, void *data);
    void (*changed)(void *data);
    void *data;
} Watch;

struct Host {
    Inventory *inventory;
    Db *db;
    VgpuStates *vgpus;
    Arbiters *arbiters;
    GPtrArray *gpus;
    GHashTable *objects; /* address to VgpuObjectSkeleton */
    GArray *watches;     /* of Watch */
    VgpuManager *interface;
    GDBusObjectManagerServer *objects_server;
    HostUsersFunc users;
    void *users_data;
    HostDoorFunc door;
};

static guint gpu_links(const Host *host, const Gpu *from, const Gpu *to)
{
    return nvidia_links(host_root(host), from->pci->address, to->pci->address);
}

/* Two GPUs are nearer by NVLink than by any bridge, the nearer the more links they have. */
#define BRIDGE_STEP 64u

guint host_distance(const Host *host, const Gpu *from, const Gpu *to)
{
    Distance distance = topology_distance(from->pci, to->pci);
    guint links = distance == DISTANCE_SELF ? 0 : gpu_links(host, from, to);

    return links ? BRIDGE_STEP - MIN(links, BRIDGE_STEP - 1) : distance * BRIDGE_STEP;
}

/* In the words of "nvidia-smi topo". */
static GVariant *distance_row(const Host *host, const Gpu *from)
{
    const GPtrArray *gpus = host->gpus;
    GVariantBuilder row;

    g_variant_builder_init(&row, G_VARIANT_TYPE_STRING_ARRAY);
    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *to = g_ptr_array_index(gpus, i);

        guint links = from == to ? 0 : gpu_links(host, from, to);
        g_autofree char *word =
            links ? g_strdup_printf("NV%u", links)
                  : g_strdup(distance_name(topology_distance(from->pci, to->pci)));

        g_variant_builder_add(&row, "s", word);
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
        g_variant_builder_add_value(&distances, distance_row(host, gpu));
    }
    list = g_strv_builder_end(addresses);
    call_answer(invocation, g_variant_new("(^as@aas)", list, g_variant_builder_end(&distances)));
}

static VgpuManager *manager_new(Host *host)
{
    VgpuManager *interface = vgpu_manager_skeleton_new();

    vgpu_manager_set_version(interface, VGPU_VERSION);
    authority_answer(interface, "handle-get-topology", ACTION_SEE, topology_authorized, NULL, host);
    return interface;
}

Host *host_new(Inventory *inventory, Db *db)
{
    Host *host = g_new0(Host, 1);

    host->inventory = inventory;
    host->db = db;
    host->vgpus = vgpu_states_new(inventory_root(inventory));
    host->arbiters = arbiters_new(inventory_root(inventory));
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
    vgpu_states_free(host->vgpus);
    arbiters_free(host->arbiters);
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

VgpuStates *host_vgpu_states(const Host *host)
{
    return host->vgpus;
}

Arbiters *host_arbiters(const Host *host)
{
    return host->arbiters;
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

const Gpu *host_gpu_at(const Host *host, const char *path)
{
    for (guint i = 0; i < host->gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(host->gpus, i);
        g_autofree char *its = gpu_object_path(gpu->pci->address);

        if (g_str_equal(its, path))
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

void host_set_door(Host *host, HostDoorFunc func)
{
    host->door = func;
}

SliceTransport host_door_of(const Host *host, const char *gpu)
{
    return host->door ? host->door(host_root(host), gpu) : SLICE_TRANSPORT_GUARDED;
}

GStrv host_with_users(const Host *host, const char *gpu, const GStrv users)
{
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();

    g_strv_builder_addv(all, (const char **)users);
    if (host->users)
        host->users(gpu, all, host->users_data);
    return g_strv_builder_end(all);
}

void host_event(Host *host, const char *kind, const char *gpu, const char *vgpu, const char *format,
                ...)
{
    g_autofree char *said = NULL;
    g_autofree char *text = NULL;
    va_list values;

    va_start(values, format);
    said = g_strdup_vprintf(format, values);
    va_end(values);
    text = g_utf8_make_valid(said, -1);
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
        gpu_object_update(object, host_root(host), gpu);
        return;
    }
    g_message("GPU %s: %s, mode %s", gpu->pci->address, gpu->name, gpu_mode_name(gpu->mode));
    object = gpu_object_new(host_root(host), gpu);
    tell_added(host, object);
    g_dbus_object_manager_server_export(host->objects_server, G_DBUS_OBJECT_SKELETON(object));
    g_hash_table_insert(host->objects, g_strdup(gpu->pci->address), object);
}

static void tell_other_card(const PciDevice *card, const char *was, void *host)
{
    host_event(
        host, "other-card", card->address, NULL,
        "GPU %s is another card than before (%04x:%04x, and it was %s): its mode, slices and "
        "what gpus.conf says of this address are now this card's; [gpu uuid=...] goes by "
        "the card",
        card->address, card->vendor, card->device, was);
}

static void note_cards(Host *host)
{
    g_autoptr(GPtrArray) cards = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < host->gpus->len; i++)
        g_ptr_array_add(cards, ((const Gpu *)g_ptr_array_index(host->gpus, i))->pci);
    if (!card_note(host_root(host), cards, tell_other_card, host, &error))
        g_message("cannot note which card is at which address: %s", error->message);
}

void host_refresh(Host *host)
{
    g_ptr_array_unref(host->gpus);
    host->gpus = inventory_read(host->inventory);
    note_cards(host);
    remove_gone(host);
    for (guint i = 0; i < host->gpus->len; i++)
        add_or_update(host, g_ptr_array_index(host->gpus, i));
    tell_changed(host);
}

void host_catch_up(Host *host)
{
    for (guint i = 0; i < host->gpus->len; i++) {
        if (gpu_has_new_types(host_root(host), g_ptr_array_index(host->gpus, i))) {
            host_refresh(host);
            return;
        }
    }
}

/* Reports possible changes of GPUs, their drivers or their devices, from udev's events. */

/* A GPU that appears or changes its driver causes tens of events within this time. */
#define SETTLE_MS 200
/* Other PCI devices matter if they share a GPU's IOMMU group. A network card may add hundreds. */
#define OTHERS_SETTLE_MS 5000

#define RECEIVE_BYTES (16 * 1024 * 1024)

struct Hotplug {
    struct udev *udev;
    struct udev_monitor *monitor;
    guint source;
    guint settle;
    guint settle_ms; /* of @settle */
    gboolean lost;
    void (*changed)(gboolean lost, void *data);
    void (*vgpu_changed)(const char *uuid, void *data);
    void *data;
};

static gboolean tell_refresh(void *data)
{
    Hotplug *hotplug = data;
    gboolean lost = hotplug->lost;

    hotplug->settle = 0;
    hotplug->lost = FALSE;
    hotplug->changed(lost, hotplug->data);
    return G_SOURCE_REMOVE;
}

static void refresh_within(Hotplug *hotplug, guint ms)
{
    if (hotplug->settle && hotplug->settle_ms <= ms)
        return;
    g_clear_handle_id(&hotplug->settle, g_source_remove);
    hotplug->settle = g_timeout_add(ms, tell_refresh, hotplug);
    hotplug->settle_ms = ms;
}

/* A PCI device that is no GPU. udev writes the class as "30000", without zeros in front. */
static gboolean is_other(struct udev_device *device)
{
    const char *class = udev_device_get_property_value(device, "PCI_CLASS");
    guint64 base = class ? g_ascii_strtoull(class, NULL, 16) >> 16 : 0;

    return class && base != PCI_CLASS_DISPLAY && base != PCI_CLASS_ACCELERATOR;
}

/* A vGPU's events do not change the GPUs, so these need not be read again. */
static void take_event(Hotplug *hotplug, struct udev_device *device, GPtrArray *vgpus)
{
    const char *name = udev_device_get_sysname(device);

    if (g_strcmp0(udev_device_get_subsystem(device), "mdev") != 0)
        refresh_within(hotplug, is_other(device) ? OTHERS_SETTLE_MS : SETTLE_MS);
    else if (!g_ptr_array_find_with_equal_func(vgpus, name, g_str_equal, NULL))
        g_ptr_array_add(vgpus, g_strdup(name));
}

static gboolean event_came(int fd, GIOCondition condition, void *data)
{
    Hotplug *hotplug = data;
    /* Each once: making one causes ten events. */
    g_autoptr(GPtrArray) vgpus = g_ptr_array_new_with_free_func(g_free);
    struct udev_device *device;
    gboolean is_lossy;

    (void)fd;
    (void)condition;
    errno = 0;
    while ((device = udev_monitor_receive_device(hotplug->monitor))) {
        take_event(hotplug, device, vgpus);
        udev_device_unref(device);
        errno = 0;
    }
    is_lossy = errno == ENOBUFS;
    for (guint i = 0; i < vgpus->len; i++)
        hotplug->vgpu_changed(g_ptr_array_index(vgpus, i), hotplug->data);
    /* Events came faster than they were read: the lost ones may concern anything. */
    if (is_lossy) {
        g_message("events of udev were lost; all GPUs and vGPUs are read again");
        hotplug->lost = TRUE;
        refresh_within(hotplug, SETTLE_MS);
    }
    return G_SOURCE_CONTINUE;
}

static int subscribe_to_udev(struct udev_monitor *monitor)
{
    static const char *const subsystems[] = {"pci", "drm", "mdev_bus", "mdev", "misc"};
    int ret = 0;

    for (guint i = 0; ret >= 0 && i < G_N_ELEMENTS(subsystems); i++)
        ret = udev_monitor_filter_add_match_subsystem_devtype(monitor, subsystems[i], NULL);
    /*
     * The maximum that the kernel allows (net.core.rmem_max): a thousand vGPUs may be made at once.
     */
    udev_monitor_set_receive_buffer_size(monitor, RECEIVE_BYTES);
    return ret < 0 ? ret : udev_monitor_enable_receiving(monitor);
}

Hotplug *hotplug_new(void (*changed)(gboolean lost, void *data),
                     void (*vgpu_changed)(const char *uuid, void *data), void *data, GError **error)
{
    g_autoptr(Hotplug) hotplug = g_new0(Hotplug, 1);
    int ret = -ENOMEM;

    hotplug->changed = changed;
    hotplug->vgpu_changed = vgpu_changed;
    hotplug->data = data;
    hotplug->udev = udev_new();
    if (hotplug->udev)
        hotplug->monitor = udev_monitor_new_from_netlink(hotplug->udev, "udev");
    if (hotplug->monitor)
        ret = subscribe_to_udev(hotplug->monitor);
    if (ret < 0) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-ret),
                    "can't listen to udev's events: %s", g_strerror(-ret));
        return NULL;
    }
    hotplug->source =
        g_unix_fd_add(udev_monitor_get_fd(hotplug->monitor), G_IO_IN, event_came, hotplug);
    return g_steal_pointer(&hotplug);
}

void hotplug_free(Hotplug *hotplug)
{
    if (hotplug->source)
        g_source_remove(hotplug->source);
    if (hotplug->settle)
        g_source_remove(hotplug->settle);
    if (hotplug->monitor)
        udev_monitor_unref(hotplug->monitor);
    if (hotplug->udev)
        udev_unref(hotplug->udev);
    g_free(hotplug);
}
