/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/mode_switch.h"

#include "host-agent/daemon/modes/mode_work.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/daemon/modes/share.h"
#include "host-agent/daemon/modes/users.h"
#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/store/mode_journal.h"
#include "lib/bus.h"

/*
 * No event reports that a process closes a device node, so users are polled while the switch waits
 * for them.
 */
#define LOOK_AGAIN_MS 1000

/**
 * struct ModeSwitch
 * @entry: its row in the journal
 * @old_partitions: the previous setting
 * @failure: why it is being undone; NULL: it is not
 * @waits_for: the users that were last reported
 * @steps: of char *
 * @cancelled: it must not wait any more
 * @abandoned: only the thread's end is waited for
 */
struct ModeSwitch {
    Host *host;
    JournalEntry entry;
    guint old_partitions;
    gboolean drain;
    gboolean dry_run;
    gboolean resumed;
    gint64 deadline;
    GError *failure;
    char *waits_for;
    GPtrArray *steps;
    guint source;
    gboolean cancelled;
    gboolean abandoned;
    SwitchDone done;
    void *data;
};

static void look(ModeSwitch *change);

static void switch_free(ModeSwitch *change)
{
    if (change->source)
        g_source_remove(change->source);
    g_clear_error(&change->failure);
    g_free(change->entry.gpu);
    g_free(change->waits_for);
    g_ptr_array_unref(change->steps);
    g_free(change);
}

void mode_switch_abandon(ModeSwitch *change)
{
    static const char *const no_steps[] = {NULL};
    g_autoptr(GError) error = g_error_new(
        AGENT_ERROR, AGENT_ERROR_FAILED,
        "vgpud ends; the switch of GPU %s to %s is finished or undone at its next start",
        change->entry.gpu, gpu_mode_name(change->entry.target));

    change->done(change, no_steps, error, change->data);
    /* A source waits, so no thread runs. */
    if (change->source)
        switch_free(change);
    else
        change->abandoned = TRUE;
}

const char *mode_switch_gpu(const ModeSwitch *change)
{
    return change->entry.gpu;
}

GpuMode mode_switch_target(const ModeSwitch *change)
{
    return change->entry.target;
}

gboolean mode_switch_is_dry(const ModeSwitch *change)
{
    return change->dry_run;
}

static void end(ModeSwitch *change, const GError *error)
{
    g_ptr_array_add(change->steps, NULL);
    change->done(change, (const char *const *)change->steps->pdata, error, change->data);
    switch_free(change);
}

static void add_step(const char *sentence, void *data)
{
    ModeSwitch *change = data;
    VgpuGpu *interface;

    if (change->abandoned)
        return;
    g_ptr_array_add(change->steps, g_strdup(sentence));
    if (change->dry_run)
        return;
    g_message("%s", sentence);
    interface = host_gpu_interface(change->host, change->entry.gpu);
    if (interface)
        vgpu_gpu_emit_progress(interface, sentence);
}

static void set_drain(const ModeSwitch *change, gboolean on)
{
    g_autoptr(GError) error = NULL;

    if (!share_drain(host_root(change->host), change->entry.gpu, on, &error))
        g_warning("%s", error->message);
}

/* Allows new users again, unless an operator drains the GPU. */
static void resume(const ModeSwitch *change)
{
    set_drain(change, journal_drained(host_db(change->host), change->entry.gpu));
}

void mode_switch_forget_started(const Host *host, const char *address)
{
    const char *root = host_root(host);
    g_autoptr(Gpu) gpu = reconcile_look(root, address, NULL);
    g_auto(GStrv) uuids = gpu ? users_vgpus(root, gpu) : NULL;

    for (guint i = 0; uuids && uuids[i]; i++)
        journal_forget_stopped(host_db(host), uuids[i]);
}

/* Nothing was done: only the drain is undone. */
static void give_up(ModeSwitch *change, const GError *error)
{
    mode_switch_forget_started(change->host, change->entry.gpu);
    resume(change);
    journal_end(host_db(change->host), change->entry.gpu);
    end(change, error);
}

static gboolean enter_phase(ModeSwitch *change, gboolean switching, GError **error)
{
    change->entry.switching = switching;
    return journal_write(host_db(change->host), &change->entry, error);
}

static void finish(ModeSwitch *change)
{
    Db *db = host_db(change->host);

    /* It may have stayed registered, and be drained for the switch. */
    if (change->entry.target == GPU_MODE_SHARED) {
        mode_switch_forget_started(change->host, change->entry.gpu);
        resume(change);
    } else {
        journal_set_drained(db, change->entry.gpu, FALSE, NULL);
    }
    journal_end(db, change->entry.gpu);
    host_refresh(change->host);
    if (change->failure) {
        end(change, change->failure);
        return;
    }
    host_event(change->host, "mode", change->entry.gpu, NULL, "GPU %s is %s now", change->entry.gpu,
               gpu_mode_name(change->entry.target));
    end(change, NULL);
}

