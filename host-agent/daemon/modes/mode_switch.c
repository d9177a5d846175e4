/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/mode_switch.h"

#include "host-agent/daemon/modes/mode_work.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/daemon/modes/user_wait.h"
#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"

/* In the journal. */
#define ORIGIN         "origin"
#define TARGET         "target"
#define PARTITIONS     "partitions"
#define OLD_PARTITIONS "old-partitions"
#define DECLARED       "declared"
#define POOL           "pool"
#define POOL_ONLY      "pool-only"

/**
 * ModeSwitch
 * @operation: NULL: a dry run, or the GPU has the mode already
 * @old_partitions: the previous setting
 * @pool: that it gets; NULL: it keeps its own
 * @pool_only: it has the mode already
 * @declared: nobody asked for it; the configuration has it, and keeps it if it fails
 * @deadline: of the waiting; 0: none
 * @begun: steps may have been done already
 * @asker: its unique name on the bus; NULL: nobody
 * @steps: of char *: the reported ones
 * @source: of the next look
 * @done: NULL: nobody waits for it
 */
typedef struct {
    const ModeSwitches *switches;
    Operation *operation;
    char *gpu;
    GpuMode origin, target;
    guint partitions, old_partitions;
    char *pool;
    gboolean pool_only;
    gboolean declared;
    gboolean drain;
    gboolean dry_run;
    gint64 deadline;
    gboolean begun;
    char *asker;
    GPtrArray *steps;
    guint source;
    SwitchDone done;
    void *data;
} ModeSwitch;

static void switch_free(void *data)
{
    ModeSwitch *change = data;

    g_clear_handle_id(&change->source, g_source_remove);
    g_free(change->gpu);
    g_free(change->pool);
    g_free(change->asker);
    g_ptr_array_unref(change->steps);
    g_free(change);
}

static ModeSwitch *switch_new(const ModeSwitches *switches, const char *gpu)
{
    ModeSwitch *change = g_new0(ModeSwitch, 1);

    change->switches = switches;
    change->gpu = g_strdup(gpu);
    change->steps = g_ptr_array_new_with_free_func(g_free);
    return change;
}

static Host *host_of(const ModeSwitch *change)
{
    return change->switches->host;
}

static HostRoot *root_of(const ModeSwitch *change)
{
    return host_root(host_of(change));
}

static void answer_switch(const GError *error, void *data)
{
    ModeSwitch *change = data;

    g_ptr_array_add(change->steps, NULL);
    if (change->done)
        change->done((const char *const *)change->steps->pdata, error, change->data);
}

static void add_step(const char *sentence, void *data)
{
    ModeSwitch *change = data;
    VgpuGpu *interface;

    if (change->operation && operation_is_abandoned(change->operation))
        return;
    g_ptr_array_add(change->steps, g_strdup(sentence));
    if (change->dry_run)
        return;
    g_message("%s", sentence);
    interface = host_gpu_interface(host_of(change), change->gpu);
    if (interface)
        vgpu_gpu_emit_progress(interface, sentence);
}

/* As the mode that somebody wants. */
static gboolean store_wanted(const ModeSwitch *change, GpuMode mode, guint partitions,
                             GError **error)
{
    return change->declared || wanted_set(root_of(change), change->gpu, mode, partitions, error);
}

static void end_step(const ModeSwitch *change, const GError *error)
{
    operation_step_done(change->operation, error ? g_error_copy(error) : NULL);
}

static void set_drain(const ModeSwitch *change, gboolean on)
{
    g_autoptr(GError) error = NULL;

    if (!share_drain(root_of(change), change->gpu, on, &error))
        g_warning("%s", error->message);
}

/* Allows new users again, unless an operator drains the GPU. */
static void resume_drain(const ModeSwitch *change)
{
    set_drain(change, journal_drained(host_db(host_of(change)), change->gpu));
}

/*
 * Existing vGPUs of the GPU need not be started again: from now on a stop is intended. One that
 * could not be started stays recorded, and is tried again when the GPU is shared the next time.
 */
static void forget_started(const ModeSwitch *change)
{
    g_autoptr(Gpu) gpu = reconcile_look(root_of(change), change->gpu, NULL);
    g_auto(GStrv) uuids = gpu ? users_vgpus(root_of(change), gpu) : NULL;

    for (guint i = 0; uuids && uuids[i]; i++)
        journal_forget_stopped(host_db(host_of(change)), uuids[i]);
}

