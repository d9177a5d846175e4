/* SPDX-License-Identifier: MIT */
#include "host-agent/doctor/doctor.h"

#include <stdlib.h>
#include <gio/gio.h>

#include "lib/nvidia_driver.h"
#include "lib/gpu.h"
#include "lib/mdev.h"
#include "lib/program.h"
#include "lib/schedule_conf.h"
#include "lib/host_root.h"
#include "host-agent/doctor/findings.h"

/* The state of the existing vGPUs. */

static void check_engine(Examination *exam, const char *uuid)
{
    g_autofree char *device = mdev_path(uuid);
    g_autofree char *failure = sysfs_read(exam->root, device, "vgpu/failure");

    if (failure && *failure)
        finding_add(exam, FINDING_PROBLEM, "engine",
                    g_strdup_printf("the engine of vGPU %s gave up: %s", uuid, failure),
                    g_strdup_printf("journalctl -u vgpu-engine@%s has details; after the repair: "
                                    "systemctl restart vgpu-engine@%s",
                                    uuid, uuid));
    else if (failure)
        finding_ok(exam, "engine", "vGPU %s has no complaint", uuid);
}

static void check_engines(Examination *exam)
{
    g_auto(GStrv) uuids = mdev_list(exam->root);

    for (guint i = 0; uuids[i]; i++)
        check_engine(exam, uuids[i]);
}

/* Whether systemd understands the times in schedule.conf. vgpud ignores a file with an error. */

#define SCHEDULE_SUBJECT "schedule"

static void add_error(Examination *exam, const GError *error)
{
    gboolean is_asked = error->domain != G_IO_ERROR;

    finding_add(exam, FINDING_WARNING, SCHEDULE_SUBJECT, g_strdup(error->message),
                is_asked ? g_strdup("correct it, and run \"vgpuctl reload\"; until then the GPUs' "
                                    "modes change as the file said before, or not at all")
                         : g_strdup("systemd-analyze, of the package systemd, checks the times"));
}

/* An earlier entry of the same GPU that is due next at the same time; NULL: none. */
static const ScheduleEntry *find_rival(const ScheduleEntry *entry, const GPtrArray *entries)
{
    for (guint i = 0; i < entries->len && g_ptr_array_index(entries, i) != entry; i++) {
        const ScheduleEntry *other = g_ptr_array_index(entries, i);

        if (g_str_equal(other->gpu, entry->gpu) && other->next == entry->next)
            return other;
    }
    return NULL;
}

static void check_times(Examination *exam, const ScheduleEntry *entry, const GPtrArray *entries)
{
    const ScheduleEntry *rival = entry->next ? find_rival(entry, entries) : NULL;

    if (!entry->next)
        finding_add(
            exam, FINDING_WARNING, SCHEDULE_SUBJECT,
            g_strdup_printf("[at %s] is never due again: at=%s", entry->name, entry->calendar),
            g_strdup("remove it from " SCHEDULE_CONF));
    else if (rival)
        finding_add(exam, FINDING_WARNING, SCHEDULE_SUBJECT,
                    g_strdup_printf("[at %s] and [at %s] are for the same GPU, and are due next at "
                                    "the same time",
                                    rival->name, entry->name),
                    g_strdup("the last one in " SCHEDULE_CONF " holds; give them other times"));
}

static void check_schedule(Examination *exam)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = schedule_conf_load(exam->root, &error);
    guint before = exam->findings->len;

    for (guint i = 0; entries && i < entries->len && !error; i++) {
        ScheduleEntry *entry = g_ptr_array_index(entries, i);

        if (schedule_conf_check(entry, entries, &error))
            check_times(exam, entry, entries);
    }
    if (error)
        add_error(exam, error);
    else if (entries->len && exam->findings->len == before)
        finding_ok(exam, SCHEDULE_SUBJECT, "systemd understands its times");
}

/*
 * NVIDIA's driver and the CUDA door in front of it: does the door know every function of this
 * driver? The door exports what it knows, so the two libraries are compared.
 */

#define CUDA_SUBJECT "CUDA"
#define UVM          "/dev/nvidia-uvm"
#define MOST_SAID    5

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

static char *join_names(const GPtrArray *names)
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

static void compare_exports(Examination *exam, const char *version, const ElfFile *driver,
                            const ElfFile *door)
{
    g_autoptr(GHashTable) of_driver = elf_file_exports(driver);
    g_autoptr(GHashTable) of_door = elf_file_exports(door);
    const char *missing = missing_in(of_driver);
    guint count;
    g_autoptr(GPtrArray) unknown = find_unknown(of_driver, of_door, &count);
    g_autofree char *names = join_names(unknown);

    if (missing)
        finding_add(exam, FINDING_WARNING, CUDA_SUBJECT,
                    g_strdup_printf("libcuda of driver %s has no function %s, which the CUDA door "
                                    "needs",
                                    version, missing),
                    g_strdup("install a driver for CUDA 11.4 or later, or repair this one"));
    else if (unknown->len)
        finding_add(exam, FINDING_WARNING, CUDA_SUBJECT,
                    g_strdup_printf("driver %s has %u function%s that the CUDA door does not "
                                    "know: %s",
                                    version, unknown->len, unknown->len > 1 ? "s" : "", names),
                    g_strdup("programs that are linked with such a function call the driver "
                             "directly, beyond their limit; upgrade vgpu-governor"));
    else
        finding_ok(exam, CUDA_SUBJECT, "driver %s, the CUDA door knows all of its %u functions",
                   version, count);
}

