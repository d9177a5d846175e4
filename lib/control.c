/* SPDX-License-Identifier: MIT */
#include "lib/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/conf.h"
#include "lib/pci.h"
#include "lib/mdev.h"
#include "lib/types.h"

/* What would be registered with the driver for one GPU: types with numbers in place of parts. */

void plan_free(Plan *plan)
{
    g_free(plan->gpu);
    g_free(plan->driver);
    g_free(plan->vram_source);
    g_ptr_array_unref(plan->left_out);
    g_free(plan);
}

static void fill_desc(struct vgpu_type_desc *desc, const GpuType *type, const char *driver,
                      guint64 vram_bytes)
{
    g_strlcpy(desc->name, type->name, sizeof(desc->name));
    g_strlcpy(desc->description, type->description, sizeof(desc->description));
    desc->vram_bytes = vram_bytes;
    desc->window_bytes = type_window(type, driver);
    desc->weight = type->weight;
    desc->cap = type->cap;
    desc->priority = type->priority;
    desc->max_instances = type->max_instances;
    desc->scanouts = type->display;
    desc->cuda = type_has_cuda(type, driver);
}

/* Why the GPU does not get @type; NULL: it does. To be freed. */
static char *why_not(const Plan *plan, const GpuType *type, guint64 vram_bytes)
{
    g_autofree char *wanted = NULL;
    g_autofree char *there = NULL;

    if (type->cuda == TYPE_CUDA_YES && !type_has_cuda(type, plan->driver))
        return g_strdup_printf("type %s is left out: it has cuda=yes, and only GPUs of NVIDIA's "
                               "driver have CUDA",
                               type->name);
    if (vram_bytes && vram_bytes <= plan->vram_bytes)
        return NULL;
    wanted = size_format(vram_bytes);
    there = size_format(plan->vram_bytes);
    return g_strdup_printf("type %s is left out: its %s don't fit into the GPU's %s", type->name,
                           wanted, there);
}

static gboolean add_types(Plan *plan, const char *ids, const GPtrArray *types, GError **error)
{
    for (guint i = 0; i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);
        guint64 vram_bytes = amount_resolve(&type->vram, plan->vram_bytes);
        char *why;

        if (!type_matches(type, plan->gpu, ids))
            continue;
        why = why_not(plan, type, vram_bytes);
        if (why) {
            g_ptr_array_add(plan->left_out, why);
            continue;
        }
        if (plan->ntypes == VGPU_MAX_TYPES) {
            g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                        "GPU %s: more than %d types are for it; %s in %s is the first too many",
                        plan->gpu, VGPU_MAX_TYPES, type->name, type->file);
            return FALSE;
        }
        fill_desc(&plan->types[plan->ntypes++], type, plan->driver, vram_bytes);
    }
    if (plan->ntypes)
        return TRUE;
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG,
                "GPU %s: no type is for it; put one into /etc/vgpu/types.d (vgpu-types.conf(5))",
                plan->gpu);
    return FALSE;
}

Plan *plan_new(HostRoot *root, const GpuEntry *entry, const GPtrArray *types, GError **error)
{
    g_autoptr(Plan) plan = g_new0(Plan, 1);
    g_autoptr(Hardware) hardware = NULL;

    plan->gpu = g_strdup(entry->name);
    plan->left_out = g_ptr_array_new_with_free_func(g_free);
    if (!gpu_name_is_soft(entry->name)) {
        hardware = hardware_find(root, entry->name, error);
        if (!hardware)
            return NULL;
        plan->driver = g_strdup(hardware->driver);
    }
    if (entry->vram_bytes) {
        plan->vram_bytes = entry->vram_bytes;
        plan->vram_source = g_strdup("vram= in gpus.conf");
    } else if (!hardware_vram(root, hardware->dir, hardware->driver, &plan->vram_bytes,
                              &plan->vram_source, error)) {
        return NULL;
    }
    plan->capacity_bytes = (guint64)((gdouble)plan->vram_bytes * entry->overcommit) / MIB * MIB;
    if (!add_types(plan, hardware ? hardware->ids : NULL, types, error))
        return NULL;
    return g_steal_pointer(&plan);
}

#define CONTROL_NODE "/dev/vgpu-control"