static void converged(const GError *error, void *data);

static void work(ModeSwitch *change, gboolean dry_run)
{
    g_auto(GStrv) start = change->entry.target == GPU_MODE_SHARED
                              ? journal_stopped(host_db(change->host), change->entry.gpu)
                              : NULL;
    const ModeWork job = {
        .root = host_root(change->host),
        .address = change->entry.gpu,
        .target = change->entry.target,
        .partitions = change->entry.partitions,
        .start = (const char *const *)start,
        .dry_run = dry_run,
        .step = add_step,
        .done = converged,
        .data = change,
    };

    /* It may be registered, and drained since the switch began, and its vGPUs must be started. */
    if (change->entry.target == GPU_MODE_SHARED && !dry_run)
        set_drain(change, FALSE);
    mode_work_reconcile(&job);
}

/* The rollback. The journal had the phase before, and now has the other target. */
static void undo(ModeSwitch *change, const GError *why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *step = g_strdup_printf("GPU %s: switch failed; reverting to %s",
                                            change->entry.gpu, gpu_mode_name(change->entry.origin));

    change->failure = g_error_copy(why);
    add_step(step, change);
    change->entry.target = change->entry.origin;
    change->entry.partitions = change->old_partitions;
    if (!enter_phase(change, TRUE, &error) ||
        !wanted_set(host_root(change->host), change->entry.gpu, change->entry.origin,
                    change->old_partitions, &error))
        g_warning("%s", error->message);
    work(change, FALSE);
}

static gboolean is_over(const ModeSwitch *change)
{
    return change->deadline && g_get_monotonic_time() >= change->deadline;
}

/* Somebody has opened the GPU since the last look. */
static void wait_again(ModeSwitch *change)
{
    g_autoptr(GError) error = NULL;

    if (!enter_phase(change, FALSE, &error))
        g_warning("%s", error->message);
    look(change);
}

static void converged(const GError *error, void *data)
{
    ModeSwitch *change = data;

    if (change->abandoned)
        switch_free(change);
    else if (change->dry_run)
        end(change, error);
    else if (!error)
        finish(change);
    else if (change->failure) {
        g_prefix_error(&change->failure, "the rollback failed, too (%s): ", error->message);
        finish(change);
    } else if (change->drain && !is_over(change) &&
               g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE))
        wait_again(change);
    else
        undo(change, error);
}

/* Existing vGPUs are recorded before they are stopped. */
static gboolean note_vgpus(const ModeSwitch *change, GError **error)
{
    const char *root = host_root(change->host);
    g_autoptr(Gpu) gpu = reconcile_look(root, change->entry.gpu, error);
    g_auto(GStrv) uuids = gpu ? users_vgpus(root, gpu) : NULL;

    return uuids && journal_add_stopped(host_db(change->host), change->entry.gpu,
                                        (const char *const *)uuids, error);
}

/* The GPU is not in use. */
static void go(ModeSwitch *change)
{
    g_autoptr(GError) error = NULL;

    if (!note_vgpus(change, &error) || !enter_phase(change, TRUE, &error) ||
        !wanted_set(host_root(change->host), change->entry.gpu, change->entry.target,
                    change->entry.partitions, &error)) {
        give_up(change, error);
        return;
    }
    work(change, FALSE);
}

static gboolean look_now(void *data)
{
    ModeSwitch *change = data;

    change->source = 0;
    look(change);
    return G_SOURCE_REMOVE;
}

static void look_later(ModeSwitch *change)
{
    gint64 left =
        change->deadline ? (change->deadline - g_get_monotonic_time()) / 1000 + 1 : LOOK_AGAIN_MS;

    change->source = g_timeout_add((guint)CLAMP(left, 1, LOOK_AGAIN_MS), look_now, change);
}

/* Reported once for each list of users, not each second. */
static void say_who(ModeSwitch *change, GStrv users)
{
    g_autofree char *list = g_strjoinv("; ", users);
    g_autofree char *step = NULL;

    if (g_strcmp0(change->waits_for, list) == 0)
        return;
    g_free(change->waits_for);
    change->waits_for = g_strdup(list);
    step = g_strdup_printf("GPU %s waits until it is no longer in use: %s", change->entry.gpu, list);
    add_step(step, change);
    host_event(change->host, "drain", change->entry.gpu, NULL, "%s", step);
}

gboolean mode_switch_cancel(ModeSwitch *change)
{
    if (change->entry.switching || change->failure)
        return FALSE;
    change->cancelled = TRUE;
    if (change->source) {
        g_source_remove(change->source);
        change->source = g_idle_add(look_now, change);
    }
    return TRUE;
}

