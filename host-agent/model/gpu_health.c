/* SPDX-License-Identifier: MIT */
#include "host-agent/model/gpu_health.h"

/* The rate of an event: a bucket to which each event adds one, and which leaks. */
/**
 * Bucket - zeroed: empty
 * @level: its content
 * @at: the time of @level, microseconds
 * @seen: the last counter
 * @known: @seen is valid
 */
typedef struct {
    double level;
    gint64 at;
    guint64 seen;
    gboolean known;
} Bucket;

#define MINUTE_US (60 * (gint64)G_USEC_PER_SEC)

/* Single uncorrected errors happen; the finding is cleared after this time without one. */
#define NONFATAL_LEAK_US (10 * MINUTE_US)

/* A link that corrects this many at once, or more than ten a minute for long, is bad. */
#define CORRECTED_LEAK_US (MINUTE_US / 10)
#define CORRECTED_MANY    100
#define CORRECTED_FEW     50

/* Three engines of one vGPU within three minutes: then the bucket holds more than two. */
#define CRASH_LEAK_US (3 * MINUTE_US)
#define CRASHES       2

/* It must have cooled by this much before the finding ends, 1/1000 degree. */
#define COOLED 10000

/* A slice that has computed within this time is a witness. */
#define WORK_RECENT_US CRASH_LEAK_US

static const struct {
    HealthGrade grade;
    gboolean held;
} kinds[HEALTH_KINDS] = {
    [HEALTH_GONE] = {HEALTH_BROKEN, FALSE},
    [HEALTH_AER_FATAL] = {HEALTH_BROKEN, TRUE},
    [HEALTH_AER_NONFATAL] = {HEALTH_PASSING, FALSE},
    [HEALTH_AER_CORRECTED] = {HEALTH_PASSING, FALSE},
    /* A slot with fewer lanes wired than it says, and GPUs that save power, look the same. */
    [HEALTH_LINK] = {HEALTH_NOTICE, FALSE},
    [HEALTH_TEMPERATURE] = {HEALTH_PASSING, FALSE},
    [HEALTH_ECC] = {HEALTH_BROKEN, TRUE},
    [HEALTH_ENGINE_CRASHES] = {HEALTH_ENGINES, TRUE},
    [HEALTH_ENGINE_FAILED] = {HEALTH_ENGINES, FALSE},
};

static const char *const grade_names[] = {
    [HEALTH_NOTICE] = "notice",
    [HEALTH_ENGINES] = "engines",
    [HEALTH_PASSING] = "passing",
    [HEALTH_BROKEN] = "broken",
};

/**
 * Counter - of errors that an operator has to clear
 * @cleared: errors up to this count are acknowledged
 * @seen: the last reading
 * @known: @seen is valid
 */
typedef struct {
    guint64 cleared;
    guint64 seen;
    gboolean known;
} Counter;

struct GpuHealth {
    char *reasons[HEALTH_KINDS];
    guint ignored; /* bits 1 << HealthKind */
    Counter fatal;
    Counter ecc;
    Bucket nonfatal;
    Bucket corrected;
    GHashTable *engines; /* UUID to Engine */
    GHashTable *work;    /* UUID of a slice to Work */
};

/**
 * Work - of a slice that is no vGPU
 * @done: in all, in any unit
 * @at: when it has grown last, microseconds; 0: never seen
 */
typedef struct {
    guint64 done;
    gint64 at;
} Work;

/**
 * Engine - of a vGPU
 * @tenant: whose it is; NULL: nobody's
 * @failure: why it gave up; NULL: it did not
 * @death: why the last one ended
 * @works: it serves a guest now
 * @loops: it dies repeatedly
 */
typedef struct {
    Bucket losses;
    char *tenant;
    char *failure;
    char *death;
    gboolean works;
    gboolean loops;
} Engine;

static void engine_free(void *data)
{
    Engine *engine = data;

    g_free(engine->tenant);
    g_free(engine->failure);
    g_free(engine->death);
    g_free(engine);
}

const char *health_grade_name(HealthGrade grade)
{
    return grade_names[grade];
}

gboolean health_grade_parse(const char *name, HealthGrade *grade)
{
    for (guint i = 0; i < G_N_ELEMENTS(grade_names); i++) {
        if (g_str_equal(grade_names[i], name)) {
            *grade = (HealthGrade)i;
            return TRUE;
        }
    }
    return FALSE;
}

HealthGrade health_kind_grade(HealthKind kind)
{
    return kinds[kind].grade;
}

gboolean health_kind_is_held(HealthKind kind)
{
    return kinds[kind].held;
}

GpuHealth *gpu_health_new(void)
{
    GpuHealth *health = g_new0(GpuHealth, 1);

    health->engines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, engine_free);
    health->work = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return health;
}

