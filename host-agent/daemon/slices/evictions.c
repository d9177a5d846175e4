/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/slices/evictions.h"

#include <gio/gio.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/program.h"
#include "lib/systemd.h"
#include "host-agent/daemon/engines/vgpu_states.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/model/gpu_health.h"
#include "host-agent/store/tables.h"

#define PRESSURE_COMMAND_S 60

#define SYSTEMD_NAME    "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"

/**
 * Evictions
 * @gpus: address to Pressure
 * @freed: ends the wait for programs that are killed
 */
struct Evictions {
    Host *host;
    Offers *offers;
    const Slices *slices;
    Returns *returns;
    gint64 grace_us;
    PressureNative native;
    const ProgramsForRoom *programs;
    void *programs_data;
    GDBusConnection *bus;
    GHashTable *gpus;
    GCancellable *freed;
};

/* A GPU with less free memory than desired. */
typedef struct {
    const char *gpu;
    guint64 free;
    guint64 mark;
    GPtrArray *victims; /* of Slice */
    gint64 now_us;
} Want;

/*
 * Best effort, on the GPU, and in use: a vGPU with an engine that can be stopped, or a slice of
 * containers or jobs that has some of the GPU's memory, or may have.
 */
static gboolean is_victim(const Evictions *evictions, const Slice *slice, const char *gpu,
                          const char *const *without)
{
    const Vgpu *vgpu;

    if (slice->class != SLICE_BEST_EFFORT || !slice->present || !g_str_equal(slice->gpu, gpu))
        return FALSE;
    if (!slice_is_vgpu(slice))
        return !slice->suspended && !slices_are_busy(evictions->slices, slice->uuid) &&
               !g_strv_contains(without, slice->uuid);
    vgpu = vgpu_states_read_one(host_vgpu_states(evictions->host), slice->uuid);
    return vgpu && (g_str_equal(vgpu->engine, "ready") || g_str_equal(vgpu->engine, "starting"));
}

static GPtrArray *victims_on(const Evictions *evictions, const char *gpu,
                             const char *const *without)
{
    const GPtrArray *slices = slices_all(evictions->slices);
    GPtrArray *victims = g_ptr_array_new();

    for (guint i = 0; i < slices->len; i++)
        if (is_victim(evictions, g_ptr_array_index(slices, i), gpu, without))
            g_ptr_array_add(victims, g_ptr_array_index(slices, i));
    return victims;
}

/* There are programs that may be suspended. */
static gboolean may_suspend(const Evictions *evictions, const GPtrArray *victims)
{
    for (guint i = 0; i < victims->len; i++) {
        const Slice *slice = g_ptr_array_index(victims, i);

        if (slice->transport == SLICE_TRANSPORT_NATIVE)
            return evictions->native >= PRESSURE_NATIVE_SUSPEND;
    }
    return FALSE;
}

/* Their UUIDs, owned by the slices. */
static char **uuids_of(const Want *want)
{
    char **uuids = g_new0(char *, want->victims->len + 1);

    for (guint i = 0; i < want->victims->len; i++)
        uuids[i] = ((const Slice *)g_ptr_array_index(want->victims, i))->uuid;
    return uuids;
}

static void tell_of_pressure(const Evictions *evictions, const Want *want)
{
    const char *gpu = want->gpu;
    g_autofree char **uuids = uuids_of(want);
    g_autofree char *free = size_format(want->free);
    g_autofree char *mark = size_format(want->mark);

    vgpu_manager_emit_memory_pressure(host_manager(evictions->host), gpu, want->free, want->mark,
                                      (const char *const *)uuids);
    host_event(evictions->host, "memory-pressure", gpu, NULL,
               "GPU %s has %s of free memory and should have %s; its best-effort vGPUs and slices "
               "(%u) make room next",
               gpu, free, mark, want->victims->len);
}

