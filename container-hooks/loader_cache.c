/* SPDX-License-Identifier: MIT */
/*
 * ldconfig is not run for an image. It follows the image's links, and a chroot does not stop those
 * through /proc (CVE-2025-23267 was that). The cache is only read, as texts: paths in it end with
 * the library's name.
 */
#include "container-hooks/loader_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "container-hooks/in_root.h"

#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

#define CACHE "etc/ld.so.cache"
/* Images with tens of thousands of libraries have some MiB. */
#define MOST_CACHE (16u << 20)
#define CUDA_DIRS  "usr/local"
#define COMPAT     "compat"

const char *const loader_folders[] = {
    "usr/lib/" MULTIARCH, "usr/lib64", "usr/lib", "lib/" MULTIARCH, "lib64", "lib", NULL,
};

static void add(GPtrArray *places, const char *folder, const char *name)
{
    g_ptr_array_add(places, g_build_filename(folder, name, NULL));
}

/* Each whole text "/…/NAME" of the cache. */
static void add_from_cache(GPtrArray *places, int root, const char *name)
{
    g_autoptr(GBytes) cache = in_root_read(root, CACHE, MOST_CACHE);
    g_autofree char *end = g_strconcat("/", name, NULL);
    gsize length = strlen(end) + 1;
    gsize size = 0;
    const char *bytes = cache ? g_bytes_get_data(cache, &size) : NULL;
    const char *at = bytes;

    while (at && (at = memmem(at, size - (gsize)(at - bytes), end, length))) {
        const char *begin = memrchr(bytes, 0, (gsize)(at - bytes));

        begin = begin ? begin + 1 : bytes;
        if (*begin == '/')
            g_ptr_array_add(places, g_strdup(begin));
        at += length;
    }
}

/* Images for CUDA have a driver's libraries for newer programs in /usr/local/cuda-12.4/compat. */
static void add_compat(GPtrArray *places, int root, const char *name)
{
    struct stat found;
    int fd = in_root_find(root, CUDA_DIRS, &found, NULL);
    int readable = fd >= 0 ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = readable >= 0 ? fdopendir(readable) : NULL;

    if (fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (g_str_has_prefix(entry->d_name, "cuda")) {
            g_autofree char *folder = g_build_filename(CUDA_DIRS, entry->d_name, COMPAT, NULL);

            add(places, folder, name);
        }
    if (dir)
        closedir(dir);
}

GPtrArray *loader_places(int root, const Bundle *bundle, const char *name)
{
    GPtrArray *places = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; bundle->library_path[i]; i++)
        if (g_path_is_absolute(bundle->library_path[i]))
            add(places, bundle->library_path[i], name);
    add_from_cache(places, root, name);
    for (guint i = 0; loader_folders[i]; i++)
        add(places, loader_folders[i], name);
    add_compat(places, root, name);
    return places;
}