static void end_cancelled(ModeSwitch *change)
{
    g_autoptr(GError) error =
        g_error_new(AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "the switch of GPU %s to %s was cancelled while it waited; nothing was changed",
                    change->entry.gpu, gpu_mode_name(change->entry.target));

    give_up(change, error);
}

static void in_the_way(ModeSwitch *change, GStrv users)
{
    g_autoptr(GError) error = NULL;

    if (change->drain && !is_over(change)) {
        say_who(change, users);
        look_later(change);
        return;
    }
    reconcile_set_in_use(&error, change->entry.gpu, change->entry.target,
                        (const char *const *)users);
    if (change->drain)
        g_prefix_error(&error, "the timeout is over: ");
    if (change->resumed)
        undo(change, error);
    else
        give_up(change, error);
}

/* Includes the containers that use slices of a GPU that will not be shared any more. */
static GStrv with_containers(const ModeSwitch *change, const GStrv users)
{
    return change->entry.target == GPU_MODE_SHARED
               ? g_strdupv(users)
               : host_with_users(change->host, change->entry.gpu, users);
}

static void looked(GStrv found, const GError *error, void *data)
{
    ModeSwitch *change = data;
    g_auto(GStrv) users = error || change->abandoned ? NULL : with_containers(change, found);

    if (change->abandoned)
        switch_free(change);
    else if (error && change->resumed)
        undo(change, error);
    else if (error)
        give_up(change, error);
    else if (change->cancelled)
        end_cancelled(change);
    else if (users[0])
        in_the_way(change, users);
    else
        go(change);
}

static void look(ModeSwitch *change)
{
    mode_work_in_the_way(host_root(change->host), change->entry.gpu, change->entry.target,
                         change->entry.partitions, looked, change);
}

gboolean mode_switch_is_there(const Gpu *gpu, GpuMode target, guint partitions)
{
    return gpu->mode == target && (gpu_name_is_soft(gpu->pci->address) || gpu->pci->driver) &&
           (target != GPU_MODE_PARTITIONED ||
            gpu->pci->vfs == (partitions ? partitions : gpu->pci->total_vfs));
}

/* Only the desired mode may have been different. */
static void is_there_already(ModeSwitch *change)
{
    g_autofree char *step = g_strdup_printf("GPU %s is %s already", change->entry.gpu,
                                            gpu_mode_name(change->entry.target));
    g_autoptr(GError) error = NULL;

    add_step(step, change);
    wanted_set(host_root(change->host), change->entry.gpu, change->entry.target,
               change->entry.partitions, &error);
    end(change, error);
}

static gboolean is_there(const ModeSwitch *change)
{
    const Gpu *gpu = host_gpu(change->host, change->entry.gpu);

    return gpu && !change->resumed &&
           mode_switch_is_there(gpu, change->entry.target, change->entry.partitions);
}

static gboolean begin(void *data)
{
    ModeSwitch *change = data;
    g_autoptr(GError) error = NULL;

    change->source = 0;
    if (change->dry_run)
        work(change, TRUE);
    else if (is_there(change))
        is_there_already(change);
    else if (!enter_phase(change, change->resumed, &error) ||
             !share_drain(host_root(change->host), change->entry.gpu, TRUE, &error))
        give_up(change, error);
    else
        look(change);
    return G_SOURCE_REMOVE;
}

/* If gpus.conf has no entry, the GPU's present mode. */
static void read_origin(ModeSwitch *change)
{
    g_autoptr(GPtrArray) entries = gpus_load(host_root(change->host), NULL);
    const GpuEntry *entry = entries ? gpus_find(entries, change->entry.gpu) : NULL;
    const Gpu *gpu = host_gpu(change->host, change->entry.gpu);

    change->entry.origin = gpu->mode;
    if (gpu->mode == GPU_MODE_PARTITIONED)
        change->old_partitions = gpu->pci->vfs;
    else if (entry)
        change->old_partitions = entry->partitions;
}

ModeSwitch *mode_switch_start(Host *host, const SwitchRequest *request, SwitchDone done, void *data)
{
    ModeSwitch *change = g_new0(ModeSwitch, 1);

    change->host = host;
    change->entry.gpu = g_strdup(request->address);
    change->entry.target = request->target;
    change->entry.partitions = request->partitions;
    change->drain = request->drain;
    change->dry_run = request->dry_run;
    change->resumed = request->resumed;
    change->steps = g_ptr_array_new_with_free_func(g_free);
    change->done = done;
    change->data = data;
    if (request->timeout)
        change->deadline = g_get_monotonic_time() + (gint64)request->timeout * G_USEC_PER_SEC;
    read_origin(change);
    if (request->resumed)
        change->entry.origin = request->origin;
    change->source = g_idle_add(begin, change);
    return change;
}
