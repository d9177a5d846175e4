/* SPDX-License-Identifier: MIT */
/*
 * ldconfig is not run for an image. It follows the image's links, and a chroot does not stop those
 * through /proc (CVE-2025-23267 was that). The cache is read here as texts: paths in it end with
 * the library's name. loader_cache_add.c adds to it.
 */
#include "container-hooks/loader_cache.h"

#include <string.h>

#include "container-hooks/in_root.h"

#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

#define CACHE "etc/ld.so.cache"
/* Images with tens of thousands of libraries have some MiB. */
#define CACHE_MAX (16u << 20)
/* Of LD_LIBRARY_PATH. Each is looked up for each library of the driver, and images have tens. */
#define FOLDERS_MAX 1024

const char *const loader_folders[] = {
    "usr/lib/" MULTIARCH, "usr/lib64", "usr/lib", "lib/" MULTIARCH, "lib64", "lib", NULL,
};

static void place_add(GPtrArray *places, const char *folder, const char *name)
{
    g_ptr_array_add(places, g_build_filename(folder, name, NULL));
}

GBytes *loader_cache_read(int root)
{
    return in_root_read(root, CACHE, CACHE_MAX);
}

/* Each whole text "/…/NAME" of the cache. */
static void add_from_cache(GPtrArray *places, GBytes *cache, const char *name)
{
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

GPtrArray *loader_places(const Bundle *bundle, GBytes *cache, const char *name)
{
    const char *path = bundle_variable(bundle, "LD_LIBRARY_PATH");
    /* The last has the rest. */
    g_auto(GStrv) folders = g_strsplit(path, ":", FOLDERS_MAX + 1);
    GPtrArray *places = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; folders[i] && i < FOLDERS_MAX; i++)
        if (g_path_is_absolute(folders[i]))
            place_add(places, folders[i], name);
    add_from_cache(places, cache, name);
    for (guint i = 0; loader_folders[i]; i++)
        place_add(places, loader_folders[i], name);
    return places;
}