static gboolean begin_drain(void *data)
{
    ModeSwitch *change = data;
    g_autoptr(GError) error = NULL;

    change->source = 0;
    if (!operation_is_abandoned(change->operation))
        share_drain(root_of(change), change->gpu, TRUE, &error);
    end_step(change, error);
    return G_SOURCE_REMOVE;
}

/* Not at once: the caller does not expect the end then. */
static void run_drain(Operation *operation, guint item)
{
    ModeSwitch *change = operation_kept(operation);

    (void)item;
    change->source = g_idle_add(begin_drain, change);
}

static void undo_drain(Operation *operation, guint item)
{
    const ModeSwitch *change = operation_kept(operation);

    (void)item;
    forget_started(change);
    resume_drain(change);
    operation_step_done(operation, NULL);
}

static gboolean is_over(const ModeSwitch *change)
{
    return change->deadline && g_get_monotonic_time() >= change->deadline;
}

/* Existing vGPUs are recorded before they are stopped. */
static gboolean note_vgpus(const ModeSwitch *change, GError **error)
{
    g_autoptr(Gpu) gpu = reconcile_look(root_of(change), change->gpu, error);
    g_auto(GStrv) uuids = gpu ? users_vgpus(root_of(change), gpu) : NULL;

    return uuids && journal_add_stopped(host_db(host_of(change)), change->gpu,
                                        (const char *const *)uuids, error);
}

/*
 * Includes the containers that use slices of a GPU that will not be shared any more, and whose
 * slices are of another pool.
 */
static GStrv with_slices(const GStrv users, void *data)
{
    const ModeSwitch *change = data;
    const SwitchPools *pools = &change->switches->pools;
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();

    if (change->target != GPU_MODE_SHARED)
        return host_with_users(host_of(change), change->gpu, users);
    g_strv_builder_addv(all, (const char **)users);
    if (change->pool)
        pools->add_users(change->gpu, change->pool, all, pools->data);
    return g_strv_builder_end(all);
}

static void look_for_users(UsersFunc func, void *func_data, void *data)
{
    const ModeSwitch *change = data;

    mode_work_in_the_way(root_of(change), change->gpu, change->target, change->partitions, func,
                         func_data);
}

static GError *in_use(const ModeSwitch *change, const char *const *users)
{
    GError *error = NULL;

    reconcile_set_in_use(&error, change->gpu, change->target, users);
    if (change->drain)
        g_prefix_error(&error, "the timeout is over: ");
    return error;
}

static void users_waited_for(const char *const *users, const GError *error, void *data)
{
    const ModeSwitch *change = data;
    g_autoptr(GError) cause = NULL;

    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        end_step(change, NULL);
    } else if (error) {
        end_step(change, error);
    } else if (users[0]) {
        operation_step_done(change->operation, in_use(change, users));
    } else {
        if (!change->pool_only)
            note_vgpus(change, &cause);
        end_step(change, cause);
    }
}

static void keep_step(const char *sentence, void *data)
{
    const ModeSwitch *change = data;

    g_ptr_array_add(change->steps, g_strdup(sentence));
}

static void run_wait(Operation *operation, guint item)
{
    ModeSwitch *change = operation_kept(operation);
    const UserWait wait = {.host = host_of(change),
                           .gpu = change->gpu,
                           .look = look_for_users,
                           .with_slices = with_slices,
                           .until = change->drain ? change->deadline : g_get_monotonic_time(),
                           .cancellable = operation_cancellable(operation),
                           .asker = change->asker,
                           .said = keep_step,
                           .done = users_waited_for,
                           .data = change};

    (void)item;
    user_wait_start(&wait);
}

static void work_on_gpu(ModeSwitch *change, GpuMode target, guint partitions, ReconciledFunc func)
{
    g_auto(GStrv) start =
        target == GPU_MODE_SHARED ? journal_stopped(host_db(host_of(change)), change->gpu) : NULL;
    const ModeWork job = {
        .root = root_of(change),
        .address = change->gpu,
        .target = target,
        .partitions = partitions,
        .start = (const char *const *)start,
        .dry_run = change->dry_run,
        .step = add_step,
        .done = func,
        .data = change,
    };

    /* It may be registered, and drained since the switch began, and its vGPUs must be started. */
    if (target == GPU_MODE_SHARED && !change->dry_run)
        set_drain(change, FALSE);
    mode_work_reconcile(&job);
}

