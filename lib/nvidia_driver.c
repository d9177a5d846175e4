/* SPDX-License-Identifier: MIT */
#include "lib/nvidia_driver.h"

#include <string.h>

#include "lib/elf_file.h"
#include "lib/sysfs.h"

#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

/* Of Debian and Ubuntu, and of other distributions. The first folder with a library counts. */
static const char *const folders[] = {
    "/usr/lib/" MULTIARCH,
    "/usr/lib/" MULTIARCH "/nvidia/current",
    "/usr/lib64",
    "/usr/lib",
};

static void library_free(void *data)
{
    NvidiaLibrary *library = data;

    g_free(library->path);
    g_free(library->soname);
    g_free(library);
}

void nvidia_driver_free(NvidiaDriver *driver)
{
    g_free(driver->version);
    g_ptr_array_unref(driver->libraries);
    g_free(driver);
}

const NvidiaLibrary *nvidia_driver_library(const NvidiaDriver *driver, const char *soname)
{
    for (guint i = 0; i < driver->libraries->len; i++) {
        const NvidiaLibrary *library = g_ptr_array_index(driver->libraries, i);

        if (g_str_equal(library->soname, soname))
            return library;
    }
    return NULL;
}

/* A name is all that others need it by: one with a path in it is not a library's. */
static char *soname_of(HostRoot *root, const char *path)
{
    g_autoptr(ElfFile) elf = elf_file_open(root, path, NULL);
    const char *soname = elf ? elf_file_soname(elf) : NULL;

    return soname && g_str_has_prefix(soname, "lib") && !strchr(soname, '/') ? g_strdup(soname)
                                                                             : NULL;
}

static void look_at(HostRoot *root, const char *folder, const char *name, NvidiaDriver *driver)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *soname = soname_of(root, path);
    NvidiaLibrary *library;

    if (!soname || nvidia_driver_library(driver, soname))
        return;
    library = g_new0(NvidiaLibrary, 1);
    library->path = g_steal_pointer(&path);
    library->soname = g_steal_pointer(&soname);
    g_ptr_array_add(driver->libraries, library);
}

static void look_in(HostRoot *root, const char *folder, NvidiaDriver *driver)
{
    g_autofree char *end = g_strconcat(".so.", driver->version, NULL);
    g_auto(GStrv) names = sysfs_list(root, folder);

    for (guint i = 0; names[i]; i++)
        if (g_str_has_prefix(names[i], "lib") && g_str_has_suffix(names[i], end))
            look_at(root, folder, names[i], driver);
}

static int by_soname(const void *a, const void *b)
{
    return strcmp((*(const NvidiaLibrary *const *)a)->soname,
                  (*(const NvidiaLibrary *const *)b)->soname);
}

NvidiaDriver *nvidia_driver_find(HostRoot *root)
{
    g_autofree char *version = sysfs_read(root, "/sys/module/nvidia", "version");
    g_autoptr(NvidiaDriver) driver = NULL;

    if (!version || !*version)
        return NULL;
    driver = g_new0(NvidiaDriver, 1);
    driver->version = g_steal_pointer(&version);
    driver->libraries = g_ptr_array_new_with_free_func(library_free);
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++)
        look_in(root, folders[i], driver);
    if (!nvidia_driver_library(driver, NVIDIA_CUDA) || !nvidia_driver_library(driver, NVIDIA_ML))
        return NULL;
    g_ptr_array_sort(driver->libraries, by_soname);
    return g_steal_pointer(&driver);
}
