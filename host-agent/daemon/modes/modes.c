/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/modes.h"

#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/daemon/modes/mode_work.h"
#include "host-agent/daemon/modes/user_wait.h"
#include "host-agent/daemon/modes/binding.h"
#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/model/request.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/gpus.h"

/**
 * struct Modes
 * @recovered: nothing is done unasked before that
 * @refused: address to the last reason why a desired mode could not be applied, so that it is
 * logged once
 * @failed: address to driver and memory of the GPU when a desired mode could not be applied; it is
 * tried again when these have changed, or if somebody asks for it
 * @end: cancelled when this is freed
 */
struct Modes {
    Host *host;
    ModeSwitches switches;
    gboolean recovered;
    GHashTable *refused;
    GHashTable *failed;
    void (*ended)(const char *address, void *data);
    void *ended_data;
    GCancellable *end;
};

static void show_gpu(const Modes *modes, const Gpu *gpu, const GpuEntry *entry, const char *source)
{
    VgpuGpu *interface = host_gpu_interface(modes->host, gpu->pci->address);
    GpuMode target;
    gboolean switching = mode_switch_target(&modes->switches, gpu->pci->address, &target);
    g_auto(GStrv) partitions = partitioner_list(host_root(modes->host), gpu);

    if (!interface)
        return;
    vgpu_gpu_set_wanted_mode(interface, gpu_mode_name(entry ? entry->mode : gpu->mode));
    vgpu_gpu_set_wanted_partitions(interface, entry ? entry->partitions : 0);
    vgpu_gpu_set_mode_source(interface, source);
    vgpu_gpu_set_switching(interface, switching ? gpu_mode_name(target) : "");
    vgpu_gpu_set_draining(interface,
                          switching || journal_drained(host_db(modes->host), gpu->pci->address));
    vgpu_gpu_set_partitions(interface, (const char *const *)partitions);
}

static void show_wanted(const Modes *modes)
{
    const GPtrArray *gpus = host_gpus(modes->host);
    g_autoptr(GPtrArray) entries = host_wanted(modes->host);
    g_autoptr(GPtrArray) declared = gpus_load_conf(host_root(modes->host), NULL);
    g_autoptr(GPtrArray) set = gpus_load_state(host_root(modes->host), NULL);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        show_gpu(modes, gpu, gpus_find(entries, gpu->pci->address),
                 wanted_source(declared, set, gpu->pci->address));
    }
}

static gboolean may_begin(const Modes *modes, const SwitchRequest *request, GError **error)
{
    GpuMode target;

    if (!host_gpu(modes->host, request->address)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "this host has no GPU %s",
                    request->address);
        return FALSE;
    }
    if (mode_switch_target(&modes->switches, request->address, &target)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "GPU %s is being switched to %s just now; wait for that", request->address,
                    gpu_mode_name(target));
        return FALSE;
    }
    return TRUE;
}

gboolean modes_set(Modes *modes, const SwitchRequest *request, SwitchDone func, void *data,
                   GError **error)
{
    if (!may_begin(modes, request, error) ||
        !mode_switch_start(&modes->switches, request, func, data, error))
        return FALSE;
    show_wanted(modes);
    return TRUE;
}

void modes_cancel(Modes *modes, const char *address)
{
    mode_switch_cancel(&modes->switches, address);
}

/* The arguments of SetMode, which are untrusted. */
static gboolean read_request(GVariant *arguments, SwitchRequest *request, GError **error)
{
    g_autoptr(GVariant) options = NULL;
    const char *mode;
    const DictKey keys[] = {
        {.key = "Drain", .type = 'b', .value = &request->drain},
        {.key = "Timeout", .type = 'u', .value = &request->timeout},
        {.key = "Partitions", .type = 'u', .value = &request->partitions},
        {.key = "DryRun", .type = 'b', .value = &request->dry_run},
    };

    g_variant_get(arguments, "(&s@a{sv})", &mode, &options);
    if (!gpu_mode_parse(mode, &request->target)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "there is no mode \"%s\"; it can be host, shared, passthrough or partitioned",
                    mode);
        return FALSE;
    }
    if (!dict_read(options, keys, G_N_ELEMENTS(keys), error))
        return FALSE;
    if (request->partitions && request->target != GPU_MODE_PARTITIONED) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "a number of partitions is for mode partitioned only, not for %s", mode);
        return FALSE;
    }
    return TRUE;
}

