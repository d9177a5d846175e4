/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/transport.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/pci.h"
#include "lib/host_root.h"
#include "lib/program.h"
#include "lib/systemd.h"

/* Short, because the socket's path is limited. */
#define PROGRAM_DIR      "/g"
#define ONLY_SLICE       "0"
#define GOVERNOR_SOCKET  "governor.sock"
#define MOST_SOCKET_PATH 107u

static char *path_of(HostRoot *root, const char *uuid, const char *below)
{
    return root_path(root, CONTAINERS_DIR "/", uuid, below, NULL);
}

static gboolean transport_failed(const char *path, const char *what, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be %s: %s", path,
                what, g_strerror(code));
    return FALSE;
}

char *slice_dirs_of_program(HostRoot *root, const char *uuid)
{
    return path_of(root, uuid, PROGRAM_DIR);
}

gboolean slice_dirs_link(HostRoot *root, const char *uuid, const char *gpu, GError **error)
{
    g_autofree char *gpus = slice_dirs_of_program(root, uuid);
    g_autofree char *dir = g_build_filename(gpus, gpu, NULL);
    g_autofree char *link = g_build_filename(dir, ONLY_SLICE, NULL);

    if (strlen(link) + strlen("/" GOVERNOR_SOCKET) > MOST_SOCKET_PATH) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NAMETOOLONG,
                    "the name of GPU %s is too long for a program's socket below %s; give it a "
                    "shorter one in gpus.conf",
                    gpu, gpus);
        return FALSE;
    }
    if (g_mkdir_with_parents(dir, 0755) < 0)
        return transport_failed(dir, "made", error);
    /* Whatever the umask is. */
    if (chmod(gpus, 0755) < 0 || chmod(dir, 0755) < 0)
        return transport_failed(dir, "opened", error);
    if (g_file_test(link, G_FILE_TEST_IS_SYMLINK) || symlink("../../slice", link) == 0)
        return TRUE;
    return transport_failed(link, "made", error);
}

#define USER_PROGRAM "/usr/lib/mdev-vgpu/vgpu-engine-user"

typedef struct {
    char *uuid;
    gboolean start;
} Step;

/**
 * GuardUnits
 * @funcs: called with @data
 * @steps: of Step; the first is being done
 */
struct GuardUnits {
    char *program;
    GDBusConnection *bus;
    GCancellable *end;
    GuardFuncs funcs;
    void *data;
    GQueue steps;
};

static void step_free(void *data)
{
    Step *step = data;

    g_free(step->uuid);
    g_free(step);
}

static void ask_systemd(const GuardUnits *units, const char *method, const char *uuid)
{
    g_autofree char *unit = guard_unit_name(uuid);

    unit_call(units->bus, method, unit);
}

static void do_first(GuardUnits *units);

/* @why: NULL: success. */
static void finish_first(GuardUnits *units, const char *why)
{
    Step *step = g_queue_pop_head(&units->steps);

    if (why && step->start) {
        g_autofree char *cause = g_strconcat(USER_PROGRAM ": ", why, NULL);

        units->funcs.failed(step->uuid, cause, units->data);
    } else if (step->start) {
        units->funcs.starts(step->uuid, units->data);
        ask_systemd(units, "StartUnit", step->uuid);
    }
    step_free(step);
    do_first(units);
}

/* If it was cancelled, @units are gone. */
static void step_ended(GObject *process, GAsyncResult *result, void *data)
{
    g_autofree char *said = NULL;
    g_autoptr(GError) error = NULL;
    gboolean known =
        g_subprocess_communicate_utf8_finish(G_SUBPROCESS(process), result, NULL, &said, &error);

    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        return;
    if (known)
        g_spawn_check_wait_status(g_subprocess_get_status(G_SUBPROCESS(process)), &error);
    if (said && *g_strstrip(g_strdelimit(said, "\n", ' ')) && !error)
        g_message("%s: %s", USER_PROGRAM, said);
    finish_first(data, !error ? NULL : said && *said ? said : error->message);
}

static void cannot_be_run(GuardUnits *units, const GError *error)
{
    gboolean missing = g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT);
    g_autofree char *why =
        g_strconcat(error->message, missing ? "; it is in the package vgpu-engine" : NULL, NULL);

    finish_first(units, why);
}

