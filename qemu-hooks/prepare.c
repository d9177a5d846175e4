/* SPDX-License-Identifier: MIT */
#include "qemu-hooks/prepare.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "lib/bus.h"
#include "lib/gpus.h"
#include "lib/vgpu.h"
#include "lib/host_root.h"
#include "lib/mdev.h"
#include "lib/pci.h"

/**
 * Preparation
 * @link: NULL until vgpud is needed
 * @unreachable: why it could not be reached: it is waited for once, however many devices need it
 * @made: something was made for the domain
 */
typedef struct {
    HostRoot *root;
    const char *name;
    const Domain *domain;
    AgentClient *link;
    GError *unreachable;
    gboolean made;
} Preparation;

/* vgpud, if it runs; an error begins with what cannot be done without it. */
static AgentClient *reach_vgpud(Preparation *preparation, const char *what, GError **error)
{
    if (!preparation->link && !preparation->unreachable)
        preparation->link = agent_client_open_at_start(&preparation->unreachable);
    if (!preparation->link)
        g_set_error(error, preparation->unreachable->domain, preparation->unreachable->code,
                    "%s: %s", what, preparation->unreachable->message);
    return preparation->link;
}

/* For an answer about a vGPU that exists. */
#define LIST_MS 10000

#define MDEV_PARENTS "/sys/class/mdev_bus"

/* The domain that the vGPU was made for; "": none, or vgpud does not say. To be freed. */
static char *domain_of(Preparation *preparation, const char *uuid)
{
    static const char *const keys[] = {"Uuid", "Domain", NULL};
    g_autoptr(GError) error = NULL;
    AgentClient *link = reach_vgpud(preparation, "", &error);
    g_autoptr(GVariant) all = NULL;
    GVariantDict filter;

    if (link) {
        /* Without what vgpu-meter knows: libvirt waits for this. */
        g_variant_dict_init(&filter, NULL);
        g_variant_dict_insert(&filter, "Keys", "^as", keys);
        all = agent_client_get(link, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, "FindSlices",
                               g_variant_new("(@a{sv})", g_variant_dict_end(&filter)), LIST_MS,
                               &error);
    }

    for (gsize i = 0; all && i < g_variant_n_children(all); i++) {
        g_autoptr(GVariant) vgpu = g_variant_get_child_value(all, i);
        const char *its = "", *domain = "";

        g_variant_lookup(vgpu, "Uuid", "&s", &its);
        g_variant_lookup(vgpu, "Domain", "&s", &domain);
        if (g_str_equal(its, uuid))
            return g_strdup(domain);
    }
    return g_strdup("");
}

/*
 * virt-clone copies a domain's requests with their UUIDs. Two domains must not have one vGPU: the
 * end, or a failed start, of the first would take it from the second.
 */
static gboolean check_domain(Preparation *preparation, const char *uuid, GError **error)
{
    g_autofree char *other = domain_of(preparation, uuid);

    if (!*other || g_str_equal(other, preparation->name))
        return TRUE;
    g_set_error(
        error, AGENT_ERROR, AGENT_ERROR_IN_USE,
        "vGPU %s, which the domain's metadata requests, is domain %s's: a clone has its "
        "original's UUIDs; run \"vgpuctl domain prepare %s --replace\" with the type that it "
        "should have",
        uuid, other, preparation->name);
    return FALSE;
}

static gboolean make_vgpu(Preparation *preparation, const DomainRequest *request, GError **error)
{
    g_autofree char *what =
        g_strdup_printf("cannot make vGPU %s, which the domain's metadata requests", request->uuid);
    AgentClient *link = reach_vgpud(preparation, what, error);
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(request->dict);
    g_autoptr(GError) cause = NULL;
    GVariant *asked;

    if (!link)
        return FALSE;
    g_variant_dict_insert(&dict, "Domain", "s", preparation->name);
    g_variant_dict_insert(&dict, "Door", "s", "vm");
    asked = g_variant_dict_end(&dict);
    if (!agent_client_call(link, "CreateSlices",
                           g_variant_new("(@aa{sv})", g_variant_new_array(NULL, &asked, 1)),
                           &cause)) {
        /* Made for another domain since it was looked for. */
        if (check_domain(preparation, request->uuid, error))
            g_propagate_prefixed_error(error, g_steal_pointer(&cause), "%s: ", what);
        return FALSE;
    }
    preparation->made = TRUE;
    return TRUE;
}

