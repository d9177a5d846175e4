/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/reconcile.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/gpus.h"
#include "lib/control.h"
#include "lib/mdev.h"
#include "lib/nvidia_readings.h"
#include "lib/types.h"
#include "host-agent/daemon/modes/binding.h"
#include "host-agent/daemon/modes/kernel_call.h"
#include "host-agent/daemon/modes/mode_work.h"

/* A shared GPU in the vGPU driver, and its vGPUs in mdevctl. These calls block. */

/* The registrar's codes are exit codes; its sentences are used here, too. */
static gboolean set_failed(GError *cause, GError **error)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s", cause->message);
    g_error_free(cause);
    return FALSE;
}

static Plan *plan_of(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(GPtrArray) types = types_load(root, error);
    g_autoptr(GPtrArray) entries = types ? gpus_load(root, error) : NULL;
    GpuEntry *entry = entries ? gpus_find(entries, address) : NULL;
    GpuEntry unnamed = {.name = (char *)address, .overcommit = 1};

    return entries ? plan_new(root, entry ? entry : &unnamed, types, error) : NULL;
}

static gboolean has_no_driver(const GError *cause)
{
    return g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_NO_DRIVER);
}

gboolean share_has_driver(HostRoot *root)
{
    g_autoptr(GError) cause = NULL;
    int fd = control_open(root, &cause);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || !has_no_driver(cause);
}

/* Without the driver only vgpud enforces the ledger. */
static gboolean add_gpu(HostRoot *root, const Plan *plan, GError **error)
{
    gboolean existed, done;
    GError *cause = NULL;
    int fd = control_open(root, &cause);

    if (fd < 0 && has_no_driver(cause)) {
        g_error_free(cause);
        return containers_only_set(root, plan->gpu, error);
    }
    done = fd >= 0 && control_add(fd, root, plan, &existed, &cause);
    if (fd >= 0)
        close(fd);
    if (!done)
        g_propagate_error(error, cause);
    else
        containers_only_clear(root, plan->gpu);
    return done;
}

gboolean share_register(HostRoot *root, const char *address, GError **error)
{
    GError *cause = NULL;
    Plan *plan = plan_of(root, address, &cause);
    gboolean done = plan && add_gpu(root, plan, &cause);

    if (plan)
        plan_free(plan);
    return done || set_failed(cause, error);
}

/* Absent: the driver is not loaded, or the GPU is not registered. */
static gboolean is_absent(const GError *cause)
{
    return g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT) || has_no_driver(cause);
}

static gboolean done_or_absent(int fd, gboolean done, GError *cause, GError **error)
{
    if (fd >= 0)
        close(fd);
    if (done)
        return TRUE;
    if (!is_absent(cause))
        return set_failed(cause, error);
    g_error_free(cause);
    return TRUE;
}

/* If it is not registered, that is no error. */
static gboolean share_unregister(HostRoot *root, const char *address, GError **error)
{
    GError *cause = NULL;
    int fd = control_open(root, &cause);
    gboolean done = fd >= 0 && control_remove(fd, root, address, &cause);

    containers_only_clear(root, address);
    return done_or_absent(fd, done, cause, error);
}

gboolean share_drain(HostRoot *root, const char *address, gboolean on, GError **error)
{
    GError *cause = NULL;
    int fd = control_open(root, &cause);
    gboolean done = fd >= 0 && control_drain(fd, address, on, &cause);

    return done_or_absent(fd, done, cause, error);
}

/* Removes a vGPU that no VM uses; its definition stays. */
static gboolean share_stop_vgpu(HostRoot *root, const char *uuid, GError **error)
{
    g_autofree char *dir = mdev_path(uuid);
    g_autofree char *path = g_build_filename(dir, "remove", NULL);

    /* Another process may have been faster. */
    return kernel_write(root, path, "1", error) ||
           (!root_has(root, dir) && (g_clear_error(error), TRUE));
}

