/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/cuda_door.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "host-agent/model/slice.h"
#include "lib/hardware.h"

#define DOOR_DIR "/lib/mdev-vgpu"

/* Of the door, in FOLDER/cuda. */
static const char *const door_files[] = {NVIDIA_CUDA, "libcuda.so", NVIDIA_ML, "libnvidia-ml.so"};

/* Of the driver, besides its libraries: for Vulkan, and for people. */
static const char *const program_files[] = {"/usr/share/vulkan/icd.d/nvidia_icd.json",
                                            "/etc/vulkan/icd.d/nvidia_icd.json",
                                            "/usr/bin/nvidia-smi"};

static char *find_folder(HostRoot *root)
{
    static const char *const places[] = {"/usr" DOOR_DIR, "/usr/local" DOOR_DIR};

    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *library = g_strconcat(places[i], "/cuda/" NVIDIA_CUDA, NULL);

        if (root_has(root, library))
            return g_strdup(places[i]);
    }
    return NULL;
}

static GStrv find_programs(HostRoot *root)
{
    g_autoptr(GStrvBuilder) found = g_strv_builder_new();

    for (guint i = 0; i < G_N_ELEMENTS(program_files); i++)
        if (root_has(root, program_files[i]))
            g_strv_builder_add(found, program_files[i]);
    return g_strv_builder_end(found);
}

CudaDoor *cuda_door_find(HostRoot *root)
{
    g_autofree char *folder = find_folder(root);
    NvidiaDriver *driver = folder ? nvidia_driver_find(root) : NULL;
    CudaDoor *door;

    if (!driver)
        return NULL;
    door = g_new0(CudaDoor, 1);
    door->folder = g_steal_pointer(&folder);
    door->driver = driver;
    door->programs = find_programs(root);
    return door;
}

void cuda_door_free(CudaDoor *door)
{
    g_free(door->folder);
    nvidia_driver_free(door->driver);
    g_strfreev(door->programs);
    g_free(door);
}

GStrv cuda_door_nodes(HostRoot *root, const char *gpu)
{
    static const char *const common[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};
    g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
    int minor = nvidia_minor(root, gpu);

    if (minor < 0)
        return g_strv_builder_end(nodes);
    g_strv_builder_take(nodes, g_strdup_printf("nvidia%d", minor));
    for (guint i = 0; i < G_N_ELEMENTS(common); i++) {
        g_autofree char *path = g_strconcat("/dev/", common[i], NULL);

        if (root_has(root, path))
            g_strv_builder_add(nodes, common[i]);
    }
    return g_strv_builder_end(nodes);
}

/* Video goes past the driver's functions that the door has: without its library there is none. */
static gboolean is_denied(const char *soname, guint engines)
{
    if (!engines)
        return FALSE;
    if (g_str_has_prefix(soname, "libnvcuvid.so"))
        return !(engines & ENGINE_DECODE);
    return g_str_has_prefix(soname, "libnvidia-encode.so") && !(engines & ENGINE_ENCODE);
}

static void mount_free(void *data)
{
    CudaMount *mount = data;

    g_free(mount->from);
    g_free(mount->to);
    g_free(mount);
}

static void add_mount(GPtrArray *mounts, char *from, char *to)
{
    CudaMount *mount = g_new0(CudaMount, 1);

    mount->from = from;
    mount->to = to;
    g_ptr_array_add(mounts, mount);
}

GPtrArray *cuda_door_mounts(const CudaDoor *door, guint engines)
{
    GPtrArray *mounts = g_ptr_array_new_with_free_func(mount_free);
    const GPtrArray *libraries = door->driver->libraries;

    for (guint i = 0; i < G_N_ELEMENTS(door_files); i++)
        add_mount(mounts, g_build_filename(door->folder, "cuda", door_files[i], NULL),
                  g_build_filename(door->folder, "cuda", door_files[i], NULL));
    for (guint i = 0; i < libraries->len; i++) {
        const NvidiaLibrary *library = g_ptr_array_index(libraries, i);

        if (!is_denied(library->soname, engines))
            add_mount(mounts, g_strdup(library->path),
                      g_build_filename(door->folder, "real", library->soname, NULL));
    }
    for (guint i = 0; door->programs[i]; i++)
        add_mount(mounts, g_strdup(door->programs[i]), g_strdup(door->programs[i]));
    return mounts;
}

static gboolean failed(const char *path, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code),
                "cannot link NVIDIA's driver for the CUDA door: %s: %s", path, g_strerror(code));
    return FALSE;
}

/* By another name first: programs that start meanwhile find the old link or the new one. */
static gboolean link_to(HostRoot *root, const char *path, const char *target, GError **error)
{
    g_autofree char *now = root_link(root, path);
    g_autofree char *link = root_path(root, path, NULL);
    g_autofree char *next = g_strconcat(link, ".new", NULL);

    if (g_strcmp0(now, target) == 0)
        return TRUE;
    g_unlink(next);
    if (symlink(target, next) < 0 || g_rename(next, link) < 0)
        return failed(link, error);
    return TRUE;
}

gboolean cuda_door_link(HostRoot *root, const CudaDoor *door, GError **error)
{
    static const char *const names[] = {NVIDIA_CUDA, NVIDIA_ML};
    g_autofree char *dir = root_path(root, CUDA_REAL_LINKS, NULL);

    if (!root_mkdir(root, CUDA_REAL_LINKS, 0755, error))
        return FALSE;
    /* Whatever the umask is. */
    if (g_chmod(dir, 0755) < 0)
        return failed(dir, error);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const NvidiaLibrary *library = nvidia_driver_library(door->driver, names[i]);
        g_autofree char *path = g_build_filename(CUDA_REAL_LINKS, names[i], NULL);

        if (!link_to(root, path, library->path, error))
            return FALSE;
    }
    return TRUE;
}

char *cuda_door_libraries(const CudaDoor *door)
{
    return g_build_filename(door->folder, "cuda", NULL);
}