static void command_ended(const char *output, const GError *error, void *data)
{
    g_autofree char *command = data;

    (void)output;
    if (error)
        g_message("pressure-command=%s: %s", command, error->message);
    else
        g_message("pressure-command=%s has succeeded", command);
}

static void add_number(GStrvBuilder *environment, const char *name, guint64 number)
{
    g_strv_builder_take(environment, g_strdup_printf("%s=%" G_GUINT64_FORMAT, name, number));
}

/* The operator's command when memory is short (pressure-command= in gpus.conf). */
static void pressure_command_run(const char *command, const char *gpu, guint64 free, guint64 mark,
                                 char *const *vgpus)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_autofree char *list = g_strjoinv(" ", (char **)vgpus);
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) environment = NULL;
    g_auto(GStrv) argv = NULL;
    Program program = {.seconds = PRESSURE_COMMAND_S, .own_output = TRUE};

    if (!g_shell_parse_argv(command, NULL, &argv, &error)) {
        g_message("pressure-command=%s: %s", command, error->message);
        return;
    }
    g_strv_builder_take(builder, g_strconcat("GPU=", gpu, NULL));
    g_strv_builder_take(builder, g_strconcat("VGPUS=", list, NULL));
    add_number(builder, "FREE", free);
    add_number(builder, "MARK", mark);
    environment = g_strv_builder_end(builder);
    program.argv = (const char *const *)argv;
    program.environment = (const char *const *)environment;
    program_start(&program, NULL, command_ended, g_strdup(command));
}

static void run_command(const Evictions *evictions, const Want *want)
{
    const char *gpu = want->gpu;
    const GpuEntry *settings = offers_settings(evictions->offers, gpu);
    g_autofree char **uuids = uuids_of(want);

    if (settings && settings->pressure_command)
        pressure_command_run(settings->pressure_command, gpu, want->free, want->mark, uuids);
}

/**
 * Eviction - of a slice whose unit systemd is asked to stop
 * @before, @after: for the audit
 */
typedef struct {
    char *uuid;
    char *unit;
    char *before;
    const char *after;
} Eviction;

static guint64 bytes_of(GHashTable *members, const Slice *slice)
{
    const SliceMembers *of_slice = members ? g_hash_table_lookup(members, slice->uuid) : NULL;

    return of_slice ? of_slice->used : 0;
}

/* Nothing of their work is lost, if the host has room for it. */
static void suspend_all(const Evictions *evictions, const Want *want)
{
    g_autoptr(GHashTable) members = arbiters_members(host_arbiters(evictions->host), want->gpu);

    for (guint i = 0; i < want->victims->len; i++) {
        const Slice *slice = g_ptr_array_index(want->victims, i);
        g_autoptr(GError) error = NULL;

        if (slice->transport != SLICE_TRANSPORT_NATIVE)
            continue;
        if (!evictions->programs->suspend(slice, evictions->programs_data, &error)) {
            g_message("%s", error->message);
            continue;
        }
        returns_note(evictions->returns, slice, bytes_of(members, slice), want->now_us);
        host_event(evictions->host, "evicted", want->gpu, slice->uuid,
                   "the programs of slice %s (best effort) are being suspended, because GPU %s "
                   "is short of memory; they go on when it has room again",
                   slice->uuid, want->gpu);
    }
}

/* One whose room there has been for some time. */
static void let_return(const Evictions *evictions, const char *gpu, guint64 free, guint64 mark,
                       gint64 now_us)
{
    const Slice *slice = returns_next(evictions->returns, gpu, free, mark, now_us);
    g_autofree char *uuid = slice ? g_strdup(slice->uuid) : NULL;
    g_autoptr(GError) error = NULL;

    if (!slice)
        return;
    /* It is another one as soon as it is resumed. */
    if (evictions->programs->resume(slice, evictions->programs_data, &error))
        host_event(evictions->host, "returned", gpu, uuid,
                   "the programs of slice %s go on, because GPU %s has room for them again", uuid,
                   gpu);
    else
        g_message("slice %s stays suspended: %s", uuid, error->message);
}

