/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/health_watch.h"

#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/host.h"
#include "host-agent/model/gpu_health.h"
#include "host-agent/store/tables.h"
#include "lib/bus.h"
#include "lib/host_root.h"
#include "lib/nvidia_readings.h"

/* For values that change without an event: sensors, corrected errors. */
#define LOOK_SECONDS 30

struct Health {
    Host *host;
    const Slices *slices;
    GHashTable *gpus;    /* address to Watched */
    GHashTable *looping; /* UUIDs of vGPUs whose crash loop was reported */
    char *boot;
    gboolean engines_seen;
    guint timer;
};

/**
 * Watched - a GPU that is or was present
 * @readings: the last
 */
typedef struct {
    GpuHealth *health;
    GpuReadings readings;
} Watched;

static void watched_free(void *data)
{
    Watched *watched = data;

    gpu_health_free(watched->health);
    g_free(watched);
}

static Watched *watched_at(Health *health, const char *gpu)
{
    Watched *watched = g_hash_table_lookup(health->gpus, gpu);

    if (!watched) {
        watched = g_new0(Watched, 1);
        watched->health = gpu_health_new();
        g_hash_table_insert(health->gpus, g_strdup(gpu), watched);
    }
    return watched;
}

static void log_error(GError *error)
{
    g_message("%s", error->message);
    g_error_free(error);
}

static void store(Health *health, const char *gpu, HealthKind kind, const char *reason)
{
    Db *db = host_db(health->host);
    GError *error = NULL;

    if (reason)
        gpu_table_add_finding(db, gpu, kind, reason, g_get_real_time() / G_USEC_PER_SEC, &error);
    else
        gpu_table_end_finding(db, gpu, kind, &error);
    if (error)
        log_error(error);
}

/* The findings before an observation. */
typedef struct {
    gboolean found[HEALTH_KINDS];
} Before;

static Before remember(const Watched *watched)
{
    Before before;

    for (guint i = 0; i < HEALTH_KINDS; i++)
        before.found[i] = gpu_health_reason(watched->health, (HealthKind)i) != NULL;
    return before;
}