int control_open(HostRoot *root, GError **error)
{
    int fd = root_open(root, CONTROL_NODE, O_RDWR, 0);
    int code = errno;
    g_autofree char *path = root_path(root, CONTROL_NODE, NULL);

    if (fd >= 0)
        return fd;
    if (code == ENOENT || code == ENXIO || code == ENODEV)
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_NO_DRIVER,
                    "%s: not there, so the driver is not loaded; modprobe mdev_vgpu", path);
    else if (code == EACCES || code == EPERM)
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED, "%s: %s; run this as root",
                    path, g_strerror(code));
    else
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED, "%s: %s", path,
                    g_strerror(code));
    return -1;
}

static void set_refused(GError **error, const char *gpu, const char *sentence)
{
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED, "GPU %s: %s", gpu, sentence);
}

/* The errors that are the same for all calls. */
static void set_common_error(GError **error, const char *gpu, int code)
{
    switch (code) {
    case EINVAL:
        set_refused(error, gpu,
                    "the driver does not accept these values; the kernel log says which "
                    "(dmesg), or driver and vgpu-registrar are of different versions");
        break;
    case ENOTTY:
        set_refused(error, gpu,
                    "not a display controller to the driver, or /dev/vgpu-control belongs to a "
                    "driver that is too old");
        break;
    case ENXIO:
        set_refused(error, gpu, "no driver is bound to it; load the vendor's driver");
        break;
    case EACCES:
    case EPERM:
        set_refused(error, gpu, "not allowed; run this as root");
        break;
    default:
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                    "GPU %s: the driver failed: %s; the kernel log may say more (dmesg)", gpu,
                    g_strerror(code));
    }
}

/* The vGPUs that are in use, named. */
static void set_busy(GError **error, HostRoot *root, const char *gpu, const char *what)
{
    g_auto(GStrv) uuids = mdev_uuids(root, gpu);
    g_autofree char *names = g_strjoinv(" ", uuids);

    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
                "GPU %s: %s while it has vGPUs: %s; detach each from its VM, then "
                "mdevctl stop --uuid=UUID",
                gpu, what, *names ? names : "(they are being removed; try again)");
}

/*
 * mdev's core removes from sysfs the vGPU that it waits for: that one cannot be named, the others
 * can.
 */
static void set_left_over(GError **error, HostRoot *root, const char *gpu)
{
    g_auto(GStrv) uuids = mdev_left_over(root, gpu);
    g_autofree char *names = g_strjoinv(" ", uuids);

    g_set_error(
        error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED,
        "GPU %s: it has vGPUs from before%s%s; its driver was unbound while VMs held them: detach "
        "them and try again (the kernel log names the one that is waited for: dmesg)",
        gpu, *names ? ": " : "", names);
}

static int call_with(int fd, unsigned long request, const Plan *plan,
                     const struct vgpu_type_desc *types)
{
    struct vgpu_control_gpu argument = {
        .argsz = sizeof(argument),
        .vram_bytes = plan->capacity_bytes,
        .ntypes = plan->ntypes,
        .type_size = sizeof(*types),
        .types = (guint64)(guintptr)types,
    };

    g_strlcpy(argument.gpu, plan->gpu, sizeof(argument.gpu));
    return control_call(fd, request, &argument);
}

/*
 * The module of 0.2.0, which stays loaded until the host is rebooted, refuses types with CUDA: its
 * vGPUs have none until then.
 */
static int call_with_types(int fd, unsigned long request, const Plan *plan)
{
    struct vgpu_type_desc types[VGPU_MAX_TYPES];
    gboolean has_cuda = FALSE;
    int result = call_with(fd, request, plan, plan->types);

    if (!result || errno != EINVAL)
        return result;
    memcpy(types, plan->types, sizeof(types));
    for (guint i = 0; i < plan->ntypes; i++) {
        has_cuda = has_cuda || types[i].cuda;
        types[i].cuda = 0;
    }
    errno = EINVAL;
    return has_cuda ? call_with(fd, request, plan, types) : result;
}

gboolean control_add(int fd, HostRoot *root, const Plan *plan, gboolean *existed, GError **error)
{
    *existed = FALSE;
    if (!call_with_types(fd, VGPU_CONTROL_ADD_GPU, plan))
        return TRUE;
    switch (errno) {
    case EEXIST:
        *existed = TRUE;
        return TRUE;
    case EBUSY:
        set_refused(error, plan->gpu,
                    "another driver offers mediated devices on it (Intel GVT-g, NVIDIA vGPU); "
                    "turn that off first");
        return FALSE;
    case EAGAIN:
        set_left_over(error, root, plan->gpu);
        return FALSE;
    case ENODEV:
        set_refused(error, plan->gpu, "the device has just gone");
        return FALSE;
    default:
        set_common_error(error, plan->gpu, errno);
        return FALSE;
    }
}