static void answer_set_mode(const char *const *steps, const GError *error, void *data)
{
    GDBusMethodInvocation *invocation = data;

    if (error)
        call_fail(invocation, error);
    else
        call_answer(invocation, g_variant_new("(^as)", steps));
}

static void set_mode_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Modes *modes = data;
    const Gpu *gpu = call_gpu(invocation, modes->host);
    SwitchRequest request = {0};
    GError *error = NULL;

    if (!gpu)
        return;
    request.address = gpu->pci->address;
    request.asker = g_dbus_method_invocation_get_sender(invocation);
    if (read_request(g_dbus_method_invocation_get_parameters(invocation), &request, &error)) {
        if (!request.dry_run)
            g_message("%s wants GPU %s to be %s", caller->user, gpu->pci->address,
                      gpu_mode_name(request.target));
        if (modes_set(modes, &request, answer_set_mode, invocation, &error))
            return;
    }
    call_take_error(invocation, error);
}

/* A query for a GPU's users, while a thread looks. */
typedef struct {
    const Host *host;
    char *gpu;
    GDBusMethodInvocation *invocation;
} UsersAsked;

static void answer_users(GStrv users, const GError *error, void *data)
{
    UsersAsked *asked = data;
    g_auto(GStrv) all = error ? NULL : host_with_users(asked->host, asked->gpu, users);

    if (error)
        call_fail(asked->invocation, error);
    else
        call_answer(asked->invocation, g_variant_new("(^as)", all));
    g_free(asked->gpu);
    g_free(asked);
}

static void list_users_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Modes *modes = data;
    const Gpu *gpu = call_gpu(invocation, modes->host);

    UsersAsked *asked;

    (void)caller;
    if (!gpu)
        return;
    asked = g_new0(UsersAsked, 1);
    asked->host = modes->host;
    asked->gpu = g_strdup(gpu->pci->address);
    asked->invocation = invocation;
    mode_work_list(host_root(modes->host), gpu->pci->address, answer_users, asked);
}

/* WaitUnused: an operator waits for the users of a drained GPU. */

/**
 * Waiting
 * @caller: watches that the caller is there still
 */
typedef struct {
    const Modes *modes;
    char *gpu;
    GDBusMethodInvocation *invocation;
    guint seconds;
    GCancellable *end;
    guint caller;
} Waiting;

static void look_for_vms(UsersFunc func, void *func_data, void *data)
{
    const Waiting *waiting = data;

    mode_work_vms(host_root(waiting->modes->host), waiting->gpu, func, func_data);
}

static GStrv with_slices(const GStrv users, void *data)
{
    const Waiting *waiting = data;

    return host_with_users(waiting->modes->host, waiting->gpu, users);
}

static void answer_waiting(const Waiting *waiting, const char *const *users, const GError *error)
{
    g_autofree char *list = users ? g_strjoinv(", ", (GStrv)users) : NULL;

    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        call_refuse(waiting->invocation, AGENT_ERROR_FAILED, "vgpud ends; GPU %s stays drained",
                    waiting->gpu);
    else if (error)
        call_fail(waiting->invocation, error);
    else if (*list)
        call_refuse(waiting->invocation, AGENT_ERROR_IN_USE,
                    "after %u seconds still in use: %s; no new work is put on GPU %s until "
                    "\"vgpuctl gpu resume %s\"",
                    waiting->seconds, list, waiting->gpu, waiting->gpu);
    else
        call_answer(waiting->invocation, NULL);
}

static void users_waited_for(const char *const *users, const GError *error, void *data)
{
    Waiting *waiting = data;

    answer_waiting(waiting, users, error);
    g_bus_unwatch_name(waiting->caller);
    g_object_unref(waiting->end);
    g_free(waiting->gpu);
    g_free(waiting);
}

