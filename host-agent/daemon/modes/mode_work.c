/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/mode_work.h"

#include <string.h>

#include "lib/vgpu.h"
#include "lib/pci.h"
#include "lib/processes.h"
#include "host-agent/daemon/modes/binding.h"
#include "host-agent/daemon/modes/reconcile.h"

/* The users of a GPU, and those that prevent another mode of it. */

/* mdevctl has a definition of it, from which it can be started again. */
static gboolean is_defined(HostRoot *root, const Vgpu *vgpu)
{
    const char *parent =
        gpu_name_is_soft(vgpu->gpu) ? vgpu->gpu + strlen(GPU_SOFT_PREFIX) : vgpu->gpu;
    g_autofree char *path = g_build_filename(DEFINITIONS_DIR, parent, vgpu->uuid, NULL);

    return root_has(root, path);
}

/* The user of the vGPU's VFIO group; "a VM" if that cannot be determined. */
static char *vm_of(HostRoot *root, const char *uuid)
{
    g_auto(GStrv) nodes = nodes_of_vgpu(root, uuid);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    return holders->len ? g_strdup(((const Holder *)g_ptr_array_index(holders, 0))->who)
                        : g_strdup("a VM");
}

/* The state of a vGPU. @only_in_the_way: nothing for one that can be stopped. */
static void add_vgpu(GStrvBuilder *users, HostRoot *root, const Vgpu *vgpu,
                     gboolean only_in_the_way)
{
    gboolean defined = is_defined(root, vgpu);

    if (!g_str_equal(vgpu->device, "closed")) {
        g_autofree char *who = vm_of(root, vgpu->uuid);

        g_strv_builder_take(users,
                            g_strdup_printf("%s has vGPU %s (%s)", who, vgpu->uuid, vgpu->device));
    } else if (only_in_the_way && !defined) {
        g_strv_builder_take(
            users, g_strdup_printf("vGPU %s has no definition, so it would be lost; define it "
                                   "(mdevctl define --uuid=%s) or stop it (mdevctl stop --uuid=%s)",
                                   vgpu->uuid, vgpu->uuid, vgpu->uuid));
    } else if (!only_in_the_way) {
        g_strv_builder_take(users, g_strdup_printf("no VM has vGPU %s%s", vgpu->uuid,
                                                   defined ? "" : ", which has no definition"));
    }
}

/* Which users of a GPU are looked for. */
typedef enum {
    USERS_ALL,
    USERS_IN_THE_WAY,
    USERS_VMS,
} Which;

static void add_vgpus(GStrvBuilder *users, HostRoot *root, const Gpu *gpu, Which which)
{
    g_autoptr(GPtrArray) vgpus = vgpus_read(root);

    for (guint i = 0; i < vgpus->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(vgpus, i);

        if (g_str_equal(vgpu->gpu, gpu->pci->address) &&
            (which != USERS_VMS || !g_str_equal(vgpu->device, "closed")))
            add_vgpu(users, root, vgpu, which == USERS_IN_THE_WAY);
    }
}

static char *holder_sentence(const Holder *holder, const PciDevice *device)
{
    g_autofree char *advice = NULL;

    if (holder->persists)
        advice = g_strdup_printf(
            "; run \"" NVIDIA_SMI " -i %s -pm 0\", which makes it close the GPU", device->address);
    return g_strdup_printf("%s has /dev/%s of %s open%s", holder->who, holder->node,
                           device->address, advice ? advice : "");
}

/* Engines count as their vGPUs. The reader of NVIDIA's GPUs is stopped while a GPU is unbound. */
static void add_holders(GStrvBuilder *users, HostRoot *root, const PciDevice *device)
{
    g_auto(GStrv) nodes = nodes_of_device(root, device);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    for (guint i = 0; i < holders->len; i++) {
        const Holder *holder = g_ptr_array_index(holders, i);

        if (!holder->own && !holder->reader)
            g_strv_builder_take(users, holder_sentence(holder, device));
    }
}

static void add_partitions(GStrvBuilder *users, HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) names = partitioner_list(root, gpu);

    for (guint i = 0; names[i]; i++) {
        g_autoptr(PciDevice) function = pci_device_read(root, names[i]);
        char *network = function ? companion_network(root, function) : NULL;

        if (function)
            add_holders(users, root, function);
        if (network)
            g_strv_builder_take(users, network);
    }
}

/* Every VM, vGPU and process that uses @gpu now. To be freed. */
static GStrv users_list(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();

    add_vgpus(users, root, gpu, USERS_ALL);
    add_holders(users, root, gpu->pci);
    add_partitions(users, root, gpu);
    return g_strv_builder_end(users);
}

static GStrv list_vms(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();

    add_vgpus(users, root, gpu, USERS_VMS);
    return g_strv_builder_end(users);
}

GStrv users_in_the_way(HostRoot *root, const Gpu *gpu, GpuMode target)
{
    g_autoptr(GStrvBuilder) users = g_strv_builder_new();

    if (gpu->mode == GPU_MODE_SHARED && target != GPU_MODE_SHARED)
        add_vgpus(users, root, gpu, USERS_IN_THE_WAY);
    if (gpu->mode == GPU_MODE_PARTITIONED)
        add_partitions(users, root, gpu);
    /* These two modes change the driver, so processes lose its nodes. */
    if ((gpu->mode == GPU_MODE_PASSTHROUGH) != (target == GPU_MODE_PASSTHROUGH))
        add_holders(users, root, gpu->pci);
    if (gpu->mode != GPU_MODE_PASSTHROUGH && target == GPU_MODE_PASSTHROUGH)
        companions_add_users(users, root, gpu);
    return g_strv_builder_end(users);
}

