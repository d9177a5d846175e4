/* SPDX-License-Identifier: MIT */
/* The host's side of mediated devices. */
#include "mdev_host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CONTROL_NODE      "/dev/vgpu-control"
#define MDEV_BUS_CLASS    "/sys/class/mdev_bus"
#define MDEV_DEVICES      "/sys/bus/mdev/devices"
#define SOFT_PREFIX       "soft:"
#define MODULE_PARAMETERS "/sys/module/mdev_vgpu/parameters"
#define ENGINE_TIMEOUT_MS 30000
#define RESET_TIMEOUT_MS  10000

struct vgpu_type_desc mdev_type(const char *name, uint64_t vram_bytes, uint64_t window_bytes)
{
    struct vgpu_type_desc type = {
        .vram_bytes = vram_bytes,
        .window_bytes = window_bytes,
        .weight = 100,
        .cap = 100,
    };

    g_strlcpy(type.name, name, sizeof(type.name));
    g_strlcpy(type.description, "for tests", sizeof(type.description));
    return type;
}

bool mdev_host_module_loaded(void)
{
    return access(CONTROL_NODE, F_OK) == 0;
}

int mdev_control_ioctl(unsigned long request, void *arg)
{
    int fd = open(CONTROL_NODE, O_RDWR | O_CLOEXEC);
    int ret;

    if (fd < 0)
        return -errno;
    ret = ioctl(fd, request, arg) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

static int control_gpu(unsigned long request, const char *gpu, uint64_t vram_bytes,
                       const struct vgpu_type_desc *types, unsigned ntypes)
{
    struct vgpu_control_gpu arg = {
        .argsz = sizeof(arg),
        .vram_bytes = vram_bytes,
        .ntypes = ntypes,
        .type_size = sizeof(*types),
        .types = (uintptr_t)types,
    };

    g_strlcpy(arg.gpu, gpu, sizeof(arg.gpu));
    return mdev_control_ioctl(request, &arg);
}

int mdev_gpu_add(const char *gpu, uint64_t vram_bytes, const struct vgpu_type_desc *types,
                 unsigned ntypes)
{
    return control_gpu(VGPU_CONTROL_ADD_GPU, gpu, vram_bytes, types, ntypes);
}

int mdev_gpu_set_types(const char *gpu, uint64_t vram_bytes, const struct vgpu_type_desc *types,
                       unsigned ntypes)
{
    return control_gpu(VGPU_CONTROL_SET_TYPES, gpu, vram_bytes, types, ntypes);
}

int mdev_gpu_remove(const char *gpu)
{
    struct vgpu_control_remove arg = {.argsz = sizeof(arg)};

    g_strlcpy(arg.gpu, gpu, sizeof(arg.gpu));
    return mdev_control_ioctl(VGPU_CONTROL_REMOVE_GPU, &arg);
}

int mdev_gpu_drain(const char *gpu, bool on)
{
    struct vgpu_control_drain arg = {.argsz = sizeof(arg), .flags = on ? VGPU_DRAIN_ON : 0};

    g_strlcpy(arg.gpu, gpu, sizeof(arg.gpu));
    return mdev_control_ioctl(VGPU_CONTROL_DRAIN_GPU, &arg);
}

int mdev_announce(const char *gpu, const char *type, const char *uuid, uint64_t vram_bytes)
{
    struct vgpu_control_announce arg = {.argsz = sizeof(arg), .vram_bytes = vram_bytes};
    g_autofree char *dir = mdev_type_dir(gpu, type);
    g_autofree char *name = g_path_get_basename(dir ? dir : type);

    g_strlcpy(arg.gpu, gpu, sizeof(arg.gpu));
    g_strlcpy(arg.type, name, sizeof(arg.type));
    for (int i = 0; i < VGPU_UUID_LEN; i++) {
        uuid += *uuid == '-';
        arg.uuid[i] = g_ascii_xdigit_value(uuid[0]) << 4 | g_ascii_xdigit_value(uuid[1]);
        uuid += 2;
    }
    return mdev_control_ioctl(VGPU_CONTROL_ANNOUNCE, &arg);
}

static const char *parent_name(const char *gpu)
{
    return g_str_has_prefix(gpu, SOFT_PREFIX) ? gpu + strlen(SOFT_PREFIX) : gpu;
}

char *mdev_type_dir(const char *gpu, const char *type)
{
    g_autofree char *parent =
        g_build_filename(MDEV_BUS_CLASS, parent_name(gpu), "mdev_supported_types", NULL);
    g_autofree char *suffix = g_strconcat("-", type, NULL);
    g_autoptr(GDir) dir = g_dir_open(parent, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, suffix))
            return g_build_filename(parent, name, NULL);
    }
    return NULL;
}

