/* SPDX-License-Identifier: MIT */
#include "container-hooks/cuda_door.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "container-hooks/in_root.h"
#include "container-hooks/loader_cache.h"
#include "container-hooks/other_drivers.h"
#include "lib/refuse.h"

/**
 * struct name
 * @name: by which programs open the library
 * @door: our file of that library
 */
static const struct name {
    const char *name;
    const char *door;
} names[] = {
    {"libcuda.so.1", "libcuda.so.1"},
    {"libcuda.so", "libcuda.so.1"},
    {"libnvidia-ml.so.1", "libnvidia-ml.so.1"},
    {"libnvidia-ml.so", "libnvidia-ml.so.1"},
};

/* Of CUDA alone: the first of them. */
#define CUDA_NAMES 2

/**
 * Put - one container
 * @root: descriptor of its root
 * @folder: where it has our libraries and the driver's
 * @part: ours, below @folder
 * @count: of the names, how many are in @part
 * @has_driver: they need the driver's own in FOLDER/real
 * @linked: paths by which programs find our libraries and the driver's now, for the loader's cache
 */
typedef struct {
    const Bundle *bundle;
    int root;
    const char *folder;
    const char *part;
    guint count;
    gboolean has_driver;
    GPtrArray *linked;
} Put;

static char *door_path(const Put *put, const char *part, const char *file)
{
    return g_build_filename(put->folder, part, file, NULL);
}