static void add_finding(GVariantBuilder *findings, const char *kind, HealthGrade grade,
                        const char *slice, const char *reason)
{
    g_variant_builder_open(findings, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(findings, "{sv}", "Kind", g_variant_new_string(kind));
    g_variant_builder_add(findings, "{sv}", "Grade",
                          g_variant_new_string(health_grade_name(grade)));
    g_variant_builder_add(findings, "{sv}", "Reason", g_variant_new_string(reason));
    if (slice)
        g_variant_builder_add(findings, "{sv}", "Slice", g_variant_new_string(slice));
    g_variant_builder_close(findings);
}

/*
 * vGPUs whose own engines are in trouble, whether or not the GPU is considered the cause. On a
 * broken one all engines die, and nobody is to be held for that.
 */
static void add_offenders(const Health *health, const char *gpu, const Watched *watched,
                          GVariantBuilder *findings)
{
    const GPtrArray *slices = slices_all(health->slices);

    for (guint i = 0; gpu_health_has_suspect(watched->health) && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        g_autofree char *loops = gpu_health_engine_loops(watched->health, slice->uuid);

        if (loops && g_strcmp0(slice->gpu, gpu) == 0)
            add_finding(findings, health_kind_name(HEALTH_ENGINE_CRASHES), HEALTH_NOTICE,
                        slice->uuid, loops);
    }
}

static void show(const Health *health, const char *gpu, const Watched *watched)
{
    VgpuGpu *interface = host_gpu_interface(health->host, gpu);
    g_autoptr(GStrvBuilder) reasons = g_strv_builder_new();
    GVariantBuilder findings;
    g_auto(GStrv) list = NULL;
    HealthGrade worst = gpu_health_grade(watched->health);

    if (!interface)
        return;
    g_variant_builder_init(&findings, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        const char *reason = gpu_health_reason(watched->health, (HealthKind)i);
        HealthGrade grade = gpu_health_grade_of(watched->health, (HealthKind)i);

        if (!reason)
            continue;
        if (grade != HEALTH_NOTICE)
            g_strv_builder_add(reasons, reason);
        add_finding(&findings, health_kind_name((HealthKind)i), grade, NULL, reason);
    }
    if (worst != HEALTH_BROKEN)
        add_offenders(health, gpu, watched, &findings);
    list = g_strv_builder_end(reasons);
    vgpu_gpu_set_healthy(interface, worst == HEALTH_NOTICE);
    vgpu_gpu_set_health_reasons(interface, (const char *const *)list);
    vgpu_gpu_set_health_grade(interface,
                              worst == HEALTH_NOTICE ? "good" : health_grade_name(worst));
    vgpu_gpu_set_health_findings(interface, g_variant_builder_end(&findings));
}

static gboolean has_changed(const Watched *watched, const Before *before)
{
    for (guint i = 0; i < HEALTH_KINDS; i++)
        if (before->found[i] != (gpu_health_reason(watched->health, (HealthKind)i) != NULL))
            return TRUE;
    return FALSE;
}

static void tell_of_finding(const Health *health, const char *gpu, const Watched *watched,
                            HealthKind kind)
{
    const char *reason = gpu_health_reason(watched->health, kind);
    gboolean good = host_gpu(health->host, gpu) && gpu_health_is_good(watched->health);

    if (!reason)
        host_event(health->host, "health", gpu, NULL, "GPU %s: no more \"%s\"%s", gpu,
                   health_kind_name(kind), good ? "; it is healthy" : "");
    else if (gpu_health_grade_of(watched->health, kind) == HEALTH_NOTICE)
        host_event(health->host, "health", gpu, NULL, "GPU %s: %s; this is reported only", gpu,
                   reason);
    else
        host_event(health->host, "health", gpu, NULL,
                   "GPU %s is not healthy: %s; no new work is placed on it%s", gpu, reason,
                   health_kind_is_held(kind) ? " until \"vgpuctl gpu clear\"" : "");
}

/* Reports what is new since then. */
static void tell(Health *health, const char *gpu, const Watched *watched, const Before *before)
{
    g_autofree char *state = NULL;

    if (!has_changed(watched, before)) {
        show(health, gpu, watched);
        return;
    }
    state = audit_state_of(AUDIT_GPU, gpu);
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        const char *reason = gpu_health_reason(watched->health, (HealthKind)i);

        if (!reason == !before->found[i])
            continue;
        store(health, gpu, (HealthKind)i, reason);
        tell_of_finding(health, gpu, watched, (HealthKind)i);
    }
    show(health, gpu, watched);
    audit_write_change(AUDIT_BY_HEALTH, AUDIT_DO_FIND, AUDIT_GPU, gpu, state, NULL);
}

static void look_at(Health *health, const Gpu *gpu, gint64 now)
{
    const char *address = gpu->pci->address;
    Watched *watched = watched_at(health, address);
    const Before before = remember(watched);

    gpu_health_ignore(watched->health, gpu->health_ignore);
    gpu_readings_read(host_root(health->host), gpu->pci, &watched->readings);
    gpu_health_observe(watched->health, &watched->readings, now);
    tell(health, address, watched, &before);
}

/* Number of slices on it, present or future. */
static guint users_of(const Health *health, const char *gpu)
{
    const GPtrArray *slices = slices_all(health->slices);
    guint users = 0;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        users += slice_is_promised(slice) && g_str_equal(slice->gpu, gpu);
    }
    return users;
}

/* GPUs with slices that vgpud has never seen. */
static void miss(Health *health)
{
    const GPtrArray *slices = slices_all(health->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_promised(slice) && !host_gpu(health->host, slice->gpu))
            watched_at(health, slice->gpu);
    }
}

static void look_for_gone(Health *health)
{
    GHashTableIter iter;
    void *gpu;
    void *watched;

    miss(health);
    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &watched)) {
        const Before before = remember(watched);

        if (host_gpu(health->host, gpu))
            continue;
        gpu_health_observe_gone(((Watched *)watched)->health, users_of(health, gpu));
        tell(health, gpu, watched, &before);
    }
}

static gboolean look_again(void *data);

static void arm(Health *health)
{
    gboolean needed = FALSE;
    GHashTableIter iter;
    void *watched;

    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, NULL, &watched))
        needed |= gpu_readings_need_a_timer(&((Watched *)watched)->readings);
    if (needed && !health->timer)
        health->timer = g_timeout_add_seconds(LOOK_SECONDS, look_again, health);
    if (!needed && health->timer) {
        g_source_remove(health->timer);
        health->timer = 0;
    }
}

static void look(Health *health)
{
    const GPtrArray *gpus = host_gpus(health->host);
    gint64 now = g_get_monotonic_time();

    for (guint i = 0; i < gpus->len; i++)
        look_at(health, g_ptr_array_index(gpus, i), now);
    look_for_gone(health);
}