char *mdev_type_attr(const char *gpu, const char *type, const char *name)
{
    g_autofree char *dir = mdev_type_dir(gpu, type);
    g_autofree char *path = dir ? g_build_filename(dir, name, NULL) : NULL;
    char *text = NULL;

    if (!path || !g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}

int mdev_type_available(const char *gpu, const char *type)
{
    g_autofree char *text = mdev_type_attr(gpu, type, "available_instances");

    return text ? (int)g_ascii_strtoll(text, NULL, 10) : -ENOENT;
}

char *mdev_uuid_new(void)
{
    char *text = NULL;

    /* Not g_uuid_string_random(): forked processes would all get the same. */
    g_assert_true(g_file_get_contents("/proc/sys/kernel/random/uuid", &text, NULL, NULL));
    return g_strchomp(text);
}

int sysfs_write(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int ret;

    if (fd < 0)
        return -errno;
    ret = write(fd, value, strlen(value)) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

int mdev_create(const char *gpu, const char *type, const char *uuid)
{
    g_autofree char *dir = mdev_type_dir(gpu, type);
    g_autofree char *path = dir ? g_build_filename(dir, "create", NULL) : NULL;

    return path ? sysfs_write(path, uuid) : -ENOENT;
}

bool mdev_exists(const char *uuid)
{
    g_autofree char *path = g_build_filename(MDEV_DEVICES, uuid, NULL);

    return access(path, F_OK) == 0;
}

int mdev_remove(const char *uuid)
{
    g_autofree char *path = g_build_filename(MDEV_DEVICES, uuid, "remove", NULL);

    return sysfs_write(path, "1");
}

char *mdev_attr(const char *uuid, const char *name)
{
    g_autofree char *path = g_build_filename(MDEV_DEVICES, uuid, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}

int mdev_attr_set(const char *uuid, const char *name, const char *value)
{
    g_autofree char *path = g_build_filename(MDEV_DEVICES, uuid, name, NULL);

    return sysfs_write(path, value);
}

uint64_t mdev_attr_u64(const char *uuid, const char *name)
{
    g_autofree char *text = mdev_attr(uuid, name);

    return text ? g_ascii_strtoull(text, NULL, 0) : UINT64_MAX;
}

static int set_parameter(const char *name, unsigned value)
{
    g_autofree char *path = g_build_filename(MODULE_PARAMETERS, name, NULL);
    g_autofree char *text = g_strdup_printf("%u", value);

    return sysfs_write(path, text);
}

int mdev_set_engine_timeout_ms(unsigned ms)
{
    return set_parameter("engine_timeout_ms", ms);
}

int mdev_set_reset_timeout_ms(unsigned ms)
{
    return set_parameter("reset_timeout_ms", ms);
}

static int remove_vgpus(const char *parent)
{
    g_autoptr(GDir) dir = g_dir_open(MDEV_DEVICES, 0, NULL);
    const char *uuid;
    int ret = 0;

    while (dir && (uuid = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename(MDEV_DEVICES, uuid, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);
        g_autofree char *part = g_strdup_printf("/%s/", parent);
        int err;

        if (!target || !strstr(target, part))
            continue;
        err = mdev_remove(uuid);
        if (err < 0) {
            g_printerr("# removing vGPU %s: %s\n", uuid, g_strerror(-err));
            ret = err;
        }
    }
    return ret;
}

int mdev_host_cleanup(const char *prefix)
{
    g_autoptr(GDir) dir = g_dir_open(MDEV_BUS_CLASS, 0, NULL);
    g_autoptr(GPtrArray) parents = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    int ret = 0;

    mdev_set_engine_timeout_ms(ENGINE_TIMEOUT_MS);
    mdev_set_reset_timeout_ms(RESET_TIMEOUT_MS);
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_prefix(name, prefix))
            g_ptr_array_add(parents, g_strdup(name));
    }
    for (unsigned i = 0; i < parents->len; i++) {
        const char *parent = parents->pdata[i];
        g_autofree char *gpu = g_strconcat(SOFT_PREFIX, parent, NULL);
        int err = remove_vgpus(parent);

        if (!err)
            err = mdev_gpu_remove(gpu);
        if (err < 0) {
            g_printerr("# removing GPU %s: %s\n", gpu, g_strerror(-err));
            ret = err;
        }
    }
    return ret;
}