/* Of a file of ours; -1 with an error. */
static int find_own(const Put *put, const char *part, const char *file, struct stat *found,
                    GError **error)
{
    g_autofree char *path = door_path(put, part, file);
    int fd = in_root_find(put->root, path, found, error);

    if (fd >= 0 && S_ISREG(found->st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    if (!*error)
        refuse_with(error, G_IO_ERROR_FAILED,
                    "the container has no file %s, which vgpud's CDI device mounts", path);
    return -1;
}

static gboolean has_own(const Put *put, const char *part, const char *file, GError **error)
{
    struct stat found;
    int fd = find_own(put, part, file, &found, error);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/*
 * Another CDI device, or a volume, with NVIDIA's library: whose hook or mount wins is not defined,
 * and if it is that one the container has no limit.
 */
static gboolean check_others(const Put *put, GError **error)
{
    for (guint i = 0; i < put->bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(put->bundle->mounts, i);
        g_autofree char *name = g_path_get_basename(mount->destination);
        g_autofree char *dir = g_path_get_dirname(mount->destination);

        if (!g_str_has_prefix(name, "libcuda.so") || g_str_has_prefix(dir, put->folder))
            continue;
        return refuse_with(
            error, G_IO_ERROR_FAILED,
            "the container is also given NVIDIA's driver without a limit (%s); remove "
            "the other device (nvidia.com/gpu) or volume",
            mount->destination);
    }
    return TRUE;
}

static gboolean is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The image's own library at @path, if it has one there, is covered by the door's. */
static gboolean cover_image_library(const Put *put, const char *path, int door,
                                    const struct stat *own, GError **error)
{
    struct stat found;
    int fd = in_root_find(put->root, path, &found, error);
    gboolean done;

    if (fd < 0)
        return !*error;
    if (!S_ISREG(found.st_mode))
        done = refuse_with(error, G_IO_ERROR_FAILED, "the image's %s is not a file", path);
    else
        done = is_same(&found, own) || in_root_cover(door, fd, path, error);
    close(fd);
    return done;
}

/* @places: of paths; by the file @file of ours in @part. */
static gboolean cover_places(const Put *put, const GPtrArray *places, const char *part,
                             const char *file, GError **error)
{
    struct stat own;
    int source = find_own(put, part, file, &own, error);
    gboolean done = source >= 0;

    for (guint i = 0; done && i < places->len; i++)
        done = cover_image_library(put, g_ptr_array_index(places, i), source, &own, error);
    if (source >= 0)
        close(source);
    return done;
}

/* By any of its names, and by the file's own, as libcuda.so.550.1; NULL: it has none. */
static const char *door_of(const Put *put, const char *name)
{
    for (guint i = 0; i < put->count; i++)
        if (g_str_has_prefix(name, names[i].name) && strchr(".", name[strlen(names[i].name)]))
            return names[i].door;
    return NULL;
}

/* The driver's library @mount, as FOLDER/real has it; to be freed. NULL: it is something else. */
static char *driver_name(const Put *put, const BundleMount *mount)
{
    g_autofree char *real = g_build_filename(put->folder, "real", NULL);
    g_autofree char *dir = g_path_get_dirname(mount->destination);

    return g_str_equal(dir, real) ? g_path_get_basename(mount->destination) : NULL;
}

/* Where the image's loader looks. */
static gboolean cover_by_name(const Put *put, GBytes *cache, const char *name, const char *part,
                              const char *file, GError **error)
{
    g_autoptr(GPtrArray) places = loader_places(put->bundle, cache, name);

    return cover_places(put, places, part, file, error);
}

/* Those of @found that are called @name; NULL: all whose door is @file. */
static gboolean cover_found(const Put *put, const GPtrArray *found, const char *name,
                            const char *part, const char *file, GError **error)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new();

    for (guint i = 0; i < found->len; i++) {
        char *path = g_ptr_array_index(found, i);
        const char *is = strrchr(path, '/') + 1;

        if (name ? g_str_equal(is, name) : g_strcmp0(door_of(put, is), file) == 0)
            g_ptr_array_add(places, path);
    }
    return cover_places(put, places, part, file, error);
}

/*
 * The door needs the host's driver. A library of another driver that stays beside it would be
 * loaded by the host's in place of its own.
 */
static gboolean cover_driver(const Put *put, GBytes *cache, const GPtrArray *found, GError **error)
{
    for (guint i = 0; i < put->bundle->mounts->len; i++) {
        g_autofree char *name = driver_name(put, g_ptr_array_index(put->bundle->mounts, i));

        if (!name || door_of(put, name))
            continue;
        if (!cover_by_name(put, cache, name, "real", name, error) ||
            !cover_found(put, found, name, "real", name, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean cover_all(const Put *put, GError **error)
{
    g_autoptr(GPtrArray) found = other_drivers_find(put->root, put->bundle);
    g_autoptr(GBytes) cache = loader_cache_read(put->root);

    for (guint i = 0; i < put->count; i++)
        if (!cover_by_name(put, cache, names[i].name, put->part, names[i].door, error) ||
            !cover_found(put, found, NULL, put->part, names[i].door, error))
            return FALSE;
    return cover_driver(put, cache, found, error);
}

/* A link @name to @target, unless a file can be reached by that name already. */
static gboolean link_one(const Put *put, const char *folder, const char *name, const char *target,
                         GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    struct stat found;
    int there = in_root_find(put->root, path, &found, error);
    int dir;
    gboolean done;

    if (there >= 0)
        close(there);
    if (there >= 0 || *error)
        return !*error;
    dir = in_root_find_folder(put->root, folder, error);
    if (dir < 0)
        return *error ? FALSE
                      : refuse_with(error, G_IO_ERROR_FAILED, "the image's folder %s has gone",
                                    folder);
    done = in_root_link(dir, name, target, error);
    close(dir);
    return done;
}

/*
 * The driver's other libraries, by the name that programs need them by and by the file's own, as
 * they were on the host.
 */
static gboolean link_driver(const Put *put, const char *folder, GError **error)
{
    for (guint i = 0; i < put->bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(put->bundle->mounts, i);
        g_autofree char *soname = driver_name(put, mount);
        g_autofree char *file = g_path_get_basename(mount->source);
        g_autofree char *target = NULL;

        if (!soname)
            continue;
        target = door_of(put, soname) ? door_path(put, put->part, door_of(put, soname))
                                      : g_strdup(mount->destination);
        if (!link_one(put, folder, soname, target, error) ||
            !link_one(put, folder, file, target, error))
            return FALSE;
        if (!door_of(put, soname))
            g_ptr_array_add(put->linked, g_strconcat("/", folder, "/", soname, NULL));
    }
    return TRUE;
}

#define ALLOCATOR "libnvidia-allocator.so.1"

static gboolean has_driver(const Put *put, const char *soname)
{
    for (guint i = 0; i < put->bundle->mounts->len; i++) {
        g_autofree char *name = driver_name(put, g_ptr_array_index(put->bundle->mounts, i));

        if (g_strcmp0(name, soname) == 0)
            return TRUE;
    }
    return FALSE;
}

/* Mesa's libgbm opens the backend of a GPU's kernel driver by that driver's name. */
static gboolean link_gbm(const Put *put, const char *folder, GError **error)
{
    g_autofree char *library = g_build_filename(folder, "libgbm.so.1", NULL);
    g_autofree char *gbm = g_build_filename(folder, "gbm", NULL);
    g_autofree char *target = door_path(put, "real", ALLOCATOR);
    struct stat found;
    int there = has_driver(put, ALLOCATOR) ? in_root_find(put->root, library, &found, error) : -1;
    gboolean done;
    int dir;

    if (there < 0)
        return !*error;
    close(there);
    dir = in_root_find_folder(put->root, folder, error);
    if (dir < 0)
        return !*error;
    done = in_root_make_folder(dir, "gbm", error) &&
           link_one(put, gbm, "nvidia-drm_gbm.so", target, error);
    close(dir);
    return done;
}

static gboolean link_all(const Put *put, const char *folder, GError **error)
{
    for (guint i = 0; i < put->count; i++) {
        g_autofree char *target = door_path(put, put->part, names[i].door);

        if (!link_one(put, folder, names[i].name, target, error))
            return FALSE;
        g_ptr_array_add(put->linked, g_strconcat("/", folder, "/", names[i].name, NULL));
    }
    return link_driver(put, folder, error) && link_gbm(put, folder, error);
}

/* Where the image's loader finds our libraries and the driver's if its folders are on volumes. */
static gboolean list_in_cache(const Put *put, const char *folder, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) places = NULL;
    g_autoptr(GBytes) cache = NULL;

    for (guint i = 0; i < put->count; i++)
        g_ptr_array_add(paths, door_path(put, put->part, names[i].name));
    for (guint i = 0; i < put->bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(put->bundle->mounts, i);
        g_autofree char *soname = driver_name(put, mount);

        if (soname && !door_of(put, soname))
            g_ptr_array_add(paths, g_strdup(mount->destination));
    }
    if (!loader_cache_add(put->root, paths, error))
        return FALSE;
    cache = loader_cache_read(put->root);
    places = loader_places(put->bundle, cache, names[0].name);
    if (g_ptr_array_find_with_equal_func(places, paths->pdata[0], g_str_equal, NULL))
        return TRUE;
    return refuse_with(error, G_IO_ERROR_FAILED,
                       "the image's folder for libraries (%s) is on a volume, and the image has no "
                       "/etc/ld.so.cache that could list libcuda",
                       folder);
}

typedef enum {
    FOLDER_IS_MISSING,
    FOLDER_IS_THERE,
    FOLDER_IS_A_VOLUME,
} FolderState;

static FolderState folder_state(const Put *put, const char *folder, GError **error)
{
    struct stat found;
    int dir = in_root_find_folder(put->root, folder, error);

    if (dir >= 0) {
        close(dir);
        return FOLDER_IS_THERE;
    }
    if (!*error)
        return FOLDER_IS_MISSING;
    /* EXDEV has no code of its own. What leads through /proc has. */
    if (!g_error_matches(*error, G_FILE_ERROR, G_FILE_ERROR_FAILED))
        return FOLDER_IS_MISSING;
    dir = in_root_find(put->root, folder, &found, NULL);
    if (dir < 0)
        return FOLDER_IS_MISSING;
    close(dir);
    g_clear_error(error);
    return FOLDER_IS_A_VOLUME;
}

/*
 * Which of the first two the image's loader reads is its distribution's choice. The third often has
 * libraries for 32-bit programs.
 */
static gboolean link_everywhere(const Put *put, GError **error)
{
    const char *volume = NULL;
    guint folders = 0;

    for (guint i = 0; i < 3 && (i < 2 || !folders); i++) {
        FolderState state = folder_state(put, loader_folders[i], error);

        if (*error || (state == FOLDER_IS_THERE && !link_all(put, loader_folders[i], error)))
            return FALSE;
        if (state == FOLDER_IS_A_VOLUME)
            volume = loader_folders[i];
        folders += state != FOLDER_IS_MISSING;
    }
    if (volume)
        return list_in_cache(put, volume, error);
    if (folders)
        return TRUE;
    return refuse_with(error, G_IO_ERROR_FAILED, "the image has no folder for libraries (%s)",
                       loader_folders[0]);
}

static gboolean put_into(const Put *put, GError **error)
{
    if (!check_others(put, error))
        return FALSE;
    for (guint i = 0; i < put->count; i++)
        if (!has_own(put, put->part, names[i].door, error) ||
            (put->has_driver && !has_own(put, "real", names[i].door, error)))
            return FALSE;
    return cover_all(put, error) && link_everywhere(put, error);
}

/* Only programs that ask "ldconfig -p" need it, so a container without it starts. */
static void add_to_cache(const Put *put)
{
    g_autoptr(GError) error = NULL;

    if (!loader_cache_add(put->root, put->linked, &error))
        g_warning(
            "\"ldconfig -p\" will not list libcuda in the container, and programs that ask it, "
            "such as Triton, do not find it: %s",
            error->message);
}

static gboolean put_all(Put *put, GError **error)
{
    gboolean done;

    put->root = in_root_open(put->bundle->image, error);
    if (put->root < 0)
        return FALSE;
    put->linked = g_ptr_array_new_with_free_func(g_free);
    done = put_into(put, error);
    if (done)
        add_to_cache(put);
    g_ptr_array_unref(put->linked);
    close(put->root);
    return done;
}

gboolean cuda_door_put(const Bundle *bundle, const char *folder, GError **error)
{
    Put put = {.bundle = bundle,
               .folder = folder,
               .part = "cuda",
               .count = G_N_ELEMENTS(names),
               .has_driver = TRUE};

    return put_all(&put, error);
}

/* The container is given that library of ours. */
static gboolean has_library(const Bundle *bundle, const char *folder, const char *part,
                            const char *name)
{
    g_autofree char *library = g_build_filename(folder, part, name, NULL);

    for (guint i = 0; i < bundle->mounts->len; i++) {
        const BundleMount *mount = g_ptr_array_index(bundle->mounts, i);

        if (g_str_equal(mount->destination, library))
            return TRUE;
    }
    return FALSE;
}

/* A container with another slice of the native door has that one's CUDA. */
gboolean cuda_remote_put(const Bundle *bundle, const char *folder, GError **error)
{
    gboolean has_nvml = has_library(bundle, folder, "guest", "libnvidia-ml.so.1");
    Put put = {.bundle = bundle,
               .folder = folder,
               .part = "guest",
               .count = has_nvml ? G_N_ELEMENTS(names) : CUDA_NAMES};

    return has_library(bundle, folder, "cuda", "libcuda.so.1") || put_all(&put, error);
}