/* Starts a defined vGPU. If it is started already, that is no error. */
static gboolean share_start_vgpu(HostRoot *root, const char *uuid, GError **error)
{
    const char *const argv[] = {"mdevctl", "start", "--uuid", uuid, NULL};
    g_autofree char *dir = mdev_path(uuid);
    g_autoptr(GError) cause = NULL;

    if (root_has(root, dir) || kernel_run(argv, NULL, &cause))
        return TRUE;
    /* When the GPU is registered, udev starts the vGPUs with automatic start at the same time. */
    if (root_has(root, dir))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

/*
 * Engines end when their vGPU is removed; they must release the GPU before its driver is unbound.
 */
#define ENGINES_LIMIT_MS 15000
#define POLL_US          50000

G_GNUC_PRINTF(2, 3)
static void say_step(const Reconciliation *want, const char *format, ...)
{
    g_autofree char *sentence = NULL;
    va_list values;

    va_start(values, format);
    sentence = g_strdup_vprintf(format, values);
    va_end(values);
    want->step(sentence, want->data);
}

Gpu *reconcile_look(HostRoot *root, const char *address, GError **error)
{
    g_autoptr(GPtrArray) entries = gpus_load(root, error);
    const GpuEntry *entry = entries ? gpus_find(entries, address) : NULL;
    PciDevice *device = NULL;

    if (!entries)
        return NULL;
    if (!gpu_name_is_soft(address))
        device = pci_device_read(root, address);
    else if (entry)
        device = pci_device_soft(address);
    if (!device) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "this host has no GPU %s (any more)",
                    address);
        return NULL;
    }
    return gpu_new(root, device, "", entry);
}

void reconcile_set_in_use(GError **error, const char *address, GpuMode target,
                          const char *const *users)
{
    g_autofree char *list = g_strjoinv("\n  ", (char **)users);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "GPU %s can't be switched to %s while it is in use:\n  %s", address,
                gpu_mode_name(target), list);
}

static gboolean must_be_free(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) users = users_in_the_way(want->root, gpu, want->target);

    for (guint i = 0; want->dry_run && users[i]; i++)
        say_step(want, "it must wait until it is no longer in use: %s", users[i]);
    if (!users[0] || want->dry_run)
        return TRUE;
    reconcile_set_in_use(error, want->address, want->target, (const char *const *)users);
    return FALSE;
}

static gboolean wait_for_engines(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    for (guint waited = 0; waited < ENGINES_LIMIT_MS; waited += POLL_US / 1000) {
        if (!users_has_engines(want->root, gpu))
            return TRUE;
        g_usleep(POLL_US);
    }
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                "GPU %s: engines of its vGPUs have not ended; see \"systemctl status "
                "'vgpu-engine@*'\"",
                want->address);
    return FALSE;
}

static gboolean leave_shared(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) uuids = users_vgpus(want->root, gpu);

    for (guint i = 0; uuids[i]; i++) {
        say_step(want, "vGPU %s is stopped; it is started again when the GPU is shared again",
                 uuids[i]);
        if (want->dry_run)
            continue;
        if (!share_stop_vgpu(want->root, uuids[i], error))
            return FALSE;
    }
    if (gpu->containers_only)
        say_step(want, "GPU %s is no longer shared with containers", want->address);
    else
        say_step(want, "GPU %s is unregistered from the vGPU driver", want->address);
    if (want->dry_run)
        return TRUE;
    return share_unregister(want->root, want->address, error) && wait_for_engines(want, gpu, error);
}

/* The way out of the mode shared may have been interrupted before its engines had ended. */
static gboolean leave_host(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    return want->target == GPU_MODE_SHARED || want->dry_run || wait_for_engines(want, gpu, error);
}

/*
 * While a process has the group open, nobody else can open it, or a device of it: no VM takes the
 * GPU between the look at its users and the end.
 */
static int hold_group(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    g_autofree char *path = g_build_filename("/dev/vfio", gpu->pci->iommu_group, NULL);
    int fd = kernel_hold(want->root, path);

    if (fd < 0)
        g_set_error(error, AGENT_ERROR, errno == EBUSY ? AGENT_ERROR_IN_USE : AGENT_ERROR_FAILED,
                    errno == EBUSY ? "GPU %s: a VM has just taken it (%s: %s)"
                                   : "GPU %s: cannot be reserved while it is switched (%s: %s)",
                    want->address, path, g_strerror(errno));
    return fd;
}

static gboolean give_back_all(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    g_auto(GStrv) moved = companions_moved(want->root, gpu);

    for (guint i = 0; moved[i]; i++) {
        say_step(want, "%s, of the same IOMMU group, goes back to its driver", moved[i]);
        if (!want->dry_run && !binding_give_back(want->root, moved[i], error))
            return FALSE;
    }
    say_step(want, "GPU %s goes back to the vendor's driver", want->address);
    return want->dry_run || binding_give_back(want->root, want->address, error);
}