static void caller_vanished(GDBusConnection *bus, const char *name, void *data)
{
    const Waiting *waiting = data;

    (void)bus;
    (void)name;
    g_cancellable_cancel(waiting->end);
}

static gboolean read_seconds(GDBusMethodInvocation *invocation, guint *seconds, GError **error)
{
    const DictKey keys[] = {{.key = "Timeout", .type = 'u', .value = seconds}};
    g_autoptr(GVariant) options = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(@a{sv})", &options);
    return dict_read(options, keys, G_N_ELEMENTS(keys), error);
}

static void begin_wait(const Modes *modes, const char *gpu, guint seconds,
                       GDBusMethodInvocation *invocation)
{
    Waiting *waiting = g_new0(Waiting, 1);
    UserWait wait = {.host = modes->host,
                     .look = look_for_vms,
                     .with_slices = with_slices,
                     .twice = TRUE,
                     .asker = g_dbus_method_invocation_get_sender(invocation),
                     .done = users_waited_for,
                     .data = waiting};

    waiting->modes = modes;
    waiting->gpu = g_strdup(gpu);
    waiting->invocation = invocation;
    waiting->seconds = seconds;
    waiting->end = g_cancellable_new();
    g_signal_connect_object(modes->end, "cancelled", G_CALLBACK(g_cancellable_cancel), waiting->end,
                            G_CONNECT_SWAPPED);
    waiting->caller = g_bus_watch_name_on_connection(
        g_dbus_method_invocation_get_connection(invocation), wait.asker,
        G_BUS_NAME_WATCHER_FLAGS_NONE, NULL, caller_vanished, waiting, NULL);
    wait.gpu = waiting->gpu;
    wait.cancellable = waiting->end;
    if (seconds)
        wait.until = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;
    user_wait_start(&wait);
}

static void wait_unused_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Modes *modes = data;
    const Gpu *gpu = call_gpu(invocation, modes->host);
    GError *error = NULL;
    guint seconds = 0;

    (void)caller;
    if (!gpu)
        return;
    if (read_seconds(invocation, &seconds, &error))
        begin_wait(modes, gpu->pci->address, seconds, invocation);
    else
        call_take_error(invocation, error);
}

/* Stored first: an operator's drain survives restarts of vgpud and of the GPU's driver. */
static gboolean set_drained(const Modes *modes, const Gpu *gpu, gboolean on, GError **error)
{
    const char *address = gpu->pci->address;
    gboolean cancelled;
    GpuMode target;

    /* The caller may be gone, and it may wait for ever. */
    cancelled = !on && mode_switch_cancel(&modes->switches, address);
    if (!cancelled && mode_switch_target(&modes->switches, address, &target)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "GPU %s is being switched just now; wait for that", address);
        return FALSE;
    }
    if (on && gpu->mode != GPU_MODE_SHARED) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "GPU %s is not shared but %s: only a shared one can be drained", address,
                    gpu_mode_name(gpu->mode));
        return FALSE;
    }
    return journal_set_drained(host_db(modes->host), address, on, error) &&
           share_drain(host_root(modes->host), address, on, error);
}

static void drain_allowed(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Modes *modes = data;
    const Gpu *gpu = call_gpu(invocation, modes->host);
    GError *error = NULL;
    gboolean on;

    if (!gpu)
        return;
    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(b)", &on);
    if (!set_drained(modes, gpu, on, &error)) {
        call_take_error(invocation, error);
        return;
    }
    show_wanted(modes);
    host_event(modes->host, "drain", gpu->pci->address, NULL, "GPU %s is %s by %s",
               gpu->pci->address, on ? "drained" : "no longer drained", caller->user);
    call_answer(invocation, NULL);
}

static void gpu_added(VgpuGpu *gpu, void *data)
{
    authority_answer(gpu, "handle-set-mode", ACTION_ADMINISTER, set_mode_allowed, NULL, data);
    authority_answer(gpu, "handle-list-users", ACTION_SEE, list_users_allowed, NULL, data);
    authority_answer(gpu, "handle-drain", ACTION_ADMINISTER, drain_allowed, NULL, data);
    authority_answer(gpu, "handle-wait-unused", ACTION_SEE, wait_unused_allowed, NULL, data);
}