static void compare_files(Examination *exam, const NvidiaDriver *driver, const char *door_path)
{
    const char *path = nvidia_driver_library(driver, NVIDIA_CUDA)->path;
    g_autoptr(GError) error = NULL;
    g_autoptr(ElfFile) of_driver = elf_file_open(exam->root, path, &error);
    g_autoptr(ElfFile) of_door = of_driver ? elf_file_open(exam->root, door_path, &error) : NULL;

    if (of_door)
        compare_exports(exam, driver->version, of_driver, of_door);
    else
        finding_add(exam, FINDING_WARNING, CUDA_SUBJECT, g_strdup(error->message),
                    g_strdup("install the package again that the file belongs to"));
}

static void check_uvm(Examination *exam)
{
    if (!host_has(exam, UVM))
        finding_add(exam, FINDING_WARNING, CUDA_SUBJECT,
                    g_strdup(UVM " is missing, so containers with a slice have no CUDA"),
                    g_strdup("run \"nvidia-modprobe -u -c 0\" at boot, before vgpud starts"));
}

/* Its nodes are what a guard gives Vulkan by. */
static void check_drm(Examination *exam)
{
    if (!host_has(exam, "/sys/module/nvidia_drm"))
        finding_add(exam, FINDING_INFO, CUDA_SUBJECT,
                    g_strdup("the module nvidia-drm is not loaded, so slices with the door guarded "
                             "and VMs have CUDA but no Vulkan"),
                    g_strdup("if you need them, load it: modprobe nvidia-drm modeset=1"));
}

/* A kernel of a tenant's that reads and writes its worker's memory is in the worker. */
static void check_host_memory(Examination *exam)
{
    g_autofree char *off = host_read(exam, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm");

    if (g_strcmp0(off, "N") == 0)
        finding_add(exam, FINDING_INFO, CUDA_SUBJECT,
                    g_strdup("the driver may let GPUs reach all memory of a process (HMM); CUDA of "
                             "slices with the door guarded asks it not to, and is refused if it "
                             "does so all the same"),
                    g_strdup("if the log of vgpu-guard@ says that CUDA is refused for that, put "
                             "\"options nvidia-uvm uvm_disable_hmm=1\" into /etc/modprobe.d and "
                             "load the module again"));
}

static void check_cuda(Examination *exam)
{
    g_autofree char *version = host_read(exam, "/sys/module/nvidia/version");
    g_autoptr(NvidiaDriver) driver = version ? nvidia_driver_find(exam->root) : NULL;
    const char *door = find_door(exam);

    if (!version)
        return;
    if (!driver) {
        finding_add(exam, FINDING_INFO, CUDA_SUBJECT,
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
        finding_add(exam, FINDING_WARNING, CUDA_SUBJECT,
                    g_strdup("the CUDA door is not installed, so slices have no CUDA"),
                    g_strdup("install the package vgpu-governor"));
    check_uvm(exam);
    check_drm(exam);
    check_host_memory(exam);
}

#define MODULES_LOAD "lib/modules-load.d/mdev-vgpu.conf"

static void free_finding(void *data)
{
    Finding *finding = data;

    g_free(finding->text);
    g_free(finding->advice);
    g_free(finding);
}

void finding_add(Examination *exam, Severity severity, const char *subject, char *text,
                 char *advice)
{
    Finding *finding = g_new0(Finding, 1);

    finding->severity = severity;
    finding->subject = subject;
    finding->text = text;
    finding->advice = advice;
    g_ptr_array_add(exam->findings, finding);
}

void finding_add_for_vms(Examination *exam, Severity severity, const char *subject, char *text,
                         char *advice)
{
    finding_add(exam, exam->for_vms ? severity : FINDING_INFO, subject, text, advice);
}

void finding_ok(Examination *exam, const char *subject, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    finding_add(exam, FINDING_OK, subject, g_strdup_vprintf(format, args), NULL);
    va_end(args);
}

gboolean host_has(const Examination *exam, const char *path)
{
    return root_has(exam->root, path);
}

char *host_read(const Examination *exam, const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);

    return sysfs_read(exam->root, dir, name);
}

GStrv host_list(const Examination *exam, const char *path)
{
    return sysfs_list(exam->root, path);
}

/* Parts that the module needs, or a module that is loaded without them. */
static gboolean is_for_vms(const Examination *exam)
{
    return host_has(exam, "/sys/module/mdev_vgpu") || host_has(exam, "/usr/" MODULES_LOAD) ||
           host_has(exam, "/usr/local/" MODULES_LOAD);
}

GPtrArray *doctor_examine(HostRoot *root)
{
    static Check *const checks[] = {
        check_module,     check_agent,    check_conf,     check_disk,  check_engines,
        check_arbiters,   check_schedule, check_vulkan,   check_cuda,  check_cuda_vms,
        check_udmabuf,    check_lsm,      check_kvm,      check_iommu, check_groups,
        check_kvm_window, check_cgroups,  check_programs, check_vms,   check_kubernetes,
        check_limits,
    };
    Examination exam = {
        .root = root,
        .findings = g_ptr_array_new_with_free_func(free_finding),
    };

    exam.for_vms = is_for_vms(&exam);
    for (guint i = 0; i < G_N_ELEMENTS(checks); i++)
        checks[i](&exam);
    return exam.findings;
}

const char *severity_name(Severity severity)
{
    static const char *const names[] = {
        [FINDING_OK] = "ok",
        [FINDING_INFO] = "info",
        [FINDING_WARNING] = "warning",
        [FINDING_PROBLEM] = "problem",
    };

    return names[severity];
}