/* Other vendors' definitions are left alone: libvirt reports their errors. */
static gboolean start_vgpu(Preparation *preparation, const char *uuid, GError **error)
{
    g_autofree char *what = g_strdup_printf("cannot start vGPU %s, which is defined", uuid);
    AgentClient *link = reach_vgpud(preparation, what, error);
    g_autoptr(GError) cause = NULL;

    if (!link)
        return FALSE;
    if (agent_client_call(link, "StartSlice",
                          g_variant_new("(s@a{sv})", uuid, g_variant_new("a{sv}", NULL)), &cause) ||
        g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_prefixed_error(error, g_steal_pointer(&cause), "%s: ", what);
    return FALSE;
}

/* VFIO would refuse one that another VM has, with a less helpful message. */
static gboolean check_closed(const Preparation *preparation, const char *uuid, GError **error)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(preparation->root, uuid);

    if (!vgpu || g_str_equal(vgpu->device, "closed"))
        return TRUE;
    g_set_error(
        error, AGENT_ERROR, AGENT_ERROR_IN_USE,
        "vGPU %s is open in another VM (\"vgpuctl slice list\" names it); detach it there first",
        uuid);
    return FALSE;
}

/* There is a GPU of ours, and no other driver's, for which something else may yet make it. */
static gboolean is_ours_alone(HostRoot *root)
{
    g_auto(GStrv) parents = sysfs_list(root, MDEV_PARENTS);

    for (guint i = 0; parents[i]; i++) {
        g_autofree char *dir = g_build_filename(MDEV_PARENTS, parents[i], NULL);
        g_auto(GStrv) types = mdev_type_ids(root, dir);

        if (!types[0])
            return FALSE;
    }
    return parents[0] != NULL;
}

/*
 * Without this libvirt would only say that it is not found. A domain is restored so after
 * "managedsave" if "vgpuctl attach" had made its vGPU, which went with the VM.
 */
static gboolean check_unknown(const Preparation *preparation, const char *uuid, GError **error)
{
    if (!is_ours_alone(preparation->root))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                "there is no vGPU %s, and neither the domain's metadata nor a definition says how "
                "to make it; run \"vgpuctl slice create TYPE --door vm --uuid %s\" first, with the "
                "type that "
                "it had, or take its <hostdev> out of the domain",
                uuid, uuid);
    return FALSE;
}

static gboolean provide_mdev(Preparation *preparation, const char *uuid, GError **error)
{
    const DomainRequest *request = domain_request(preparation->domain, uuid);
    g_autofree char *dir = mdev_path(uuid);
    g_autoptr(Definition) definition = NULL;

    if (root_has(preparation->root, dir))
        return (!request || check_domain(preparation, uuid, error)) &&
               check_closed(preparation, uuid, error);
    if (request)
        return make_vgpu(preparation, request, error);
    definition = definition_find(preparation->root, uuid);
    return definition ? start_vgpu(preparation, uuid, error)
                      : check_unknown(preparation, uuid, error);
}

/*
 * A GPU that VMs or containers share, and not (yet) one VM's as a whole. Without the hook libvirt
 * would unbind its driver, and take the GPU from all that run.
 */
static gboolean is_shared(const Preparation *preparation, const char *address)
{
    g_autoptr(PciDevice) device = pci_device_read(preparation->root, address);
    g_auto(GStrv) types = NULL;

    if (!device || g_strcmp0(device->driver, "vfio-pci") == 0)
        return FALSE;
    if (device->driver && containers_only_is(preparation->root, address))
        return TRUE;
    types = mdev_type_ids(preparation->root, device->dir);
    return types[0] != NULL;
}

static gboolean provide_pci(Preparation *preparation, const DomainPci *pci, GError **error)
{
    g_autofree char *what =
        g_strdup_printf("cannot pass GPU %s through: it is shared", pci->address);
    AgentClient *link;

    if (!is_shared(preparation, pci->address))
        return TRUE;
    if (!pci->managed) {
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_IN_USE,
            "%s; run \"vgpuctl gpu mode %s passthrough\" first, or set managed='yes' in its "
            "<hostdev>",
            what, pci->address);
        return FALSE;
    }
    link = reach_vgpud(preparation, what, error);
    if (!link)
        return FALSE;
    if (agent_client_call_gpu(
            link, pci->address, "SetMode",
            g_variant_new("(s@a{sv})", "passthrough", g_variant_new("a{sv}", NULL)), error))
        return TRUE;
    g_prefix_error(error, "%s: ", what);
    return FALSE;
}