/* As it was when the switch first waited: new users are refused, and nothing else has changed. */
static void back_to_wait(const GError *error, void *data)
{
    const ModeSwitch *change = data;
    g_autoptr(GError) cause = error ? g_error_copy(error) : NULL;

    if (operation_is_abandoned(change->operation)) {
        end_step(change, error);
        return;
    }
    if (change->origin == GPU_MODE_SHARED)
        forget_started(change);
    host_refresh(host_of(change));
    if (!cause && share_drain(root_of(change), change->gpu, TRUE, &cause))
        operation_step_again(change->operation);
    else
        end_step(change, cause);
}

static void go_back(ModeSwitch *change, ReconciledFunc func)
{
    g_autoptr(GError) error = NULL;

    if (!store_wanted(change, change->origin, change->old_partitions, &error))
        g_warning("%s", error->message);
    work_on_gpu(change, change->origin, change->old_partitions, func);
}

/*
 * A process may have opened the GPU since the last look. The GPU goes back before the journal says
 * that the switch waits: whatever ends the waiting undoes no more than the drain.
 */
static void gpu_reverted(const GError *error, void *data)
{
    ModeSwitch *change = data;
    g_autofree char *step =
        g_strdup_printf("GPU %s is in use again; reverting to %s until it is not", change->gpu,
                        gpu_mode_name(change->origin));

    if (error && !operation_is_abandoned(change->operation) && change->drain && !is_over(change) &&
        g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE)) {
        add_step(step, change);
        go_back(change, back_to_wait);
    } else {
        end_step(change, error);
    }
}

static void begin_work(ModeSwitch *change)
{
    g_autoptr(GError) error = NULL;

    change->begun = TRUE;
    if (store_wanted(change, change->target, change->partitions, &error))
        work_on_gpu(change, change->target, change->partitions, gpu_reverted);
    else
        end_step(change, error);
}

static void looked_again(GStrv found, const GError *error, void *data)
{
    ModeSwitch *change = data;
    g_auto(GStrv) users = NULL;

    if (error || operation_is_abandoned(change->operation)) {
        end_step(change, error);
        return;
    }
    users = with_slices(found, change);
    if (users[0])
        operation_step_done(change->operation, in_use(change, (const char *const *)users));
    else
        begin_work(change);
}

/*
 * After a crash users are not waited for: it is finished if the GPU is not in use, and else undone.
 */
static void go_on(ModeSwitch *change)
{
    g_autoptr(GError) error = NULL;

    host_event(host_of(change), "mode", change->gpu, NULL,
               "GPU %s: the switch to %s was interrupted when vgpud ended", change->gpu,
               gpu_mode_name(change->target));
    change->begun = TRUE;
    if (share_drain(root_of(change), change->gpu, TRUE, &error))
        look_for_users(looked_again, change, change);
    else
        end_step(change, error);
}

static void run_reconcile(Operation *operation, guint item)
{
    ModeSwitch *change = operation_kept(operation);

    (void)item;
    if (operation_is_replayed(operation))
        go_on(change);
    else
        begin_work(change);
}

/* It may have stayed registered, and be drained for the switch. */
static void settle_mode(const ModeSwitch *change, GpuMode mode)
{
    if (mode == GPU_MODE_SHARED) {
        forget_started(change);
        resume_drain(change);
    } else {
        journal_set_drained(host_db(host_of(change)), change->gpu, FALSE, NULL);
    }
    host_refresh(host_of(change));
}

static void gone_back(const GError *error, void *data)
{
    const ModeSwitch *change = data;

    if (!operation_is_abandoned(change->operation))
        settle_mode(change, change->origin);
    end_step(change, error);
}

static void undo_reconcile(Operation *operation, guint item)
{
    ModeSwitch *change = operation_kept(operation);
    g_autofree char *step = g_strdup_printf("GPU %s: switch failed; reverting to %s", change->gpu,
                                            gpu_mode_name(change->origin));

    (void)item;
    change->begun = TRUE;
    add_step(step, change);
    go_back(change, gone_back);
}