void gpu_health_free(GpuHealth *health)
{
    for (guint i = 0; i < HEALTH_KINDS; i++)
        g_free(health->reasons[i]);
    g_hash_table_unref(health->engines);
    g_hash_table_unref(health->work);
    g_free(health);
}

const char *gpu_health_reason(const GpuHealth *health, HealthKind kind)
{
    return health->reasons[kind];
}

void gpu_health_ignore(GpuHealth *health, guint ignored)
{
    health->ignored = ignored;
}

HealthGrade gpu_health_grade_of(const GpuHealth *health, HealthKind kind)
{
    return health->ignored & 1u << kind ? HEALTH_NOTICE : kinds[kind].grade;
}

HealthGrade gpu_health_grade(const GpuHealth *health)
{
    HealthGrade worst = HEALTH_NOTICE;

    for (guint i = 0; i < HEALTH_KINDS; i++)
        if (health->reasons[i])
            worst = MAX(worst, gpu_health_grade_of(health, (HealthKind)i));
    return worst;
}

gboolean gpu_health_is_good(const GpuHealth *health)
{
    return gpu_health_grade(health) == HEALTH_NOTICE;
}

/* Takes @reason. A held finding keeps its first reason, which names the original cause. */
static void note_reason(GpuHealth *health, HealthKind kind, char *reason)
{
    if (kinds[kind].held && health->reasons[kind]) {
        g_free(reason);
        return;
    }
    g_free(health->reasons[kind]);
    health->reasons[kind] = reason;
}

static void lift_reason(GpuHealth *health, HealthKind kind)
{
    g_clear_pointer(&health->reasons[kind], g_free);
}

void gpu_health_restore(GpuHealth *health, HealthKind kind, const char *reason)
{
    note_reason(health, kind, g_strdup(reason));
}

void gpu_health_set_cleared(GpuHealth *health, guint64 aer_fatal, guint64 ecc_uncorrectable)
{
    health->fatal.cleared = aer_fatal;
    health->ecc.cleared = ecc_uncorrectable;
}

static guint64 acknowledged_errors(const Counter *counter)
{
    return counter->known ? counter->seen : counter->cleared;
}

gboolean gpu_health_acknowledge(const GpuHealth *health, guint64 *aer_fatal,
                                guint64 *ecc_uncorrectable)
{
    *aer_fatal = acknowledged_errors(&health->fatal);
    *ecc_uncorrectable = acknowledged_errors(&health->ecc);
    return health->ecc.known || !health->reasons[HEALTH_ECC];
}

/* A counter below the cleared value has restarted, with the device or the host. */
static gboolean has_grown(Counter *counter, guint64 now)
{
    counter->seen = now;
    counter->known = TRUE;
    if (now < counter->cleared)
        counter->cleared = 0;
    return now > counter->cleared;
}

/*
 * Leaks one in each @leak_us since the last call, then adds the growth of @counter since that call.
 * The first call adds nothing, because the time of that growth is unknown. A counter that has
 * decreased has restarted.
 */
static void bucket_fill(Bucket *bucket, guint64 counter, gint64 now_us, gint64 leak_us)
{
    guint64 since = counter < bucket->seen ? 0 : bucket->seen;
    double leaked = bucket->known ? (double)(now_us - bucket->at) / (double)leak_us : 0;

    bucket->level = MAX(0, bucket->level - leaked);
    if (bucket->known)
        bucket->level += (double)(counter - since);
    bucket->known = TRUE;
    bucket->at = now_us;
    bucket->seen = counter;
}

/* A counter that cannot be read now has not restarted: the bucket only leaks. */
static void bucket_observe(Bucket *bucket, gboolean has, guint64 counter, gint64 now_us,
                           gint64 leak_us)
{
    if (has || bucket->known)
        bucket_fill(bucket, has ? counter : bucket->seen, now_us, leak_us);
}

static void judge_aer(GpuHealth *health, const GpuReadings *readings, gint64 now)
{
    if (readings->has_aer && has_grown(&health->fatal, readings->aer_fatal))
        note_reason(health, HEALTH_AER_FATAL,
                    g_strdup_printf("%" G_GUINT64_FORMAT
                                    " fatal errors on its PCI Express link (AER); "
                                    "the kernel's log has more",
                                    readings->aer_fatal - health->fatal.cleared));
    bucket_observe(&health->nonfatal, readings->has_aer, readings->aer_nonfatal, now,
                   NONFATAL_LEAK_US);
    if (health->nonfatal.level > 0)
        note_reason(
            health, HEALTH_AER_NONFATAL,
            g_strdup_printf(
                "errors on its PCI Express link that were not corrected (AER), %" G_GUINT64_FORMAT
                " so far",
                health->nonfatal.seen));
    else
        lift_reason(health, HEALTH_AER_NONFATAL);
    bucket_observe(&health->corrected, readings->has_aer, readings->aer_correctable, now,
                   CORRECTED_LEAK_US);
    if (health->corrected.level >= CORRECTED_MANY)
        note_reason(
            health, HEALTH_AER_CORRECTED,
            g_strdup("many errors on its PCI Express link, so far corrected (AER): a bad slot, "
                     "riser or cable"));
    else if (health->corrected.level < CORRECTED_FEW)
        lift_reason(health, HEALTH_AER_CORRECTED);
}