static gboolean provide_all(Preparation *preparation, GError **error)
{
    const Domain *domain = preparation->domain;

    for (guint i = 0; domain->mdevs[i]; i++)
        if (!provide_mdev(preparation, domain->mdevs[i], error))
            return FALSE;
    for (guint i = 0; i < domain->pci->len; i++)
        if (!provide_pci(preparation, g_ptr_array_index(domain->pci, i), error))
            return FALSE;
    return TRUE;
}

/* Our vGPUs; all their engines together have the time limit of one. */
static gboolean wait_for_engines(const Preparation *preparation, GError **error)
{
    gint64 end = g_get_monotonic_time() + (gint64)VGPU_READY_TIMEOUT_MS * 1000;

    for (guint i = 0; preparation->domain->mdevs[i]; i++) {
        const char *uuid = preparation->domain->mdevs[i];
        gint64 left = (end - g_get_monotonic_time()) / 1000;
        g_autoptr(Vgpu) vgpu = vgpu_read(preparation->root, uuid);

        if (vgpu && !vgpu_wait_ready(preparation->root, uuid, (guint)MAX(left, 0), error))
            return FALSE;
    }
    return TRUE;
}

#define QEMU_CONF  "/etc/libvirt/qemu.conf"
#define MEMORY_DIR "/var/lib/libvirt/qemu/ram"

/* libvirt's memory_backing_dir. */
static char *memory_dir(HostRoot *root)
{
    g_autofree char *conf = root_read(root, QEMU_CONF, NULL);
    g_autoptr(GRegex) setting =
        g_regex_new("^\\s*memory_backing_dir\\s*=\\s*\"([^\"]*)\"", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;

    if (conf && g_regex_match(setting, conf, 0, &match))
        return g_match_info_fetch(match, 1);
    return g_strdup(MEMORY_DIR);
}

/*
 * The kernel pins no pages of a disk's file for long, as a vGPU needs the guest's. The guest would
 * start, and its driver find no GPU. libvirt may make the directory later.
 */
static gboolean is_on_disk(HostRoot *root, const char *dir)
{
    g_autofree char *at = root_path(root, dir, NULL);
    struct statfs file_system;

    while (statfs(at, &file_system) < 0) {
        g_autofree char *below = g_steal_pointer(&at);

        if (errno != ENOENT)
            return FALSE;
        at = g_path_get_dirname(below);
    }
    return file_system.f_type != TMPFS_MAGIC && file_system.f_type != RAMFS_MAGIC &&
           file_system.f_type != HUGETLBFS_MAGIC;
}

static gboolean check_memory(const Preparation *preparation, GError **error)
{
    g_autofree char *dir = memory_dir(preparation->root);

    if (!preparation->domain->memory_in_file || !is_on_disk(preparation->root, dir))
        return TRUE;
    for (guint i = 0; preparation->domain->mdevs[i]; i++) {
        const char *uuid = preparation->domain->mdevs[i];
        g_autoptr(Vgpu) vgpu = vgpu_read(preparation->root, uuid);

        if (!vgpu)
            continue;
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                    "vGPU %s cannot use the domain's memory, which would be files on a disk in %s: "
                    "set <source type='memfd'/> in its <memoryBacking>, or memory_backing_dir to a "
                    "directory on a tmpfs in " QEMU_CONF,
                    uuid, dir);
        return FALSE;
    }
    return TRUE;
}

static void undo_preparation(const Preparation *preparation)
{
    g_autoptr(GError) error = NULL;

    if (!agent_client_call(preparation->link, "ReleaseDomain",
                           g_variant_new("(s)", preparation->name), &error))
        g_printerr("vgpu-qemu-hook: cannot remove what was made for domain %s: %s\n",
                   preparation->name, error->message);
}

gboolean prepare_domain(HostRoot *root, const char *name, const Domain *domain, GError **error)
{
    Preparation preparation = {.root = root, .name = name, .domain = domain};
    gboolean ready = provide_all(&preparation, error) && check_memory(&preparation, error) &&
                     wait_for_engines(&preparation, error);

    if (!ready && preparation.made)
        undo_preparation(&preparation);
    g_clear_pointer(&preparation.link, agent_client_free);
    g_clear_error(&preparation.unreachable);
    return ready;
}
