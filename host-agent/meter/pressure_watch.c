/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/pressure_watch.h"

#include <gio/gio.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/program.h"
#include "lib/systemd.h"
#include "host-agent/daemon/engines/counters.h"
#include "host-agent/meter/gpu_memory.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/model/gpu_health.h"
#include "host-agent/store/tables.h"

#define PRESSURE_COMMAND_S 60

/* No driver reports when memory becomes scarce. */
#define LOOK_SECONDS 2

#define SYSTEMD_NAME    "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"

struct PressureWatch {
    Host *host;
    Offers *offers;
    const Slices *slices;
    gint64 grace_us;
    GDBusConnection *bus;
    GpuMemory *memory;
    GHashTable *gpus; /* address to Pressure */
    guint timer;
};

/* A GPU with less free memory than desired. */
typedef struct {
    const Gpu *gpu;
    guint64 free;
    guint64 mark;
    GPtrArray *victims; /* of Slice */
} Want;

guint64 pressure_watch_mark(const PressureWatch *watch, const Gpu *gpu)
{
    const GpuEntry *settings = offers_settings(watch->offers, gpu->pci->address);
    guint64 vram;

    if (!settings)
        return 0;
    offers_capacity(watch->offers, gpu, &vram);
    return amount_resolve(&settings->water_mark, vram);
}

gboolean pressure_watch_used(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                             guint64 *bytes)
{
    guint64 vram;

    offers_capacity(watch->offers, gpu, &vram);
    return gpu_memory_used(watch->memory, gpu, vram, vgpus, bytes);
}

/*
 * Best effort, on the GPU, and in use: a vGPU with an engine that can be stopped, or a slice of
 * containers or jobs that has some of the GPU's memory, or may have.
 */
static gboolean is_victim(const PressureWatch *watch, const Slice *slice, const char *gpu)
{
    const VgpuCounters *vgpu;
    const SliceUse *use;

    if (slice->class != SLICE_BEST_EFFORT || !slice->present || !g_str_equal(slice->gpu, gpu))
        return FALSE;
    if (!slice_is_vgpu(slice)) {
        use = counters_use(host_counters(watch->host), slice->uuid);
        return !slice->suspended && (!use || use->vram_used);
    }
    vgpu = counters_read_one(host_counters(watch->host), slice->uuid);
    return vgpu && (g_str_equal(vgpu->vgpu->engine, "ready") ||
                    g_str_equal(vgpu->vgpu->engine, "starting"));
}

static GPtrArray *victims_on(const PressureWatch *watch, const char *gpu)
{
    const GPtrArray *slices = slices_all(watch->slices);
    GPtrArray *victims = g_ptr_array_new();

    for (guint i = 0; i < slices->len; i++)
        if (is_victim(watch, g_ptr_array_index(slices, i), gpu))
            g_ptr_array_add(victims, g_ptr_array_index(slices, i));
    return victims;
}

/* Their UUIDs, owned by the slices. */
static char **uuids_of(const Want *want)
{
    char **uuids = g_new0(char *, want->victims->len + 1);

    for (guint i = 0; i < want->victims->len; i++)
        uuids[i] = ((const Slice *)g_ptr_array_index(want->victims, i))->uuid;
    return uuids;
}

static void tell(const PressureWatch *watch, const Want *want)
{
    const char *gpu = want->gpu->pci->address;
    g_autofree char **uuids = uuids_of(want);
    g_autofree char *free = size_format(want->free);
    g_autofree char *mark = size_format(want->mark);

    vgpu_manager_emit_memory_pressure(host_manager(watch->host), gpu, want->free, want->mark,
                                      (const char *const *)uuids);
    host_event(watch->host, "memory-pressure", gpu, NULL,
               "GPU %s has %s of free memory and should have %s; its best-effort vGPUs and slices "
               "(%u) make room next",
               gpu, free, mark, want->victims->len);
}

static void ended(const char *output, const GError *error, void *data)
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
    program_start(&program, NULL, ended, g_strdup(command));
}

