/* SPDX-License-Identifier: MIT */
#include "mdev-driver/registrar/commands.h"

#include <unistd.h>

#include "lib/conf.h"
#include "lib/control.h"
#include "lib/gpus.h"
#include "lib/pci.h"
#include "lib/mdev.h"
#include "lib/types.h"

/* Handles one GPU and returns its exit code; the command ends with the first one that is not 0. */
typedef int (*PlanFunc)(const Session *session, int fd, const Plan *plan);

static int report_error(const Session *session, const GError *error)
{
    fprintf(session->log, "%s\n", error->message);
    return error->domain == REGISTRAR_ERROR ? error->code : REGISTRAR_ERROR_REFUSED;
}

/* The driver is not affected: containers, and guests that map no such memory, work nevertheless. */
static void log_host_kernel(const Session *session, const Plan *plan)
{
    g_autofree char *release = host_kernel_release(session->root);

    if (host_kernel_refuses(release, plan->driver))
        fprintf(session->log,
                "GPU %s: KVM of Linux %s refuses memory of %s, and a VM that maps it "
                "stops; " HOST_KERNEL_NEWER "\n",
                plan->gpu, release, plan->driver);
}

static void log_plan(const Session *session, const Plan *plan, const char *done)
{
    g_autofree char *vram = size_format(plan->vram_bytes);
    g_autofree char *capacity = size_format(plan->capacity_bytes);

    fprintf(session->log, "GPU %s: %s: %u types on %s of memory (from %s)%s%s\n", plan->gpu, done,
            plan->ntypes, vram, plan->vram_source,
            plan->capacity_bytes != plan->vram_bytes ? ", of which may be promised: " : "",
            plan->capacity_bytes != plan->vram_bytes ? capacity : "");
    for (guint i = 0; i < plan->left_out->len; i++)
        fprintf(session->log, "GPU %s: %s\n", plan->gpu,
                (const char *)g_ptr_array_index(plan->left_out, i));
    log_host_kernel(session, plan);
}

/* Whether the command applies to @entry; other entries are ignored. */
static gboolean is_selected(const Session *session, const GpuEntry *entry)
{
    return entry->mode == GPU_MODE_SHARED &&
           (!session->gpu || g_str_equal(session->gpu, entry->name));
}

/*
 * Plans of the selected GPUs. With --all, a GPU that is absent, or has no driver yet, is skipped
 * with a message: udev registers it when that changes. A broken file fails all.
 */
static GPtrArray *make_plans(const Session *session, int *result, GError **error)
{
    g_autoptr(GPtrArray) plans = g_ptr_array_new_with_free_func((GDestroyNotify)plan_free);
    g_autoptr(GPtrArray) types = types_load(session->root, error);
    g_autoptr(GPtrArray) entries = types ? gpus_load(session->root, error) : NULL;
    gboolean found = FALSE;

    if (!entries)
        return NULL;
    for (guint i = 0; i < entries->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(entries, i);
        g_autoptr(GError) cause = NULL;
        Plan *plan;

        if (!is_selected(session, entry))
            continue;
        found = TRUE;
        plan = plan_new(session->root, entry, types, &cause);
        if (plan) {
            g_ptr_array_add(plans, plan);
        } else if (g_error_matches(cause, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return NULL;
        } else {
            int code = report_error(session, cause);

            if (session->gpu || code != REGISTRAR_ERROR_ABSENT)
                *result = *result ? *result : code;
        }
    }
    if (session->gpu && !found) {
        g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_NOT_SHARED,
                    "GPU %s: not shared, so it is left alone; to share it, put [gpu %s] with "
                    "mode=shared into " GPUS_CONF,
                    session->gpu, session->gpu);
        return NULL;
    }
    return g_steal_pointer(&plans);
}

static int foreach_plan(const Session *session, PlanFunc func)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) plans = NULL;
    int result = 0;
    int fd;

    plans = make_plans(session, &result, &error);
    if (!plans)
        return report_error(session, error);
    if (!plans->len)
        return result;
    fd = control_open(session->root, &error);
    if (fd < 0)
        return report_error(session, error);
    for (guint i = 0; i < plans->len; i++) {
        int code = func(session, fd, g_ptr_array_index(plans, i));

        result = result ? result : code;
    }
    close(fd);
    return result;
}

static int add_plan(const Session *session, int fd, const Plan *plan)
{
    g_autoptr(GError) error = NULL;
    gboolean existed;

    if (!control_add(fd, session->root, plan, &existed, &error))
        return report_error(session, error);
    if (existed)
        fprintf(session->log, "GPU %s: registered already, left as it is\n", plan->gpu);
    else
        log_plan(session, plan, "registered");
    return 0;
}

static int run_add(const Session *session)
{
    return foreach_plan(session, add_plan);
}

static int update_plan(const Session *session, int fd, const Plan *plan)
{
    g_autoptr(GError) error = NULL;

    if (control_update(fd, session->root, plan, &error)) {
        log_plan(session, plan, "updated");
        return 0;
    }
    if (!session->gpu && g_error_matches(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT)) {
        report_error(session, error);
        return 0;
    }
    return report_error(session, error);
}

static int run_update(const Session *session)
{
    return foreach_plan(session, update_plan);
}

typedef gboolean (*GpuFunc)(int fd, HostRoot *root, const char *gpu, GError **error);