static gboolean set_pool(const ModeSwitch *change, GError **error)
{
    const SwitchPools *pools = &change->switches->pools;

    return !change->pool || pools->set(change->gpu, change->pool, error, pools->data);
}

static void run_settle(Operation *operation, guint item)
{
    ModeSwitch *change = operation_kept(operation);
    GError *error = NULL;

    (void)item;
    change->begun = TRUE;
    if ((!change->pool_only || store_wanted(change, change->target, change->partitions, &error)) &&
        set_pool(change, &error))
        settle_mode(change, change->target);
    operation_step_done(operation, error);
}

static gboolean read_mode(GVariant *details, const char *key, GpuMode *mode)
{
    const char *name;

    return g_variant_lookup(details, key, "&s", &name) && gpu_mode_parse(name, mode);
}

/* From the journal, if it has no caller now. */
static ModeSwitch *switch_of(Operation *operation)
{
    ModeSwitch *change = operation_kept(operation);
    GVariant *details = operation_details(operation);

    if (change)
        return change;
    change = switch_new(operation_world(operation), operation_object(operation, 0));
    operation_keep(operation, change, switch_free);
    g_variant_lookup(details, PARTITIONS, "u", &change->partitions);
    g_variant_lookup(details, OLD_PARTITIONS, "u", &change->old_partitions);
    g_variant_lookup(details, DECLARED, "b", &change->declared);
    g_variant_lookup(details, POOL, "s", &change->pool);
    g_variant_lookup(details, POOL_ONLY, "b", &change->pool_only);
    return read_mode(details, ORIGIN, &change->origin) &&
                   read_mode(details, TARGET, &change->target)
               ? change
               : NULL;
}

static void plan_switch(Operation *operation)
{
    static const OperationStep drain = {"drain", run_drain, undo_drain, FALSE};
    static const OperationStep wait = {"wait", run_wait, NULL, FALSE};
    static const OperationStep reconcile = {"reconcile", run_reconcile, undo_reconcile, TRUE};
    static const OperationStep settled = {"settle", run_settle, NULL, TRUE};
    ModeSwitch *change = switch_of(operation);

    if (!change)
        return;
    change->operation = operation;
    operation_add_step(operation, &drain, 0);
    operation_add_step(operation, &wait, 0);
    if (!change->pool_only)
        operation_add_step(operation, &reconcile, 0);
    operation_add_step(operation, &settled, 0);
}

static void switch_ended(Operation *operation, const GError *error)
{
    const ModeSwitch *change = operation_kept(operation);
    const ModeSwitches *switches = operation_world(operation);

    if (!error)
        host_event(switches->host, "mode", change->gpu, NULL, "GPU %s is %s now", change->gpu,
                   gpu_mode_name(change->target));
    else if (operation_is_replayed(operation) && !change->begun)
        host_event(switches->host, "mode", change->gpu, NULL,
                   "GPU %s stays %s: the switch to %s still waited when vgpud ended", change->gpu,
                   gpu_mode_name(change->origin), gpu_mode_name(change->target));
    switches->ended(operation, error, switches->data);
}

static GError *cancelled_error(const Operation *operation)
{
    const ModeSwitch *change = operation_kept(operation);

    return g_error_new(AGENT_ERROR, AGENT_ERROR_IN_USE,
                       "the switch of GPU %s to %s was cancelled while it waited; nothing was "
                       "changed",
                       change->gpu, gpu_mode_name(change->target));
}

static const OperationKind kind = {.name = "switch",
                                   .doing = "being switched",
                                   .what = "the switch",
                                   .replay = OPERATION_UNDO,
                                   .plan = plan_switch,
                                   .ended = switch_ended,
                                   .cancelled = cancelled_error};

const OperationKind *const mode_switch_kinds[] = {&kind, NULL};

gboolean mode_switch_is_there(const Gpu *gpu, GpuMode target, guint partitions)
{
    return gpu->mode == target && (gpu_name_is_soft(gpu->pci->address) || gpu->pci->driver) &&
           (target != GPU_MODE_PARTITIONED ||
            gpu->pci->vfs == (partitions ? partitions : gpu->pci->total_vfs));
}