/* A switch without a caller; nobody waits for it. */
typedef struct {
    Modes *modes;
    char *address;
} Unasked;

static void tell_refused(Modes *modes, const char *address, const GError *error)
{
    const char *said = g_hash_table_lookup(modes->refused, address);

    if (!error) {
        g_hash_table_remove(modes->refused, address);
    } else if (g_strcmp0(said, error->message) != 0) {
        host_event(modes->host, "mode", address, NULL, "%s", error->message);
        g_hash_table_insert(modes->refused, g_strdup(address), g_strdup(error->message));
    }
}

static char *state_of(const Gpu *gpu)
{
    return g_strdup_printf("%s %" G_GUINT64_FORMAT " %s",
                           gpu && gpu->pci->driver ? gpu->pci->driver : "", gpu ? gpu->vram : 0,
                           gpu && gpu->vram_source ? gpu->vram_source : "");
}

/* One that is in use is tried again when that may have changed. */
static void remember_failed(Modes *modes, const char *address, const GError *error)
{
    if (!error)
        g_hash_table_remove(modes->failed, address);
    else if (!g_error_matches(error, AGENT_ERROR, AGENT_ERROR_IN_USE))
        g_hash_table_insert(modes->failed, g_strdup(address),
                            state_of(host_gpu(modes->host, address)));
}

static void unasked_ended(const char *const *steps, const GError *error, void *data)
{
    Unasked *unasked = data;

    (void)steps;
    tell_refused(unasked->modes, unasked->address, error);
    remember_failed(unasked->modes, unasked->address, error);
    g_free(unasked->address);
    g_free(unasked);
}

/* One that had begun when vgpud ended has no caller. */
static void switch_ended(const Operation *operation, const GError *error, void *data)
{
    Modes *modes = data;

    if (operation_is_replayed(operation))
        tell_refused(modes, operation_object(operation, 0), error);
    if (!error)
        g_hash_table_remove(modes->failed, operation_object(operation, 0));
    show_wanted(modes);
    if (modes->ended)
        modes->ended(operation_object(operation, 0), modes->ended_data);
}

static void set_unasked(Modes *modes, const SwitchRequest *request)
{
    g_autoptr(GError) error = NULL;
    Unasked *unasked = g_new0(Unasked, 1);

    unasked->modes = modes;
    unasked->address = g_strdup(request->address);
    if (!modes_set(modes, request, unasked_ended, unasked, &error)) {
        g_message("%s", error->message);
        g_free(unasked->address);
        g_free(unasked);
    }
}

/*
 * The registrar registers a shared GPU when its driver appears, and does nothing without the
 * module.
 */
static gboolean is_ours(HostRoot *root, const GpuEntry *entry)
{
    return entry->mode > GPU_MODE_SHARED ||
           (entry->mode == GPU_MODE_SHARED && !share_has_driver(root));
}

/*
 * Whether a desired mode is applied unasked. Never taken from vfio-pci: libvirt binds a GPU to it
 * for a VM that is just starting, and nobody has it open yet.
 */
static gboolean should_give(const Modes *modes, const Gpu *gpu, const GpuEntry *entry,
                            gboolean thorough)
{
    const char *failed_as = g_hash_table_lookup(modes->failed, gpu->pci->address);
    g_autofree char *state = state_of(gpu);

    if (mode_switch_is_there(gpu, entry->mode, entry->partitions) ||
        gpu->mode == GPU_MODE_PASSTHROUGH)
        return FALSE;
    if (thorough)
        return TRUE;
    return gpu->mode == GPU_MODE_HOST && gpu->pci->driver && g_strcmp0(failed_as, state) != 0 &&
           is_ours(host_root(modes->host), entry);
}