/* Only the width: the speed drops when idle, to save power. */
static void judge_link(GpuHealth *health, const GpuReadings *readings)
{
    if (readings->link_width && readings->link_width < readings->link_width_max)
        note_reason(
            health, HEALTH_LINK,
            g_strdup_printf("its PCI Express link has %u lanes and could have %u: a bad slot, "
                            "riser or seat",
                            readings->link_width, readings->link_width_max));
    else
        lift_reason(health, HEALTH_LINK);
}

static void judge_temperature(GpuHealth *health, const GpuReadings *readings)
{
    gint64 limit = readings->temperature_limit;

    if (!readings->has_temperature || !limit)
        return lift_reason(health, HEALTH_TEMPERATURE);
    if (readings->temperature >= limit)
        note_reason(health, HEALTH_TEMPERATURE,
                    g_strdup_printf("%" G_GINT64_FORMAT
                                    " degrees Celsius%s%s, critical from %" G_GINT64_FORMAT
                                    " on: look at its fans and its air",
                                    readings->temperature / 1000, readings->sensor[0] ? " at " : "",
                                    readings->sensor, limit / 1000));
    else if (readings->temperature < limit - COOLED)
        lift_reason(health, HEALTH_TEMPERATURE);
}

static void judge_ecc(GpuHealth *health, const GpuReadings *readings)
{
    if (readings->has_ecc && has_grown(&health->ecc, readings->ecc_uncorrectable))
        note_reason(health, HEALTH_ECC,
                    g_strdup_printf("%" G_GUINT64_FORMAT " errors in its memory that ECC could not "
                                    "correct; data of its users may be wrong",
                                    readings->ecc_uncorrectable - health->ecc.cleared));
}

void gpu_health_observe(GpuHealth *health, const GpuReadings *readings, gint64 now_us)
{
    lift_reason(health, HEALTH_GONE);
    judge_aer(health, readings, now_us);
    judge_link(health, readings);
    judge_temperature(health, readings);
    judge_ecc(health, readings);
}

static void count_losses(Engine *engine, guint64 losses, gint64 now_us)
{
    bucket_fill(&engine->losses, losses, now_us, CRASH_LEAK_US);
    engine->loops = engine->losses.level > CRASHES;
}

void gpu_health_observe_engine(GpuHealth *health, const Vgpu *vgpu, const char *tenant,
                               gint64 now_us)
{
    const char *why = vgpu->failure ? vgpu->failure : "";
    Engine *engine = g_hash_table_lookup(health->engines, vgpu->uuid);

    if (!engine) {
        engine = g_new0(Engine, 1);
        g_hash_table_insert(health->engines, g_strdup(vgpu->uuid), engine);
    }
    count_losses(engine, vgpu->engine_losses, now_us);
    engine->works = g_str_equal(vgpu->device, "running") && g_str_equal(vgpu->engine, "ready");
    g_set_str(&engine->tenant, tenant && *tenant ? tenant : NULL);
    g_set_str(&engine->death, why);
    g_set_str(&engine->failure, g_str_equal(vgpu->engine, "failed") ? why : NULL);
}

void gpu_health_forget_engine(GpuHealth *health, const char *uuid)
{
    g_hash_table_remove(health->engines, uuid);
}

void gpu_health_observe_work(GpuHealth *health, const char *uuid, guint64 done, gint64 now_us)
{
    Work *work = g_hash_table_lookup(health->work, uuid);

    if (!work) {
        work = g_new0(Work, 1);
        g_hash_table_insert(health->work, g_strdup(uuid), work);
    }
    /* At the first look it is not known when that was: for a while it is taken for recent. */
    if (done > work->done)
        work->at = MAX(now_us, 1);
    work->done = done;
}

static gboolean has_worked(void *uuid, void *value, void *now_us)
{
    const Work *work = value;

    (void)uuid;
    return work->at && *(const gint64 *)now_us - work->at <= WORK_RECENT_US;
}

static gboolean is_witness(void *uuid, void *value, void *data)
{
    const Engine *engine = value;

    (void)uuid;
    (void)data;
    return engine->works && engine->losses.level <= 0;
}

static gboolean has_witness(const GpuHealth *health, gint64 now_us)
{
    return g_hash_table_find(health->engines, is_witness, NULL) ||
           g_hash_table_find(health->work, has_worked, &now_us);
}