static void set_not_registered(GError **error, const char *gpu)
{
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT,
                "GPU %s: not registered; vgpu-registrar list shows which are", gpu);
}

gboolean control_update(int fd, HostRoot *root, const Plan *plan, GError **error)
{
    if (!call_with_types(fd, VGPU_CONTROL_SET_TYPES, plan))
        return TRUE;
    switch (errno) {
    case EBUSY:
        set_busy(error, root, plan->gpu, "types can't be added or taken away");
        return FALSE;
    case ENOSPC:
        set_refused(error, plan->gpu,
                    "its vGPUs were promised more memory than the new vram=; stop some of them "
                    "or leave vram= larger");
        return FALSE;
    case ENODEV:
        set_not_registered(error, plan->gpu);
        return FALSE;
    default:
        set_common_error(error, plan->gpu, errno);
        return FALSE;
    }
}

gboolean control_remove(int fd, HostRoot *root, const char *gpu, GError **error)
{
    struct vgpu_control_remove argument = {.argsz = sizeof(argument)};

    g_strlcpy(argument.gpu, gpu, sizeof(argument.gpu));
    if (!control_call(fd, VGPU_CONTROL_REMOVE_GPU, &argument))
        return TRUE;
    switch (errno) {
    case EBUSY:
        set_busy(error, root, gpu, "it can't be removed");
        return FALSE;
    case ENODEV:
        set_not_registered(error, gpu);
        return FALSE;
    default:
        set_common_error(error, gpu, errno);
        return FALSE;
    }
}

gboolean control_drain(int fd, const char *gpu, gboolean on, GError **error)
{
    struct vgpu_control_drain argument = {.argsz = sizeof(argument)};

    argument.flags = on ? VGPU_DRAIN_ON : 0;
    g_strlcpy(argument.gpu, gpu, sizeof(argument.gpu));
    if (!control_call(fd, VGPU_CONTROL_DRAIN_GPU, &argument))
        return TRUE;
    switch (errno) {
    case ENODEV:
        set_not_registered(error, gpu);
        return FALSE;
    case ENOTTY:
        set_refused(error, gpu,
                    "/dev/vgpu-control belongs to a driver that is too old to drain a GPU; install "
                    "the one of this version");
        return FALSE;
    default:
        set_common_error(error, gpu, errno);
        return FALSE;
    }
}

/* "c0ffee00-…" in the order of its digits. FALSE: it is no UUID. */
static gboolean parse_uuid(const char *text, guint8 uuid[VGPU_UUID_LEN])
{
    if (!g_uuid_string_is_valid(text))
        return FALSE;
    for (guint i = 0; i < VGPU_UUID_LEN; i++) {
        text += *text == '-';
        uuid[i] = (guint8)(g_ascii_xdigit_value(text[0]) << 4 | g_ascii_xdigit_value(text[1]));
        text += 2;
    }
    return TRUE;
}

gboolean control_announce(int fd, const char *gpu, const char *type, const char *uuid, guint64 vram,
                          GError **error)
{
    struct vgpu_control_announce argument = {.argsz = sizeof(argument), .vram_bytes = vram};

    g_strlcpy(argument.gpu, gpu, sizeof(argument.gpu));
    g_strlcpy(argument.type, type, sizeof(argument.type));
    if (!parse_uuid(uuid, argument.uuid)) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_REFUSED, "GPU %s: %s is no UUID", gpu,
                    uuid);
        return FALSE;
    }
    if (!control_call(fd, VGPU_CONTROL_ANNOUNCE, &argument))
        return TRUE;
    switch (errno) {
    case ENODEV:
    case ENOENT:
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT,
                    "GPU %s: not registered with the type %s; vgpu-registrar list shows which are",
                    gpu, type);
        return FALSE;
    case ENOSPC:
        set_refused(error, gpu, "it has less memory than a vGPU is to be given");
        return FALSE;
    case ENOTTY:
        set_refused(error, gpu,
                    "/dev/vgpu-control belongs to a driver of an older version, which makes a "
                    "vGPU with its type's memory");
        return FALSE;
    default:
        set_common_error(error, gpu, errno);
        return FALSE;
    }
}