static void answer_and_free(const GError *error, void *data)
{
    answer_switch(error, data);
    switch_free(data);
}

/* Only the desired mode may have been different. */
static gboolean is_there_already(void *data)
{
    ModeSwitch *change = data;
    g_autofree char *step =
        g_strdup_printf("GPU %s is %s already", change->gpu, gpu_mode_name(change->target));
    g_autoptr(GError) error = NULL;

    change->source = 0;
    add_step(step, change);
    store_wanted(change, change->target, change->partitions, &error);
    answer_and_free(error, change);
    return G_SOURCE_REMOVE;
}

static gboolean has_all(const ModeSwitch *change, const Gpu *gpu)
{
    const SwitchPools *pools = &change->switches->pools;

    return mode_switch_is_there(gpu, change->target, change->partitions) &&
           (!change->pool || pools->has(change->gpu, change->pool, pools->data));
}

/* If gpus.conf has no entry, the GPU's present mode. */
static void read_origin(ModeSwitch *change, const Gpu *gpu)
{
    g_autoptr(GPtrArray) entries = host_wanted(host_of(change));
    const GpuEntry *entry = gpus_find(entries, change->gpu);

    change->origin = gpu->mode;
    if (gpu->mode == GPU_MODE_PARTITIONED)
        change->old_partitions = gpu->pci->vfs;
    else if (entry)
        change->old_partitions = entry->partitions;
}

static gboolean begin_switch(ModeSwitch *change, const char *source, GError **error)
{
    g_autofree char *gpu = g_strdup(change->gpu);
    const char *objects[] = {gpu, NULL};
    GVariantDict details;
    OperationRequest request = {.kind = &kind,
                                .objects = objects,
                                .source = source,
                                .kept = change,
                                .free_kept = switch_free,
                                .done = answer_switch,
                                .data = change};

    g_variant_dict_init(&details, NULL);
    g_variant_dict_insert(&details, ORIGIN, "s", gpu_mode_name(change->origin));
    g_variant_dict_insert(&details, TARGET, "s", gpu_mode_name(change->target));
    g_variant_dict_insert(&details, PARTITIONS, "u", change->partitions);
    g_variant_dict_insert(&details, OLD_PARTITIONS, "u", change->old_partitions);
    g_variant_dict_insert(&details, DECLARED, "b", change->declared);
    if (change->pool)
        g_variant_dict_insert(&details, POOL, "s", change->pool);
    g_variant_dict_insert(&details, POOL_ONLY, "b", change->pool_only);
    request.details = g_variant_dict_end(&details);
    return operations_start(change->switches->operations, &request, error);
}

gboolean mode_switch_start(const ModeSwitches *switches, const SwitchRequest *request,
                           SwitchDone func, void *data, GError **error)
{
    const Gpu *gpu = host_gpu(switches->host, request->address);
    ModeSwitch *change = switch_new(switches, request->address);

    change->target = request->target;
    change->partitions = request->partitions;
    change->pool = g_strdup(request->pool);
    change->declared = request->declared;
    change->drain = request->drain;
    change->dry_run = request->dry_run;
    change->asker = g_strdup(request->asker);
    change->done = func;
    change->data = data;
    if (request->timeout)
        change->deadline = g_get_monotonic_time() + (gint64)request->timeout * G_USEC_PER_SEC;
    change->pool_only = mode_switch_is_there(gpu, change->target, change->partitions);
    read_origin(change, gpu);
    if (request->dry_run)
        work_on_gpu(change, change->target, change->partitions, answer_and_free);
    else if (has_all(change, gpu))
        change->source = g_idle_add(is_there_already, change);
    else
        return begin_switch(change, request->source, error);
    return TRUE;
}

gboolean mode_switch_target(const ModeSwitches *switches, const char *address, GpuMode *target)
{
    const Operation *operation = operations_first(switches->operations, address);
    const ModeSwitch *change = operation ? operation_kept(operation) : NULL;

    if (change)
        *target = change->target;
    return change != NULL;
}

gboolean mode_switch_cancel(const ModeSwitches *switches, const char *address)
{
    const Operation *operation = operations_first(switches->operations, address);

    return operation && operations_cancel(switches->operations, operation_id(operation), NULL);
}