/* @thorough: at the start, or after an operator's reload; otherwise after an event. */
static void reconcile_gpus(Modes *modes, gboolean thorough)
{
    const GPtrArray *gpus = host_gpus(modes->host);
    g_autoptr(GPtrArray) entries = host_wanted(modes->host);
    g_autoptr(GPtrArray) requests = g_ptr_array_new();

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        const GpuEntry *entry = gpus_find(entries, gpu->pci->address);

        if (entry && !operations_doing(modes->switches.operations, entry->name) &&
            should_give(modes, gpu, entry, thorough))
            g_ptr_array_add(requests, (void *)entry);
    }
    for (guint i = 0; i < requests->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(requests, i);
        const SwitchRequest request = {.address = entry->name,
                                       .target = entry->mode,
                                       .partitions = entry->partitions,
                                       .declared = TRUE,
                                       .source = AUDIT_BY_CONFIG};

        set_unasked(modes, &request);
    }
}

/* A GPU that an operator drains may have been registered again. */
static void drain_again(const Modes *modes)
{
    const GPtrArray *gpus = host_gpus(modes->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autoptr(GError) error = NULL;

        if (gpu->mode == GPU_MODE_SHARED &&
            journal_drained(host_db(modes->host), gpu->pci->address) &&
            !share_drain(host_root(modes->host), gpu->pci->address, TRUE, &error))
            g_warning("%s", error->message);
    }
}

/* The module was loaded after GPUs had been shared without it. Users keep their slices. */
static void register_again(const Modes *modes)
{
    const GPtrArray *gpus = host_gpus(modes->host);
    HostRoot *root = host_root(modes->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autoptr(GError) error = NULL;

        if (gpu->types[0])
            containers_only_clear(root, gpu->pci->address);
        else if (gpu->containers_only && share_has_driver(root) &&
                 !share_register(root, gpu->pci->address, &error))
            g_warning("%s", error->message);
    }
}

static void gpus_changed(void *data)
{
    Modes *modes = data;

    if (!modes->recovered)
        return;
    register_again(modes);
    drain_again(modes);
    show_wanted(modes);
    reconcile_gpus(modes, FALSE);
}

Modes *modes_new(Host *host, Operations *operations)
{
    Modes *modes = g_new0(Modes, 1);

    modes->host = host;
    modes->switches = (ModeSwitches){
        .host = host, .operations = operations, .ended = switch_ended, .data = modes};
    modes->refused = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    modes->failed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    modes->end = g_cancellable_new();
    operations_add_kinds(operations, mode_switch_kinds, &modes->switches);
    host_watch(host, gpu_added, gpus_changed, modes);
    return modes;
}

void modes_free(Modes *modes)
{
    g_hash_table_unref(modes->refused);
    g_hash_table_unref(modes->failed);
    g_cancellable_cancel(modes->end);
    g_object_unref(modes->end);
    g_free(modes);
}

void modes_set_pools(Modes *modes, const SwitchPools *pools)
{
    modes->switches.pools = *pools;
}

void modes_watch_switches(Modes *modes, void (*func)(const char *address, void *data), void *data)
{
    modes->ended = func;
    modes->ended_data = data;
}

/* An interrupted switch continues by itself. */
static gboolean is_free_for_containers(const Modes *modes, const Gpu *gpu)
{
    return !operations_doing(modes->switches.operations, gpu->pci->address) &&
           gpu->mode == GPU_MODE_HOST && (gpu->pci->driver || gpu_name_is_soft(gpu->pci->address));
}

void modes_share_without_driver(const Modes *modes)
{
    HostRoot *root = host_root(modes->host);
    g_autoptr(GPtrArray) entries = gpus_load(root, NULL);

    if (share_has_driver(root))
        return;
    for (guint i = 0; entries && i < entries->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(entries, i);
        g_autoptr(Gpu) gpu = NULL;

        if (entry->mode != GPU_MODE_SHARED)
            continue;
        gpu = reconcile_look(root, entry->name, NULL);
        /* reconcile_gpus() tries again, and reports why one cannot be shared. */
        if (gpu && is_free_for_containers(modes, gpu))
            share_register(root, entry->name, NULL);
    }
}

void modes_recover(Modes *modes)
{
    modes->recovered = TRUE;
    drain_again(modes);
    show_wanted(modes);
    reconcile_gpus(modes, TRUE);
}

void modes_reload(Modes *modes)
{
    show_wanted(modes);
    reconcile_gpus(modes, TRUE);
}