static void do_first(GuardUnits *units)
{
    const Step *step = g_queue_peek_head(&units->steps);
    g_autoptr(GSubprocessLauncher) launcher = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process = NULL;

    if (!step)
        return;
    if (!step->start)
        ask_systemd(units, "StopUnit", step->uuid);
    launcher = program_launcher(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    process =
        g_subprocess_launcher_spawn(launcher, &error, units->program,
                                    step->start ? "add" : "remove", step->uuid, "guard", NULL);
    if (process)
        g_subprocess_communicate_utf8_async(process, NULL, units->end, step_ended, units);
    else
        cannot_be_run(units, error);
}

static void add_step(GuardUnits *units, const char *uuid, gboolean start)
{
    Step *step = g_new0(Step, 1);

    step->uuid = g_strdup(uuid);
    step->start = start;
    g_queue_push_tail(&units->steps, step);
    if (units->steps.length == 1)
        do_first(units);
}

void guard_units_start(GuardUnits *units, const char *uuid)
{
    add_step(units, uuid, TRUE);
}

void guard_units_stop(GuardUnits *units, const char *uuid)
{
    add_step(units, uuid, FALSE);
}

GuardUnits *guard_units_new(HostRoot *root, GDBusConnection *bus, const GuardFuncs *funcs,
                            void *data)
{
    GuardUnits *units = g_new0(GuardUnits, 1);

    units->program = root_path(root, USER_PROGRAM, NULL);
    units->bus = g_object_ref(bus);
    units->funcs = *funcs;
    units->data = data;
    units->end = g_cancellable_new();
    g_queue_init(&units->steps);
    return units;
}

void guard_units_free(GuardUnits *units)
{
    g_cancellable_cancel(units->end);
    g_object_unref(units->end);
    g_queue_clear_full(&units->steps, step_free);
    g_object_unref(units->bus);
    g_free(units->program);
    g_free(units);
}

/* The CUDA door on this host, and NVIDIA's driver behind it. */

#define DOOR_DIR "/lib/mdev-vgpu"

/* Of the door, in FOLDER/cuda. */
static const char *const door_files[] = {NVIDIA_CUDA, "libcuda.so", NVIDIA_ML, "libnvidia-ml.so"};

/* Of the driver, besides its libraries: for Vulkan, for OptiX, and for people. */
static const char *const program_files[] = {
    "/usr/share/vulkan/icd.d/nvidia_icd.json", "/usr/share/vulkan/icd.d/nvidia_icd.x86_64.json",
    "/etc/vulkan/icd.d/nvidia_icd.json", "/usr/share/nvidia/nvoptix.bin", "/usr/bin/nvidia-smi"};

/*
 * Folders with files of the driver for EGL, and of others. Without them libglvnd takes Mesa for
 * EGL, without a word. Their names have "nvidia" in them.
 */
static const char *const graphics_folders[] = {
    "/usr/share/glvnd/egl_vendor.d", "/etc/glvnd/egl_vendor.d",
    "/usr/share/egl/egl_external_platform.d", "/etc/egl/egl_external_platform.d"};

/* Those of the same names in FOLDER/guest are for programs without a node, which vgpu-cuda-worker
 * serves. */
static gboolean has_remote(HostRoot *root, const char *folder)
{
    g_autofree char *library = g_build_filename(folder, "guest", NVIDIA_CUDA, NULL);
    g_autofree char *worker = g_build_filename(folder, "vgpu-cuda-worker", NULL);

    return root_has(root, library) && root_has(root, worker);
}

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

static GStrv find_graphics(HostRoot *root)
{
    g_autoptr(GStrvBuilder) found = g_strv_builder_new();

    for (guint i = 0; i < G_N_ELEMENTS(graphics_folders); i++) {
        g_auto(GStrv) names = sysfs_list(root, graphics_folders[i]);

        for (guint k = 0; names[k]; k++)
            if (strstr(names[k], "nvidia") && g_str_has_suffix(names[k], ".json"))
                g_strv_builder_take(found, g_build_filename(graphics_folders[i], names[k], NULL));
    }
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
    door->graphics = find_graphics(root);
    door->remote = has_remote(root, door->folder);
    return door;
}

void cuda_door_free(CudaDoor *door)
{
    g_free(door->folder);
    nvidia_driver_free(door->driver);
    g_strfreev(door->programs);
    g_strfreev(door->graphics);
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

SliceTransport slice_transport_of_gpu(HostRoot *root, const char *gpu)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, gpu);
    g_autoptr(CudaDoor) cuda = nodes[0] ? cuda_door_find(root) : NULL;

    return cuda ? SLICE_TRANSPORT_NATIVE : SLICE_TRANSPORT_GUARDED;
}