static void eviction_free(Eviction *eviction)
{
    g_free(eviction->uuid);
    g_free(eviction->unit);
    g_free(eviction->before);
    g_free(eviction);
}

static void unit_stopped(GObject *bus, GAsyncResult *answer, void *data)
{
    Eviction *eviction = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) job = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);

    if (!job)
        g_message("%s can't be stopped, though the GPU of its slice is short of memory: %s",
                  eviction->unit, error->message);
    if (audit_is_on())
        audit_write(&(AuditEntry){.who = AUDIT_BY_PRESSURE,
                                  .what = AUDIT_DO_EVICT,
                                  .object = eviction->uuid,
                                  .before = eviction->before,
                                  .after = job ? eviction->after : eviction->before,
                                  .error = error});
    eviction_free(eviction);
}

static void stop_unit(const Evictions *evictions, const Slice *slice, const char *unit)
{
    const Vgpu *vgpu = vgpu_states_read_one(host_vgpu_states(evictions->host), slice->uuid);
    Eviction *eviction = g_new0(Eviction, 1);

    eviction->uuid = g_strdup(slice->uuid);
    eviction->unit = g_strdup(unit);
    eviction->before =
        vgpu ? g_strconcat("Engine=", vgpu->engine, NULL) : g_strdup("Guard=started");
    eviction->after = vgpu ? "Engine=stopped" : "Guard=stopped";
    g_dbus_connection_call(evictions->bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "StopUnit",
                           g_variant_new("(ss)", unit, "replace"), NULL, G_DBUS_CALL_FLAGS_NONE, -1,
                           NULL, unit_stopped, eviction);
}

/* A scheduler places its jobs itself, and takes a refusal for a broken node. */
static void remember_unowned(const Evictions *evictions, const Slice *slice)
{
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;
    g_autoptr(GError) error = NULL;

    if (!*slice->owner &&
        !gpu_table_evict(host_db(evictions->host), slice->gpu, slice->tenant, now, &error))
        g_message("%s", error->message);
}

/*
 * What holds a slice's memory, and can be stopped; to be freed. NULL: the programs of a native
 * slice do.
 */
static char *unit_of_slice(const Slice *slice)
{
    if (slice_is_vgpu(slice))
        return engine_unit_name(slice->uuid);
    return slice->transport == SLICE_TRANSPORT_GUARDED ? guard_unit_name(slice->uuid) : NULL;
}

static void audit_end(const Slice *slice, const GError *error)
{
    if (audit_is_on())
        audit_write(&(AuditEntry){.who = AUDIT_BY_PRESSURE,
                                  .what = AUDIT_DO_EVICT,
                                  .object = slice->uuid,
                                  .before = "Programs=started",
                                  .after = error ? "Programs=started" : "Programs=ended",
                                  .error = error});
}

static void programs_ended(const Slice *slice, const GError *error, void *data)
{
    const Evictions *evictions = data;

    audit_end(slice, error);
    if (error) {
        g_message("programs of slice %s can't be ended, though its GPU is short of memory: %s",
                  slice->uuid, error->message);
        return;
    }
    remember_unowned(evictions, slice);
    host_event(evictions->host, "evicted", slice->gpu, slice->uuid,
               "the programs of slice %s (best effort) were ended, because GPU %s is short of "
               "memory and they did not make room",
               slice->uuid, slice->gpu);
}

static void end_programs(Evictions *evictions, const Slice *slice)
{
    const ProgramsEnded done = {programs_ended, evictions, evictions->freed};
    g_autoptr(GError) error = NULL;

    if (evictions->native >= PRESSURE_NATIVE_END &&
        !evictions->programs->end(slice, &done, evictions->programs_data, &error))
        g_message("%s", error->message);
}