/* Engines of two tenants at least are in trouble. */
static gboolean has_several_suspects(const GpuHealth *health)
{
    const char *first = NULL;
    GHashTableIter iter;
    void *uuid;
    void *value;

    g_hash_table_iter_init(&iter, health->engines);
    while (g_hash_table_iter_next(&iter, &uuid, &value)) {
        const Engine *engine = value;
        const char *whose = engine->tenant ? engine->tenant : uuid;

        if (!engine->loops && !engine->failure)
            continue;
        if (first && !g_str_equal(first, whose))
            return TRUE;
        first = whose;
    }
    return FALSE;
}

static void blame_gpu(GpuHealth *health, const char *uuid, const Engine *engine)
{
    if (engine->loops)
        note_reason(health, HEALTH_ENGINE_CRASHES, gpu_health_engine_loops(health, uuid));
    if (engine->failure)
        note_reason(health, HEALTH_ENGINE_FAILED,
                    g_strdup_printf("the engine of vGPU %s gave up: %s", uuid, engine->failure));
}

static void let_losses_age(GpuHealth *health, gint64 now_us)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, health->engines);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Engine *engine = value;

        count_losses(engine, engine->losses.seen, now_us);
    }
}

void gpu_health_judge_engines(GpuHealth *health, gint64 now_us)
{
    GHashTableIter iter;
    void *uuid;
    void *engine;

    let_losses_age(health, now_us);
    lift_reason(health, HEALTH_ENGINE_FAILED);
    if (has_witness(health, now_us) || !has_several_suspects(health))
        return;
    g_hash_table_iter_init(&iter, health->engines);
    while (g_hash_table_iter_next(&iter, &uuid, &engine))
        blame_gpu(health, uuid, engine);
}

gboolean gpu_health_has_suspect(const GpuHealth *health)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, health->engines);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Engine *engine = value;

        if (engine->loops || engine->failure)
            return TRUE;
    }
    return FALSE;
}

char *gpu_health_engine_loops(const GpuHealth *health, const char *uuid)
{
    const Engine *engine = g_hash_table_lookup(health->engines, uuid);

    if (!engine || !engine->loops)
        return NULL;
    return g_strdup_printf("the engine of vGPU %s dies repeatedly%s%s; \"journalctl -u "
                           "vgpu-engine@%s\" says more",
                           uuid, engine->death[0] ? ": " : "", engine->death, uuid);
}

void gpu_health_observe_gone(GpuHealth *health, guint users)
{
    if (users)
        note_reason(health, HEALTH_GONE,
                    g_strdup_printf("it is missing, and %u vGPUs are promised of it", users));
    else
        lift_reason(health, HEALTH_GONE);
}

/* Its count of losses stays known: the next loss is the first that counts. */
static void forgive_losses(Engine *engine)
{
    engine->losses.level = 0;
    engine->loops = FALSE;
    g_clear_pointer(&engine->failure, g_free);
}

void gpu_health_clear(GpuHealth *health)
{
    GHashTableIter iter;
    void *engine;

    for (guint i = 0; i < HEALTH_KINDS; i++)
        lift_reason(health, (HealthKind)i);
    health->nonfatal.level = 0;
    health->corrected.level = 0;
    g_hash_table_iter_init(&iter, health->engines);
    while (g_hash_table_iter_next(&iter, NULL, &engine))
        forgive_losses(engine);
}

/* The steps if a GPU has less free memory than its water mark. */

static PressureStep next_step(const Pressure *pressure, guint victims, gboolean suspends)
{
    switch (pressure->last) {
    case PRESSURE_TELL:
        return suspends ? PRESSURE_SUSPEND : PRESSURE_COMMAND;
    case PRESSURE_SUSPEND:
        return PRESSURE_COMMAND;
    case PRESSURE_COMMAND:
        return victims ? PRESSURE_EVICT : PRESSURE_NOTHING;
    case PRESSURE_EVICT:
        return victims ? PRESSURE_TELL : PRESSURE_NOTHING;
    default:
        return PRESSURE_TELL;
    }
}

PressureStep pressure_step(Pressure *pressure, guint64 free, guint64 mark, guint victims,
                           gboolean suspends, gint64 now_us, gint64 grace_us)
{
    PressureStep step;

    if (free >= mark) {
        step = pressure_is_on(pressure) ? PRESSURE_OVER : PRESSURE_NOTHING;
        pressure->last = PRESSURE_NOTHING;
        return step;
    }
    if (pressure_is_on(pressure) && now_us - pressure->since < grace_us)
        return PRESSURE_NOTHING;
    step = next_step(pressure, victims, suspends);
    if (step != PRESSURE_NOTHING) {
        pressure->last = step;
        pressure->since = now_us;
    }
    return step;
}

gboolean pressure_is_on(const Pressure *pressure)
{
    return pressure->last != PRESSURE_NOTHING;
}