/* Its library is for slices with all engines. */
#define UNNAMED_ENGINE 0

/*
 * These go past the functions that the door and the Vulkan layer have: without its library there is
 * none of it. GL remains in libGLX_nvidia and libEGL_nvidia. Vulkan is in both, and a program
 * without a display may need either.
 */
static const struct {
    const char *library;
    guint engine;
} past_the_door[] = {
    {"libnvcuvid.so", ENGINE_DECODE},
    {"libvdpau_nvidia.so", ENGINE_DECODE},
    {"libnvidia-encode.so", ENGINE_ENCODE},
    {"libGLESv1_CM_nvidia.so", ENGINE_GRAPHICS},
    {"libGLESv2_nvidia.so", ENGINE_GRAPHICS},
    {NVIDIA_EGL_PLATFORM, ENGINE_GRAPHICS},
    {"libnvidia-opticalflow.so", UNNAMED_ENGINE},
};

static gboolean is_denied(const char *soname, guint engines)
{
    /* Nothing can hold its memory and time to any slice. */
    if (g_str_has_prefix(soname, "libnvidia-opencl.so"))
        return TRUE;
    for (guint i = 0; engines && i < G_N_ELEMENTS(past_the_door); i++)
        if (g_str_has_prefix(soname, past_the_door[i].library))
            return !(engines & past_the_door[i].engine);
    return FALSE;
}

void cuda_mount_free(CudaMount *mount)
{
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
    GPtrArray *mounts = g_ptr_array_new_with_free_func((GDestroyNotify)cuda_mount_free);
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
    for (guint i = 0; (!engines || engines & ENGINE_GRAPHICS) && door->graphics[i]; i++)
        add_mount(mounts, g_strdup(door->graphics[i]), g_strdup(door->graphics[i]));
    return mounts;
}

GPtrArray *cuda_remote_mounts(const CudaDoor *door)
{
    GPtrArray *mounts = g_ptr_array_new_with_free_func((GDestroyNotify)cuda_mount_free);

    for (guint i = 0; i < G_N_ELEMENTS(door_files); i++)
        add_mount(mounts, g_build_filename(door->folder, "guest", door_files[i], NULL),
                  g_build_filename(door->folder, "guest", door_files[i], NULL));
    return mounts;
}

char *cuda_remote_libraries(const CudaDoor *door)
{
    return g_build_filename(door->folder, "guest", NULL);
}

static gboolean link_failed(const char *path, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "cannot make the link %s: %s",
                path, g_strerror(code));
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
        return link_failed(link, error);
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
        return transport_failed(dir, "opened for all", error);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const NvidiaLibrary *library = nvidia_driver_library(door->driver, names[i]);
        g_autofree char *path = g_build_filename(CUDA_REAL_LINKS, names[i], NULL);

        if (!link_to(root, path, library->path, error))
            return FALSE;
    }
    return TRUE;
}

void cuda_door_name_nodes(HostRoot *root, const char *gpu)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, gpu);

    for (guint i = 0; nodes[i]; i++) {
        g_autofree char *node = g_strconcat("/dev/", nodes[i], NULL);
        g_autofree char *target = g_strconcat("../", nodes[i], NULL);
        g_autofree char *link = NULL;
        g_autoptr(GError) error = NULL;
        struct stat status;

        if (!root_stat(root, node, &status) || !S_ISCHR(status.st_mode))
            continue;
        link = g_strdup_printf("/dev/char/%u:%u", major(status.st_rdev), minor(status.st_rdev));
        if (!root_mkdir(root, "/dev/char", 0755, &error) || !link_to(root, link, target, &error))
            g_warning("containers lose %s at systemd's next daemon-reload: %s", node,
                      error->message);
    }
}

char *cuda_door_libraries(const CudaDoor *door)
{
    return g_build_filename(door->folder, "cuda", NULL);
}