static void evict_all(Evictions *evictions, const Want *want)
{
    const char *gpu = want->gpu;
    g_autofree char *mark = size_format(want->mark);

    for (guint i = 0; i < want->victims->len; i++) {
        const Slice *slice = g_ptr_array_index(want->victims, i);
        g_autofree char *unit = unit_of_slice(slice);

        if (!unit) {
            end_programs(evictions, slice);
            continue;
        }
        remember_unowned(evictions, slice);
        stop_unit(evictions, slice, unit);
        host_event(evictions->host, "evicted", gpu, slice->uuid,
                   "the %s of %s %s (best effort) was stopped, because GPU %s should have %s of "
                   "free memory; \"systemctl start %s\" starts it again",
                   slice_is_vgpu(slice) ? "engine" : "guard",
                   slice_is_vgpu(slice) ? "vGPU" : "slice", slice->uuid, gpu, mark, unit);
    }
}

static void take_step(Evictions *evictions, PressureStep step, const Want *want)
{
    switch (step) {
    case PRESSURE_TELL:
        tell_of_pressure(evictions, want);
        break;
    case PRESSURE_SUSPEND:
        suspend_all(evictions, want);
        break;
    case PRESSURE_COMMAND:
        run_command(evictions, want);
        break;
    case PRESSURE_EVICT:
        evict_all(evictions, want);
        break;
    case PRESSURE_OVER:
        host_event(evictions->host, "memory-pressure", want->gpu, NULL,
                   "GPU %s has enough free memory again", want->gpu);
        break;
    case PRESSURE_NOTHING:
        break;
    }
}

static Pressure *pressure_of(const Evictions *evictions, const char *gpu)
{
    Pressure *pressure = g_hash_table_lookup(evictions->gpus, gpu);

    if (!pressure) {
        pressure = g_new0(Pressure, 1);
        g_hash_table_insert(evictions->gpus, g_strdup(gpu), pressure);
    }
    return pressure;
}

void evictions_note_memory(Evictions *evictions, const char *gpu, guint64 free, guint64 mark,
                           const char *const *without, gint64 now_us)
{
    g_autoptr(GPtrArray) victims =
        free < mark ? victims_on(evictions, gpu, without) : g_ptr_array_new();
    const Want want = {gpu, free, mark, victims, now_us};

    take_step(evictions,
              pressure_step(pressure_of(evictions, gpu), free, mark, victims->len,
                            may_suspend(evictions, victims), now_us, evictions->grace_us),
              &want);
    let_return(evictions, gpu, free, mark, now_us);
}

void evictions_forget(Evictions *evictions)
{
    g_hash_table_remove_all(evictions->gpus);
}

void evictions_connect(Evictions *evictions, GDBusConnection *bus)
{
    g_set_object(&evictions->bus, bus);
}

void evictions_set_grace(Evictions *evictions, guint grace)
{
    evictions->grace_us = grace * (gint64)G_USEC_PER_SEC;
}

void evictions_set_native(Evictions *evictions, PressureNative native)
{
    evictions->native = native;
}

void evictions_set_programs(Evictions *evictions, const ProgramsForRoom *programs, void *data)
{
    evictions->programs = programs;
    evictions->programs_data = data;
}

Evictions *evictions_new(Host *host, Offers *offers, const Slices *slices, Returns *returns,
                         guint grace)
{
    Evictions *evictions = g_new0(Evictions, 1);

    evictions->host = host;
    evictions->offers = offers;
    evictions->slices = slices;
    evictions->returns = returns;
    evictions_set_grace(evictions, grace);
    evictions->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    evictions->freed = g_cancellable_new();
    return evictions;
}

void evictions_free(Evictions *evictions)
{
    g_cancellable_cancel(evictions->freed);
    g_object_unref(evictions->freed);
    g_hash_table_unref(evictions->gpus);
    g_clear_object(&evictions->bus);
    g_free(evictions);
}
