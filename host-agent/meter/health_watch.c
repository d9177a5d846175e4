/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/health_watch.h"

#include "host-agent/model/gpu_health.h"
#include "lib/bus.h"
#include "lib/host_root.h"
#include "lib/nvidia_readings.h"

/* For values that change without an event: sensors, corrected errors. */
#define LOOK_SECONDS 30

struct Health {
    const HostView *view;
    const AgentLink *agent;
    GHashTable *gpus;    /* address to Watched */
    GHashTable *looping; /* UUIDs of vGPUs whose crash loop was reported */
    gboolean engines_seen;
    guint timer;
};

/**
 * Watched - a GPU that is or was present
 * @readings: the last
 * @told: to vgpud; NULL: nothing yet
 */
typedef struct {
    GpuHealth *health;
    GpuReadings readings;
    GVariant *told;
} Watched;

static void watched_free(void *data)
{
    Watched *watched = data;

    gpu_health_free(watched->health);
    g_clear_pointer(&watched->told, g_variant_unref);
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
    const GPtrArray *slices = host_view_slices(health->view);

    for (guint i = 0; gpu_health_has_suspect(watched->health) && i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        g_autofree char *loops = gpu_health_engine_loops(watched->health, slice->uuid);

        if (loops && g_strcmp0(slice->gpu, gpu) == 0)
            add_finding(findings, health_kind_name(HEALTH_ENGINE_CRASHES), HEALTH_NOTICE,
                        slice->uuid, loops);
    }
}

/* What vgpud knows already is not told again. */
static void tell_findings(const Health *health, const char *gpu, Watched *watched)
{
    GVariantBuilder findings;
    GVariant *told;

    g_variant_builder_init(&findings, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < HEALTH_KINDS; i++) {
        const char *reason = gpu_health_reason(watched->health, (HealthKind)i);

        if (reason)
            add_finding(&findings, health_kind_name((HealthKind)i),
                        gpu_health_grade_of(watched->health, (HealthKind)i), NULL, reason);
    }
    if (gpu_health_grade(watched->health) != HEALTH_BROKEN)
        add_offenders(health, gpu, watched, &findings);
    told = g_variant_ref_sink(g_variant_builder_end(&findings));
    if (watched->told && g_variant_equal(told, watched->told)) {
        g_variant_unref(told);
        return;
    }
    g_clear_pointer(&watched->told, g_variant_unref);
    watched->told = told;
    agent_set_findings(health->agent, gpu, told);
}

static void look_at(Health *health, const Gpu *gpu, gint64 now)
{
    const char *address = gpu->pci->address;
    Watched *watched = watched_at(health, address);

    gpu_health_ignore(watched->health, gpu->health_ignore);
    gpu_readings_read(host_view_root(health->view), gpu->pci, &watched->readings);
    gpu_health_observe(watched->health, &watched->readings, now);
    tell_findings(health, address, watched);
}

/* Number of slices on it, present or future. */
static guint users_of(const Health *health, const char *gpu)
{
    const GPtrArray *slices = host_view_slices(health->view);
    guint users = 0;

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        users += slice_is_promised(slice) && g_str_equal(slice->gpu, gpu);
    }
    return users;
}

/* GPUs with slices that were never seen. */
static void miss_losses(Health *health)
{
    const GPtrArray *slices = host_view_slices(health->view);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (slice_is_promised(slice) && !host_view_gpu(health->view, slice->gpu))
            watched_at(health, slice->gpu);
    }
}

static void look_for_gone(Health *health)
{
    GHashTableIter iter;
    void *gpu;
    void *watched;

    miss_losses(health);
    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &watched)) {
        if (host_view_gpu(health->view, gpu))
            continue;
        gpu_health_observe_gone(((Watched *)watched)->health, users_of(health, gpu));
        tell_findings(health, gpu, watched);
    }
}

static gboolean look_again(void *data);

static void arm_timer(Health *health)
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

static void look_at_all(Health *health)
{
    const GPtrArray *gpus = host_view_gpus(health->view);
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
        agent_tell_event(
            health->agent, "health", vgpu->gpu, vgpu->uuid,
            "%s; GPU %s is not considered the cause, because others work on it or nobody "
            "else has tried",
            loop, vgpu->gpu);
    } else if (!loop) {
        g_hash_table_remove(health->looping, vgpu->uuid);
    }
}