/* Its engine dies repeatedly, and its GPU is not the cause. */
static void tell_of_loop(Health *health, const Vgpu *vgpu)
{
    Watched *watched = watched_at(health, vgpu->gpu);
    g_autofree char *loop = gpu_health_engine_loops(watched->health, vgpu->uuid);
    gboolean told = g_hash_table_contains(health->looping, vgpu->uuid);

    if (loop && !told && !gpu_health_reason(watched->health, HEALTH_ENGINE_CRASHES)) {
        g_hash_table_add(health->looping, g_strdup(vgpu->uuid));
        host_event(health->host, "health", vgpu->gpu, vgpu->uuid,
                   "%s; GPU %s is not considered the cause, because others work on it or nobody "
                   "else has tried",
                   loop, vgpu->gpu);
    } else if (!loop) {
        g_hash_table_remove(health->looping, vgpu->uuid);
    }
}

static void judge_engines(Health *health, const char *gpu, Watched *watched)
{
    const Before before = remember(watched);

    gpu_health_judge_engines(watched->health, g_get_monotonic_time());
    tell(health, gpu, watched, &before);
}

static void judge_all_engines(Health *health)
{
    GHashTableIter iter;
    void *gpu;
    void *watched;

    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &watched))
        judge_engines(health, gpu, watched);
}

static void observe_engine(Health *health, const Vgpu *vgpu)
{
    const Slice *slice = slices_find(health->slices, vgpu->uuid);

    gpu_health_observe_engine(watched_at(health, vgpu->gpu)->health, vgpu,
                              slice ? slice->tenant : NULL, g_get_monotonic_time());
}

/* Of containers and programs, as the arbiters say. */
static void look_at_work(Health *health)
{
    const GPtrArray *slices = slices_all(health->slices);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUse *use =
            slice_is_vgpu(slice) ? NULL : counters_use(host_counters(health->host), slice->uuid);

        if (use && slice->gpu)
            gpu_health_observe_work(watched_at(health, slice->gpu)->health, slice->uuid,
                                    use->submissions, g_get_monotonic_time());
    }
}

/* @ask: the arbiters, too, which is slower. */
static void look_at_engines(Health *health, gboolean ask)
{
    Counters *counters = host_counters(health->host);
    const GPtrArray *vgpus = ask ? counters_read(counters) : counters_look(counters);

    for (guint i = 0; i < vgpus->len; i++)
        observe_engine(health, ((const VgpuCounters *)g_ptr_array_index(vgpus, i))->vgpu);
    look_at_work(health);
    judge_all_engines(health);
    for (guint i = 0; i < vgpus->len; i++)
        tell_of_loop(health, ((const VgpuCounters *)g_ptr_array_index(vgpus, i))->vgpu);
}

static void forget_engine(Health *health, const char *uuid)
{
    GHashTableIter iter;
    void *watched;

    g_hash_table_remove(health->looping, uuid);
    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, NULL, &watched))
        gpu_health_forget_engine(((Watched *)watched)->health, uuid);
    judge_all_engines(health);
}

/*
 * Mostly it is looked at alone: with a thousand vGPUs, each makes ten events while it is made. If
 * an engine of its GPU is in trouble, the others show whether the GPU is the cause, and the driver
 * does not report all that they do.
 */
void health_vgpu_changed(Health *health, const char *uuid)
{
    const VgpuCounters *vgpu = counters_known(host_counters(health->host), uuid);
    Watched *watched;

    if (!vgpu) {
        forget_engine(health, uuid);
        return;
    }
    watched = watched_at(health, vgpu->vgpu->gpu);
    observe_engine(health, vgpu->vgpu);
    if (gpu_health_has_suspect(watched->health)) {
        look_at_engines(health, TRUE);
        return;
    }
    judge_engines(health, vgpu->vgpu->gpu, watched);
    tell_of_loop(health, vgpu->vgpu);
}

void health_events_lost(Health *health)
{
    health->engines_seen = FALSE;
}

/* Errors and temperatures come without an event. */
static gboolean look_again(void *data)
{
    Health *health = data;
    const GPtrArray *gpus = host_gpus(health->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu_readings_need_a_timer(&watched_at(health, gpu->pci->address)->readings))
            look_at(health, gpu, g_get_monotonic_time());
    }
    look_for_gone(health);
    return G_SOURCE_CONTINUE;
}

