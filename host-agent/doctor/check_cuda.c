/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's driver and the CUDA door in front of it: does the door know every function of this
 * driver? The door exports what it knows, so the two libraries are compared.
 */
#include "host-agent/doctor/findings.h"
#include "lib/elf_file.h"
#include "lib/nvidia_driver.h"

#define SUBJECT   "CUDA"
#define UVM       "/dev/nvidia-uvm"
#define MOST_SAID 5

static const char *find_door(const Examination *exam)
{
    static const char *const places[] = {"/usr/lib/mdev-vgpu/cuda/" NVIDIA_CUDA,
                                         "/usr/local/lib/mdev-vgpu/cuda/" NVIDIA_CUDA};

    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        if (host_has(exam, places[i]))
            return places[i];
    return NULL;
}

/* "cuMemAlloc_v2": not those of debuggers (cudbg…), nor of libraries below it. */
static gboolean is_function(const char *name)
{
    return g_str_has_prefix(name, "cu") && g_ascii_isupper(name[2]);
}

/* Sorted; @count: of the driver's functions. */
static GPtrArray *find_unknown(GHashTable *of_driver, GHashTable *of_door, guint *count)
{
    GPtrArray *unknown = g_ptr_array_new();
    GHashTableIter iter;
    void *name;

    *count = 0;
    g_hash_table_iter_init(&iter, of_driver);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (!is_function(name))
            continue;
        ++*count;
        if (!g_hash_table_contains(of_door, name))
            g_ptr_array_add(unknown, name);
    }
    g_ptr_array_sort_values(unknown, (GCompareFunc)g_strcmp0);
    return unknown;
}

static char *join(const GPtrArray *names)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < names->len && i < MOST_SAID; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "",
                               (const char *)g_ptr_array_index(names, i));
    if (names->len > MOST_SAID)
        g_string_append(text, ", …");
    return g_string_free(text, FALSE);
}

/* Without these the door limits nothing: the file is not NVIDIA's libcuda, or an ancient one. */
static const char *missing_in(GHashTable *of_driver)
{
    static const char *const needed[] = {"cuInit", "cuCtxGetDevice", "cuMemAlloc_v2",
                                         "cuMemFree_v2", "cuMemGetInfo_v2"};

    for (guint i = 0; i < G_N_ELEMENTS(needed); i++)
        if (!g_hash_table_contains(of_driver, needed[i]))
            return needed[i];
    return NULL;
}

static void compare(Examination *exam, const char *version, const ElfFile *driver,
                    const ElfFile *door)
{
    g_autoptr(GHashTable) of_driver = elf_file_exports(driver);
    g_autoptr(GHashTable) of_door = elf_file_exports(door);
    const char *missing = missing_in(of_driver);
    guint count;
    g_autoptr(GPtrArray) unknown = find_unknown(of_driver, of_door, &count);
    g_autofree char *names = join(unknown);

    if (missing)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf("libcuda of driver %s has no function %s, which the CUDA door "
                                    "needs",
                                    version, missing),
                    g_strdup("install a driver for CUDA 11.4 or later, or repair this one"));
    else if (unknown->len)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf("driver %s has %u function%s that the CUDA door does not "
                                    "know: %s",
                                    version, unknown->len, unknown->len > 1 ? "s" : "", names),
                    g_strdup("programs that are linked with such a function call the driver "
                             "directly, beyond their limit; upgrade vgpu-governor"));
    else
        finding_ok(exam, SUBJECT, "driver %s, the CUDA door knows all of its %u functions", version,
                   count);
}

static void compare_files(Examination *exam, const NvidiaDriver *driver, const char *door_path)
{
    const char *path = nvidia_driver_library(driver, NVIDIA_CUDA)->path;
    g_autoptr(GError) error = NULL;
    g_autoptr(ElfFile) of_driver = elf_file_open(exam->root, path, &error);
    g_autoptr(ElfFile) of_door = of_driver ? elf_file_open(exam->root, door_path, &error) : NULL;

    if (of_door)
        compare(exam, driver->version, of_driver, of_door);
    else
        finding_add(exam, FINDING_WARNING, SUBJECT, g_strdup(error->message),
                    g_strdup("install the package again that the file belongs to"));
}

static void check_uvm(Examination *exam)
{
    if (!host_has(exam, UVM))
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup(UVM " is missing, so containers with a slice have no CUDA"),
                    g_strdup("run \"nvidia-modprobe -u -c 0\" at boot, before vgpud starts"));
}

void check_cuda(Examination *exam)
{
    g_autofree char *version = host_read(exam, "/sys/module/nvidia/version");
    g_autoptr(NvidiaDriver) driver = version ? nvidia_driver_find(exam->root) : NULL;
    const char *door = find_door(exam);

    if (!version)
        return;
    if (!driver) {
        finding_add(exam, FINDING_INFO, SUBJECT,
                    g_strdup_printf("the module is version %s, and its libcuda and NVML are not "
                                    "installed, so slices have no CUDA",
                                    version),
                    g_strdup("install the driver's libraries of that version if containers or "
                             "programs need CUDA"));
        return;
    }
    if (door)
        compare_files(exam, driver, door);
    else
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup("the CUDA door is not installed, so slices have no CUDA"),
                    g_strdup("install the package vgpu-governor"));
    check_uvm(exam);
}