static void judge_engines(Health *health, const char *gpu, Watched *watched)
{
    gpu_health_judge_engines(watched->health, g_get_monotonic_time());
    tell_findings(health, gpu, watched);
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
    const Slice *slice = host_view_slice(health->view, vgpu->uuid);

    gpu_health_observe_engine(watched_at(health, vgpu->gpu)->health, vgpu,
                              slice ? slice->tenant : NULL, g_get_monotonic_time());
}

/* Of containers and programs, as the arbiters say. */
static void look_at_work(Health *health)
{
    const GPtrArray *slices = host_view_slices(health->view);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        const SliceUse *use = slice_is_vgpu(slice)
                                  ? NULL
                                  : counters_use(host_view_counters(health->view), slice->uuid);

        if (use && slice->gpu)
            gpu_health_observe_work(watched_at(health, slice->gpu)->health, slice->uuid,
                                    use->submissions, g_get_monotonic_time());
    }
}

/* @ask: the arbiters, too, which is slower. */
static void look_at_engines(Health *health, gboolean ask)
{
    Counters *counters = host_view_counters(health->view);
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
    const VgpuCounters *vgpu = counters_known(host_view_counters(health->view), uuid);
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
    const GPtrArray *gpus = host_view_gpus(health->view);

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu_readings_need_a_timer(&watched_at(health, gpu->pci->address)->readings))
            look_at(health, gpu, g_get_monotonic_time());
    }
    look_for_gone(health);
    return G_SOURCE_CONTINUE;
}

void health_gpus_changed(Health *health)
{
    /* From then on the driver reports each vGPU that changes. */
    if (!health->engines_seen)
        look_at_engines(health, FALSE);
    health->engines_seen = TRUE;
    look_at_all(health);
    arm_timer(health);
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

gboolean health_acknowledge(Health *health, const char *address, guint64 *aer_fatal, guint64 *ecc,
                            GError **error)
{
    const Gpu *gpu = host_view_gpu(health->view, address);

    if (!gpu) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_FOUND, "the GPU has just been removed");
        return FALSE;
    }
    look_at(health, gpu, g_get_monotonic_time());
    return may_clear(
        gpu, gpu_health_acknowledge(watched_at(health, address)->health, aer_fatal, ecc), error);
}

void health_cleared(Health *health, const char *gpu, guint64 aer_fatal, guint64 ecc)
{
    Watched *watched = watched_at(health, gpu);

    gpu_health_clear(watched->health);
    gpu_health_set_cleared(watched->health, aer_fatal, ecc);
    g_clear_pointer(&watched->told, g_variant_unref);
    look_at_all(health);
}

void health_restore(Health *health, GVariant *held, GVariant *cleared)
{
    const char *gpu, *name, *reason;
    guint64 aer_fatal, ecc;
    GVariantIter iter;
    HealthKind kind;

    g_variant_iter_init(&iter, held);
    while (g_variant_iter_next(&iter, "(&s&s&s)", &gpu, &name, &reason))
        if (health_kind_parse(name, &kind))
            gpu_health_restore(watched_at(health, gpu)->health, kind, reason);
    g_variant_iter_init(&iter, cleared);
    while (g_variant_iter_next(&iter, "(&stt)", &gpu, &aer_fatal, &ecc))
        gpu_health_set_cleared(watched_at(health, gpu)->health, aer_fatal, ecc);
}

void health_tell_again(Health *health)
{
    GHashTableIter iter;
    void *gpu;
    void *watched;

    g_hash_table_iter_init(&iter, health->gpus);
    while (g_hash_table_iter_next(&iter, &gpu, &watched)) {
        g_clear_pointer(&((Watched *)watched)->told, g_variant_unref);
        tell_findings(health, gpu, watched);
    }
}

Health *health_new(const HostView *view, const AgentLink *agent)
{
    Health *health = g_new0(Health, 1);

    health->view = view;
    health->agent = agent;
    health->gpus = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, watched_free);
    health->looping = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return health;
}

void health_free(Health *health)
{
    if (health->timer)
        g_source_remove(health->timer);
    g_hash_table_unref(health->gpus);
    g_hash_table_unref(health->looping);
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