static void run_command(const PressureWatch *watch, const Want *want)
{
    const char *gpu = want->gpu->pci->address;
    const GpuEntry *settings = offers_settings(watch->offers, gpu);
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

static void stop_unit(const PressureWatch *watch, const Slice *slice, const char *unit)
{
    const VgpuCounters *vgpu = counters_read_one(host_counters(watch->host), slice->uuid);
    Eviction *eviction = g_new0(Eviction, 1);

    eviction->uuid = g_strdup(slice->uuid);
    eviction->unit = g_strdup(unit);
    eviction->before =
        vgpu ? g_strconcat("Engine=", vgpu->vgpu->engine, NULL) : g_strdup("Guard=started");
    eviction->after = vgpu ? "Engine=stopped" : "Guard=stopped";
    g_dbus_connection_call(watch->bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "StopUnit",
                           g_variant_new("(ss)", unit, "replace"), NULL, G_DBUS_CALL_FLAGS_NONE, -1,
                           NULL, unit_stopped, eviction);
}

static void remember(const PressureWatch *watch, const char *gpu, const char *tenant)
{
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;
    g_autoptr(GError) error = NULL;

    if (!gpu_table_evict(host_db(watch->host), gpu, tenant, now, &error))
        g_message("%s", error->message);
}

/*
 * What holds a slice's memory, and can be stopped; to be freed. NULL: the programs of a native
 * slice do, and pressure-command= has been told of it.
 */
static char *unit_of_slice(const Slice *slice)
{
    if (slice_is_vgpu(slice))
        return engine_unit_name(slice->uuid);
    return slice->transport == SLICE_TRANSPORT_GUARDED ? guard_unit_name(slice->uuid) : NULL;
}

static void evict(const PressureWatch *watch, const Want *want)
{
    const char *gpu = want->gpu->pci->address;
    g_autofree char *mark = size_format(want->mark);

    for (guint i = 0; i < want->victims->len; i++) {
        const Slice *slice = g_ptr_array_index(want->victims, i);
        g_autofree char *unit = unit_of_slice(slice);

        if (!unit)
            continue;
        /* A scheduler places its jobs itself, and takes a refusal for a broken node. */
        if (!*slice->owner)
            remember(watch, gpu, slice->tenant);
        stop_unit(watch, slice, unit);
        host_event(watch->host, "evicted", gpu, slice->uuid,
                   "the %s of %s %s (best effort) was stopped, because GPU %s should have %s of "
                   "free memory; \"systemctl start %s\" starts it again",
                   slice_is_vgpu(slice) ? "engine" : "guard",
                   slice_is_vgpu(slice) ? "vGPU" : "slice", slice->uuid, gpu, mark, unit);
    }
}

static void take_step(const PressureWatch *watch, PressureStep step, const Want *want)
{
    switch (step) {
    case PRESSURE_TELL:
        tell(watch, want);
        break;
    case PRESSURE_COMMAND:
        run_command(watch, want);
        break;
    case PRESSURE_EVICT:
        evict(watch, want);
        break;
    case PRESSURE_OVER:
        host_event(watch->host, "memory-pressure", want->gpu->pci->address, NULL,
                   "GPU %s has enough free memory again", want->gpu->pci->address);
        break;
    case PRESSURE_NOTHING:
        break;
    }
}

static Pressure *pressure_of(const PressureWatch *watch, const char *gpu)
{
    Pressure *pressure = g_hash_table_lookup(watch->gpus, gpu);

    if (!pressure) {
        pressure = g_new0(Pressure, 1);
        g_hash_table_insert(watch->gpus, g_strdup(gpu), pressure);
    }
    return pressure;
}

static void look_at(const PressureWatch *watch, Want *want, gint64 now_us)
{
    const char *gpu = want->gpu->pci->address;
    g_autoptr(GPtrArray) victims =
        want->free < want->mark ? victims_on(watch, gpu) : g_ptr_array_new();

    want->victims = victims;
    take_step(watch,
              pressure_step(pressure_of(watch, gpu), want->free, want->mark, victims->len, now_us,
                            watch->grace_us),
              want);
}

/* FALSE: unknown. */
static gboolean free_vram(const PressureWatch *watch, const Gpu *gpu, const GPtrArray *vgpus,
                          guint64 *bytes)
{
    guint64 vram;
    guint64 used;

    offers_capacity(watch->offers, gpu, &vram);
    if (!pressure_watch_used(watch, gpu, vgpus, &used))
        return FALSE;
    *bytes = used < vram ? vram - used : 0;
    return TRUE;
}

void pressure_watch_look(PressureWatch *watch, gint64 now_us)
{
    const GPtrArray *gpus = host_gpus(watch->host);
    const GPtrArray *vgpus = counters_read(host_counters(watch->host));
    g_autoptr(GArray) wants = g_array_new(FALSE, FALSE, sizeof(Want));

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        Want want = {.gpu = gpu, .mark = pressure_watch_mark(watch, gpu)};

        if (want.mark && free_vram(watch, gpu, vgpus, &want.free))
            g_array_append_val(wants, want);
    }
    /* What is done reads counters, too, and @vgpus is not valid then. */
    for (guint i = 0; i < wants->len; i++)
        look_at(watch, &g_array_index(wants, Want, i), now_us);
}

static gboolean tick(void *data)
{
    pressure_watch_look(data, g_get_monotonic_time());
    return G_SOURCE_CONTINUE;
}

static gboolean has_slices(const PressureWatch *watch, const char *gpu)
{
    const GPtrArray *slices = slices_all(watch->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice->present && g_str_equal(slice->gpu, gpu))
            return TRUE;
    }
    return FALSE;
}

/* Only GPUs with a mark and with slices, of VMs, containers or jobs, are watched. */
static gboolean is_needed(const PressureWatch *watch)
{
    const GPtrArray *gpus = host_gpus(watch->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (pressure_watch_mark(watch, gpu) && has_slices(watch, gpu->pci->address))
            return TRUE;
    }
    return FALSE;
}

void pressure_watch_refresh(PressureWatch *watch)
{
    gboolean needed = watch->bus && is_needed(watch);

    if (needed && !watch->timer)
        watch->timer = g_timeout_add_seconds(LOOK_SECONDS, tick, watch);
    if (!needed)
        g_clear_handle_id(&watch->timer, g_source_remove);
}

void pressure_watch_connect(PressureWatch *watch, GDBusConnection *bus)
{
    g_set_object(&watch->bus, bus);
}

void pressure_watch_set_grace(PressureWatch *watch, guint grace)
{
    watch->grace_us = grace * (gint64)G_USEC_PER_SEC;
}

PressureWatch *pressure_watch_new(Host *host, Offers *offers, const Slices *slices, guint grace)
{
    PressureWatch *watch = g_new0(PressureWatch, 1);

    watch->host = host;
    watch->offers = offers;
    watch->slices = slices;
    watch->memory = gpu_memory_new(host, slices);
    pressure_watch_set_grace(watch, grace);
    watch->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return watch;
}

void pressure_watch_free(PressureWatch *watch)
{
    g_clear_handle_id(&watch->timer, g_source_remove);
    g_hash_table_unref(watch->gpus);
    gpu_memory_free(watch->memory);
    g_clear_object(&watch->bus);
    g_free(watch);
}