static gboolean leave_passthrough(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    gboolean done;
    int fd;

    if (want->dry_run || !gpu->pci->iommu_group)
        return give_back_all(want, gpu, error);
    fd = hold_group(want, gpu, error);
    if (fd < 0)
        return FALSE;
    done = give_back_all(want, gpu, error);
    close(fd);
    return done;
}

static gboolean leave_partitioned(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    const Partitioner *partitioner = partitioner_of(want->root, gpu);

    if (!partitioner)
        return TRUE;
    say_step(want, "GPU %s: its partitions (%s) are removed", want->address, partitioner->name);
    return want->dry_run || partitioner->remove(want->root, gpu, error);
}

static gboolean leave_mode(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    switch (gpu->mode) {
    case GPU_MODE_SHARED:
        return leave_shared(want, gpu, error);
    case GPU_MODE_PASSTHROUGH:
        return leave_passthrough(want, gpu, error);
    case GPU_MODE_PARTITIONED:
        return leave_partitioned(want, gpu, error);
    case GPU_MODE_HOST:
        return leave_host(want, gpu, error);
    }
    return TRUE;
}

/* It was interrupted, or unbound by somebody. */
static gboolean enter_host(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    if (gpu_name_is_soft(want->address) || gpu->pci->driver)
        return TRUE;
    return give_back_all(want, gpu, error);
}

static gboolean has_nvidia_driver(const Gpu *gpu)
{
    return g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) == 0;
}

#define READER     "vgpu-nvidia-readings.service"
#define READER_DIR "/run/vgpu/readings"

static gboolean stop_reader(HostRoot *root, GError **error)
{
    static const char *const stop[] = {"systemctl", "stop", READER, NULL};

    return !root_has(root, READER_DIR) || kernel_run(stop, NULL, error);
}

/* Its first reading may take long. */
static void start_reader(HostRoot *root)
{
    static const char *const start[] = {"systemctl", "start", "--no-block", READER, NULL};
    g_autoptr(GError) error = NULL;

    if (root_has(root, READER_DIR) && !kernel_run(start, NULL, &error))
        g_message("%s", error->message);
}

/*
 * NVIDIA's driver does not let itself be unbound while a process has the GPU open, and the writer
 * waits for it and cannot be killed. Our reader opens all GPUs twice a minute.
 */
static gboolean unbind_for_vm(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    gboolean done;

    if (!has_nvidia_driver(gpu))
        return binding_to_vfio(want->root, want->address, error);
    if (!stop_reader(want->root, error))
        return FALSE;
    done = binding_to_vfio(want->root, want->address, error);
    start_reader(want->root);
    return done;
}

static gboolean enter_passthrough(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    if (!want->dry_run && !binding_load_vfio(want->root, error))
        return FALSE;
    for (guint i = 0; gpu->group_in_use[i]; i++) {
        say_step(want, "%s, of the same IOMMU group, goes to vfio-pci too", gpu->group_in_use[i]);
        if (!want->dry_run && !binding_to_vfio(want->root, gpu->group_in_use[i], error))
            return FALSE;
    }
    say_step(want, "GPU %s goes to vfio-pci", want->address);
    return want->dry_run || unbind_for_vm(want, gpu, error);
}

static gboolean enter_partitioned(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    const Partitioner *partitioner = partitioner_of(want->root, gpu);
    g_autofree char *count =
        want->partitions ? g_strdup_printf("%u", want->partitions) : g_strdup("as many as can be");

    say_step(want, "GPU %s is divided into partitions by %s: %s", want->address, partitioner->name,
             count);
    return want->dry_run || partitioner->make(want->root, gpu, want->partitions, error);
}

static gboolean enter_shared(const Reconciliation *want, GError **error)
{
    if (share_has_driver(want->root))
        say_step(want, "GPU %s is registered with the vGPU driver", want->address);
    else
        say_step(want,
                 "GPU %s is shared with containers and jobs, but not with VMs: the kernel module "
                 "mdev_vgpu is not loaded",
                 want->address);
    if (!want->dry_run && !share_register(want->root, want->address, error))
        return FALSE;
    for (guint i = 0; want->start && want->start[i]; i++) {
        g_autoptr(GError) cause = NULL;

        say_step(want, "vGPU %s is started again", want->start[i]);
        /* Its definition may have been removed meanwhile: the GPU is shared nevertheless. */
        if (!want->dry_run && !share_start_vgpu(want->root, want->start[i], &cause))
            say_step(want, "vGPU %s could not be started: %s", want->start[i], cause->message);
    }
    return TRUE;
}