static void host_changed(void *data)
{
    Health *health = data;

    /* From then on the driver reports each vGPU that changes. */
    if (!health->engines_seen)
        look_at_engines(health, FALSE);
    health->engines_seen = TRUE;
    look(health);
    arm(health);
}

static const char *address_of(const Health *health, const char *path)
{
    const GPtrArray *gpus = host_gpus(health->host);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);
        g_autofree char *its = gpu_object_path(gpu->pci->address);

        if (g_str_equal(its, path))
            return gpu->pci->address;
    }
    return NULL;
}

/* Other drivers' counters are files of theirs: one that is missing has nothing to say later. */
static gboolean may_clear(const Gpu *gpu, gboolean known, GError **error)
{
    if (known || g_strcmp0(gpu->pci->driver, NVIDIA_DRIVER) != 0)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED,
                "cannot clear GPU %s: the number of errors in its memory is not known now, and "
                "they would be found again; look at the log of vgpu-nvidia-readings.service, and "
                "try again when /run/vgpu/readings/%s is up to date",
                gpu->pci->address, gpu->pci->address);
    return FALSE;
}

static void clear(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Health *health = data;
    const char *gpu = address_of(health, g_dbus_method_invocation_get_object_path(invocation));
    Watched *watched = gpu ? watched_at(health, gpu) : NULL;
    guint64 aer_fatal, ecc;
    gboolean known;
    GError *error = NULL;

    if (!watched) {
        g_dbus_method_invocation_return_error(invocation, AGENT_ERROR, AGENT_ERROR_NOT_FOUND,
                                              "the GPU has just been removed");
        return;
    }
    look_at(health, host_gpu(health->host, gpu), g_get_monotonic_time());
    known = gpu_health_acknowledge(watched->health, &aer_fatal, &ecc);
    if (!may_clear(host_gpu(health->host, gpu), known, &error) ||
        !gpu_table_clear(host_db(health->host), gpu, health->boot, aer_fatal, ecc, &error)) {
        g_dbus_method_invocation_take_error(invocation, error);
        return;
    }
    gpu_health_clear(watched->health);
    gpu_health_set_cleared(watched->health, aer_fatal, ecc);
    host_event(health->host, "health", gpu, NULL, "GPU %s was declared healthy by %s", gpu,
               caller->user);
    look(health);
    g_dbus_method_invocation_return_value(invocation, NULL);
}

static void gpu_added(VgpuGpu *interface, void *data)
{
    vgpu_gpu_set_healthy(interface, TRUE);
    authority_answer(interface, "handle-clear-health", ACTION_ADMINISTER, clear, NULL, data);
}

static void load_finding(const char *gpu, HealthKind kind, const char *reason, void *data)
{
    gpu_health_restore(watched_at(data, gpu)->health, kind, reason);
}

static void load_cleared(const char *gpu, guint64 aer_fatal, guint64 ecc, void *data)
{
    gpu_health_set_cleared(watched_at(data, gpu)->health, aer_fatal, ecc);
}

/* Only findings that an operator has to clear: the others are found again if they still hold. */
static void load(Health *health)
{
    GError *error = NULL;

    if (!gpu_table_load(host_db(health->host), health->boot, load_finding, load_cleared, health,
                        &error))
        log_error(error);
}

Health *health_new(Host *host, const Slices *slices)
{
    Health *health = g_new0(Health, 1);

    health->host = host;
    health->slices = slices;
    health->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, watched_free);
    health->looping = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    health->boot = sysfs_read(host_root(host), "/proc/sys/kernel/random", "boot_id");
    if (!health->boot)
        health->boot = g_strdup("");
    load(health);
    host_watch(host, gpu_added, host_changed, health);
    return health;
}

void health_free(Health *health)
{
    if (health->timer)
        g_source_remove(health->timer);
    g_hash_table_unref(health->gpus);
    g_hash_table_unref(health->looping);
    g_free(health->boot);
    g_free(health);
}

const GpuHealth *health_of_gpu(const Health *health, const char *gpu)
{
    const Watched *watched = g_hash_table_lookup(health->gpus, gpu);

    return watched ? watched->health : NULL;
}

gboolean health_is_good(const Health *health, const char *gpu)
{
    const Watched *watched = g_hash_table_lookup(health->gpus, gpu);

    return !watched || gpu_health_is_good(watched->health);
}