GStrv users_vgpus(HostRoot *root, const Gpu *gpu)
{
    g_autoptr(GPtrArray) vgpus = vgpus_read(root);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; i < vgpus->len; i++) {
        const Vgpu *vgpu = g_ptr_array_index(vgpus, i);

        if (g_str_equal(vgpu->gpu, gpu->pci->address))
            g_strv_builder_add(uuids, vgpu->uuid);
    }
    return g_strv_builder_end(uuids);
}

gboolean users_has_engines(HostRoot *root, const Gpu *gpu)
{
    g_auto(GStrv) nodes = nodes_of_device(root, gpu->pci);
    g_autoptr(GPtrArray) holders = holders_find(root, (const char *const *)nodes);

    for (guint i = 0; i < holders->len; i++)
        if (((const Holder *)g_ptr_array_index(holders, i))->own)
            return TRUE;
    return FALSE;
}

/* A thread's own data: the main loop does not change it. */
typedef struct {
    HostRoot *root;
    char *address;
    GpuMode target;
    guint partitions;
    GStrv start;
    gboolean dry_run;
    Which which;
    UsersFunc users;
    StepFunc step;
    ReconciledFunc done;
    void *data;
} Job;

static void job_free(void *data)
{
    Job *job = data;

    host_root_unref(job->root);
    g_free(job->address);
    g_strfreev(job->start);
    g_free(job);
}

static GStrv find_users(const Job *job, const Gpu *gpu, GError **error)
{
    if (job->which == USERS_ALL)
        return users_list(job->root, gpu);
    if (job->which == USERS_VMS)
        return list_vms(job->root, gpu);
    return reconcile_possible(job->root, gpu, job->target, job->partitions, error)
               ? users_in_the_way(job->root, gpu, job->target)
               : NULL;
}

static void look_for_users(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Job *job = data;
    GError *error = NULL;
    g_autoptr(Gpu) gpu = reconcile_look(job->root, job->address, &error);
    GStrv users = gpu ? find_users(job, gpu, &error) : NULL;

    (void)source;
    (void)cancellable;
    if (users)
        g_task_return_pointer(task, users, (GDestroyNotify)g_strfreev);
    else
        g_task_return_error(task, error);
}

static void users_found(GObject *source, GAsyncResult *result, void *data)
{
    const Job *job = g_task_get_task_data(G_TASK(result));
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) users = g_task_propagate_pointer(G_TASK(result), &error);

    (void)source;
    job->users(users, error, data);
}

static void start_look(Job *job, HostRoot *root, const char *address, UsersFunc func, void *data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, users_found, data);

    job->root = host_root_ref(root);
    job->address = g_strdup(address);
    job->users = func;
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, look_for_users);
}

void mode_work_list(HostRoot *root, const char *address, UsersFunc func, void *data)
{
    Job *job = g_new0(Job, 1);

    job->which = USERS_ALL;
    start_look(job, root, address, func, data);
}

void mode_work_vms(HostRoot *root, const char *address, UsersFunc func, void *data)
{
    Job *job = g_new0(Job, 1);

    job->which = USERS_VMS;
    start_look(job, root, address, func, data);
}

void mode_work_in_the_way(HostRoot *root, const char *address, GpuMode target, guint partitions,
                          UsersFunc func, void *data)
{
    Job *job = g_new0(Job, 1);

    job->which = USERS_IN_THE_WAY;
    job->target = target;
    job->partitions = partitions;
    start_look(job, root, address, func, data);
}

/* A step on its way to the main loop. */
typedef struct {
    StepFunc func;
    void *data;
    char *sentence;
} Step;

static void step_free(void *data)
{
    Step *step = data;

    g_free(step->sentence);
    g_free(step);
}

static gboolean tell_step(void *data)
{
    const Step *step = data;

    step->func(step->sentence, step->data);
    return G_SOURCE_REMOVE;
}

/*
 * With the priority of a task's end, so that it comes before that. g_main_context_invoke() would
 * call it here if the main loop is not running.
 */
static void send_step(const char *sentence, void *data)
{
    g_autoptr(GSource) source = g_idle_source_new();
    const Job *job = data;
    Step *step = g_new0(Step, 1);

    step->func = job->step;
    step->data = job->data;
    step->sentence = g_strdup(sentence);
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, tell_step, step, step_free);
    g_source_attach(source, NULL);
}

static void do_reconcile(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    Job *job = data;
    GError *error = NULL;
    const Reconciliation want = {
        .root = job->root,
        .address = job->address,
        .target = job->target,
        .partitions = job->partitions,
        .start = (const char *const *)job->start,
        .dry_run = job->dry_run,
        .step = send_step,
        .data = job,
    };

    (void)source;
    (void)cancellable;
    if (converge_gpu(&want, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void gpu_converged(GObject *source, GAsyncResult *result, void *data)
{
    const Job *job = g_task_get_task_data(G_TASK(result));
    g_autoptr(GError) error = NULL;

    (void)source;
    g_task_propagate_boolean(G_TASK(result), &error);
    job->done(error, data);
}

void mode_work_reconcile(const ModeWork *work)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, gpu_converged, work->data);
    Job *job = g_new0(Job, 1);

    job->root = host_root_ref(work->root);
    job->address = g_strdup(work->address);
    job->target = work->target;
    job->partitions = work->partitions;
    job->start = g_strdupv((GStrv)work->start);
    job->dry_run = work->dry_run;
    job->step = work->step;
    job->done = work->done;
    job->data = work->data;
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, do_reconcile);
}