static gboolean enter_mode(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    switch (want->target) {
    case GPU_MODE_HOST:
        return enter_host(want, gpu, error);
    case GPU_MODE_SHARED:
        return enter_host(want, gpu, error) && enter_shared(want, error);
    case GPU_MODE_PASSTHROUGH:
        return enter_passthrough(want, gpu, error);
    case GPU_MODE_PARTITIONED:
        return enter_host(want, gpu, error) && enter_partitioned(want, gpu, error);
    }
    return TRUE;
}

static gboolean set_impossible(GError **error, const Gpu *gpu, GpuMode target, const char *why)
{
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "GPU %s can't be %s: %s",
                gpu->pci->address, gpu_mode_name(target), why);
    return FALSE;
}

static gboolean can_be_partitioned(HostRoot *root, const Gpu *gpu, guint partitions, GError **error)
{
    const Partitioner *partitioner = partitioner_of(root, gpu);

    if (!partitioner)
        return set_impossible(error, gpu, GPU_MODE_PARTITIONED,
                              "it has no SR-IOV virtual functions, and no partitions of its "
                              "vendor's kind");
    if (partitions <= partitioner->most(gpu))
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "GPU %s can have %u partitions (%s), not %u", gpu->pci->address,
                partitioner->most(gpu), partitioner->name, partitions);
    return FALSE;
}

gboolean reconcile_possible(HostRoot *root, const Gpu *gpu, GpuMode target, guint partitions,
                            GError **error)
{
    if (target > GPU_MODE_SHARED && gpu_name_is_soft(gpu->pci->address))
        return set_impossible(error, gpu, target, "it has no PCI device; it can be host or shared");
    if (target == GPU_MODE_PASSTHROUGH && !gpu->pci->iommu_group)
        return set_impossible(error, gpu, target,
                              "the host has no IOMMU, or it is off; turn it on in the firmware and "
                              "on the kernel's command line (intel_iommu=on)");
    /*
     * MIG cannot be queried while the GPU is bound to vfio-pci; it is queried again after the
     * detach.
     */
    if (target == GPU_MODE_PARTITIONED && gpu->mode != GPU_MODE_PASSTHROUGH)
        return can_be_partitioned(root, gpu, partitions, error);
    return TRUE;
}

static gboolean must_be_possible(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    return reconcile_possible(want->root, gpu, want->target, want->partitions, error);
}

/*
 * In persistence mode NVIDIA's driver never lets the GPU be unbound either, though no process has
 * it open.
 */
static gboolean must_let_go(const Reconciliation *want, const Gpu *gpu, GError **error)
{
    g_autoptr(GError) cause = NULL;

    if (want->target != GPU_MODE_PASSTHROUGH || !has_nvidia_driver(gpu) ||
        !nvidia_is_persistent(gpu))
        return TRUE;
    g_set_error(&cause, AGENT_ERROR, AGENT_ERROR_FAILED,
                "GPU %s can't be switched to passthrough: NVIDIA's driver keeps it initialized "
                "(persistence mode); run \"" NVIDIA_SMI " -i %s -pm 0\" first",
                want->address, want->address);
    if (want->dry_run)
        say_step(want, "%s", cause->message);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return want->dry_run;
}

/* An incomplete switch to passthrough, or an incomplete way back. */
static gboolean is_unbound(const Gpu *gpu)
{
    return !gpu_name_is_soft(gpu->pci->address) && !gpu->pci->driver;
}

gboolean converge_gpu(const Reconciliation *want, GError **error)
{
    g_autoptr(Gpu) gpu = reconcile_look(want->root, want->address, error);
    g_autoptr(Gpu) left = NULL;

    if (!gpu || !must_be_possible(want, gpu, error) || !must_be_free(want, gpu, error) ||
        !must_let_go(want, gpu, error))
        return FALSE;
    if (gpu->mode != want->target && !leave_mode(want, gpu, error))
        return FALSE;
    if (want->dry_run)
        return enter_mode(want, gpu, error);
    left = reconcile_look(want->root, want->address, error);
    if (!left || !must_be_possible(want, left, error))
        return FALSE;
    /* Companions that are still bound to vfio-pci although the GPU itself is not. */
    if (want->target != GPU_MODE_PASSTHROUGH && !is_unbound(left)) {
        g_auto(GStrv) moved = companions_moved(want->root, left);

        if (moved[0] && !give_back_all(want, left, error))
            return FALSE;
    }
    return must_be_free(want, left, error) && enter_mode(want, left, error);
}