static int do_gpu(const Session *session, int fd, const char *gpu, GpuFunc func, const char *done)
{
    g_autoptr(GError) error = NULL;

    if (func(fd, session->root, gpu, &error)) {
        fprintf(session->log, "GPU %s: %s\n", gpu, done);
        return 0;
    }
    /* With --all, the kernel's list includes other drivers' mdev parents. */
    if (!session->gpu && g_error_matches(error, REGISTRAR_ERROR, REGISTRAR_ERROR_ABSENT))
        return 0;
    return report_error(session, error);
}

/* Uses the kernel's state, not the files, so that it works with broken files, too. */
static int foreach_gpu(const Session *session, GpuFunc func, const char *done)
{
    g_auto(GStrv) gpus = mdev_gpus(session->root);
    g_autoptr(GError) error = NULL;
    int fd = control_open(session->root, &error);
    int result = 0;

    if (fd < 0)
        return report_error(session, error);
    if (session->gpu)
        result = do_gpu(session, fd, session->gpu, func, done);
    for (guint i = 0; !session->gpu && gpus[i]; i++) {
        int code = do_gpu(session, fd, gpus[i], func, done);

        result = result ? result : code;
    }
    close(fd);
    return result;
}

static int run_remove(const Session *session)
{
    return foreach_gpu(session, control_remove, "removed");
}

static gboolean drain_gpu(int fd, HostRoot *root, const char *gpu, GError **error)
{
    (void)root;
    return control_drain(fd, gpu, TRUE, error);
}

static int run_drain(const Session *session)
{
    return foreach_gpu(
        session, drain_gpu,
        "drained: no new vGPU is made, and no VM can open one; VMs keep the ones that they use");
}

static gboolean resume_gpu(int fd, HostRoot *root, const char *gpu, GError **error)
{
    (void)root;
    return control_drain(fd, gpu, FALSE, error);
}

static int run_resume(const Session *session)
{
    return foreach_gpu(session, resume_gpu, "no longer drained");
}

static void print_plan(const Session *session, const Plan *plan)
{
    g_autofree char *vram = size_format(plan->vram_bytes);

    fprintf(session->out, "GPU %s (%s), %s of memory from %s\n", plan->gpu,
            plan->driver ? plan->driver : "no PCI device", vram, plan->vram_source);
    fprintf(session->out, "  %-31s %9s %9s %6s %4s %8s %4s %4s\n", "TYPE", "VRAM", "WINDOW",
            "WEIGHT", "CAP", "PRIORITY", "MAX", "CUDA");
    for (guint i = 0; i < plan->ntypes; i++) {
        const struct vgpu_type_desc *type = &plan->types[i];
        g_autofree char *size = size_format(type->vram_bytes);
        g_autofree char *window = size_format(type->window_bytes);
        guint64 most = plan->capacity_bytes / type->vram_bytes;

        if (type->max_instances)
            most = MIN(most, type->max_instances);
        fprintf(session->out, "  %-31s %9s %9s %6u %3u%% %8u %4" G_GUINT64_FORMAT " %4s\n",
                type->name, size, window, type->weight, type->cap, type->priority, most,
                type->cuda ? "yes" : "no");
    }
    for (guint i = 0; i < plan->left_out->len; i++)
        fprintf(session->out, "  %s\n", (const char *)g_ptr_array_index(plan->left_out, i));
}

static int run_check(const Session *session)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) plans = NULL;
    int result = 0;

    plans = make_plans(session, &result, &error);
    if (!plans)
        return report_error(session, error);
    for (guint i = 0; i < plans->len; i++)
        print_plan(session, g_ptr_array_index(plans, i));
    if (!plans->len)
        fprintf(session->out, "nothing would be registered: " GPUS_CONF " shares no GPU that is "
                              "there\n");
    return result;
}

static int run_list(const Session *session)
{
    g_auto(GStrv) gpus = mdev_gpus(session->root);

    for (guint i = 0; gpus[i]; i++) {
        g_autoptr(GPtrArray) types = mdev_types(session->root, gpus[i]);

        fprintf(session->out, "GPU %s\n  %-31s %5s %5s  %s\n", gpus[i], "TYPE", "VGPUS", "FREE",
                "DESCRIPTION");
        for (guint j = 0; j < types->len; j++) {
            const MdevType *type = g_ptr_array_index(types, j);

            fprintf(session->out, "  %-31s %5u %5u  %s\n", type->id, g_strv_length(type->uuids),
                    type->available, type->description);
        }
    }
    if (!gpus[0])
        fprintf(session->out, "no GPU is registered\n");
    return 0;
}

static const Command commands[] = {
    {"add", "register GPUs that gpus.conf shares", TRUE, run_add},
    {"remove", "unregister GPUs without vGPUs", TRUE, run_remove},
    {"update", "bring memory and types of registered GPUs up to date", TRUE, run_update},
    {"drain", "drain GPUs: no new vGPU, and no VM can open one", TRUE, run_drain},
    {"resume", "end that", TRUE, run_resume},
    {"check", "read the files, print the result, change nothing", FALSE, run_check},
    {"list", "registered GPUs, their types and what is free", FALSE, run_list},
};

const Command *command_find(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (g_str_equal(commands[i].name, name))
            return &commands[i];
    }
    return NULL;
}

char *command_summary(void)
{
    GString *text = g_string_new("Commands:\n");

    for (guint i = 0; i < G_N_ELEMENTS(commands); i++)
        g_string_append_printf(text, "  %-7s %-11s %s\n", commands[i].name,
                               commands[i].takes_gpu ? "GPU|--all" : "", commands[i].help);
    return g_string_free(text, FALSE);
}
