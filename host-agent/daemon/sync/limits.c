/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/limits.h"

#include "host-agent/daemon/containers/share_group.h"
#include "host-agent/daemon/sync/device_limits.h"
#include "lib/host_root.h"
#include "lib/systemd.h"
#include "lib/types.h"

/* Host resources that an engine or a guard may use, enforced by its cgroup. */

#define US_PER_PERCENT 10000
#define DEFAULT_WEIGHT 100

/* Of vgpu-engine-user, and of systemd for properties that are set at run time. */
#define USER_DIR    "/run/systemd/system"
#define CONTROL_DIR "/run/systemd/system.control"

EngineLimits engine_limits_of(const Slice *slice, guint cpu, guint64 memory)
{
    EngineLimits limits = {
        .cpu_us = cpu ? (guint64)cpu * US_PER_PERCENT : LIMIT_NONE,
        .memory = memory,
        .weight = slice->weight,
    };

    if (!memory)
        limits.memory = slice->vram + slice->oversubscribe + ENGINE_OWN_MEMORY;
    else if (memory == TYPE_MEMORY_INFINITY)
        limits.memory = LIMIT_NONE;
    return limits;
}

gboolean engine_limits_are_none(const EngineLimits *limits)
{
    return limits->cpu_us == LIMIT_NONE && limits->memory == LIMIT_NONE &&
           limits->weight == DEFAULT_WEIGHT;
}

/*
 * In the form of Manager.SetUnitProperties(): floating, of type a(sv). All of them, so that a
 * removed limit is reset.
 * The default weight is given as "none", because any other makes the kernel schedule engines by
 * their cgroups.
 */
static GVariant *engine_limits_properties(const EngineLimits *limits)
{
    guint64 weight = limits->weight == DEFAULT_WEIGHT ? LIMIT_NONE : limits->weight;
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("a(sv)"));
    g_variant_builder_add(&builder, "(sv)", "CPUQuotaPerSecUSec",
                          g_variant_new_uint64(limits->cpu_us));
    g_variant_builder_add(&builder, "(sv)", "CPUWeight", g_variant_new_uint64(weight));
    g_variant_builder_add(&builder, "(sv)", "MemoryMax", g_variant_new_uint64(limits->memory));
    return g_variant_builder_end(&builder);
}

static gboolean has_dropins(HostRoot *root, const char *where, const char *unit, const char *file)
{
    g_autofree char *dir = g_strconcat(unit, ".d", NULL);
    g_autofree char *path = g_build_filename(where, dir, file, NULL);

    return root_has(root, path);
}

/* vgpu-engine-user has run, so the unit may be loaded: earlier, it would have no user. */
static gboolean engine_limits_can_be_set(HostRoot *root, const char *unit)
{
    return has_dropins(root, USER_DIR, unit, "vgpu.conf");
}

/* Some were set since the vGPU was made; they stay when the engine is restarted. */
static gboolean engine_limits_were_set(HostRoot *root, const char *unit)
{
    return has_dropins(root, CONTROL_DIR, unit, NULL);
}

static gboolean is_guarded(const Slice *slice)
{
    return slice->transport == SLICE_TRANSPORT_GUARDED;
}

/* Its engine's or its guard's. */
static char *unit_of(const Slice *slice)
{
    return is_guarded(slice) ? guard_unit_name(slice->uuid) : engine_unit_name(slice->uuid);
}

/* Limits of engines' and guards' host resources, and of their GPUs if the kernel enforces them. */

/* One query to systemd about a vGPU. */
typedef struct {
    char *uuid;
    const char *method;
    GVariant *parameters;
    void (*answered)(LimitsSync *link, const char *uuid, const GError *error);
} Question;

/**
 * LimitsSync
 * @waiting: of Question; only the first is sent: a bus limits a peer to some tens of pending
 * answers, and a host may have a thousand vGPUs
 */
struct LimitsSync {
    Host *host;
    Outputs *outputs;
    Offers *offers;
    const Slices *slices;
    const Claims *claims;
    GDBusConnection *bus;
    GCancellable *end;
    GQueue waiting;
};

static void question_free(void *data)
{
    Question *question = data;

    g_variant_unref(question->parameters);
    g_free(question->uuid);
    g_free(question);
}

static void ask_first(LimitsSync *link);

/* If the call was cancelled, link and question are gone. */
static void answer_came(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, &error);
    LimitsSync *link = data;
    Question *question;

    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        return;
    question = g_queue_peek_head(&link->waiting);
    question->answered(link, question->uuid, error);
    question_free(g_queue_pop_head(&link->waiting));
    ask_first(link);
}

static void ask_first(LimitsSync *link)
{
    const Question *question = link->waiting.head ? link->waiting.head->data : NULL;

    if (!question)
        return;
    g_dbus_connection_call(link->bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                           "org.freedesktop.systemd1.Manager", question->method,
                           question->parameters, NULL, G_DBUS_CALL_FLAGS_NONE, -1, link->end,
                           answer_came, link);
}

static void ask_systemd(LimitsSync *link, const char *method, GVariant *parameters,
                        const char *uuid,
                        void (*answered)(LimitsSync *, const char *, const GError *))
{
    Question *question = g_new0(Question, 1);

    question->uuid = g_strdup(uuid);
    question->method = method;
    question->parameters = g_variant_ref_sink(parameters);
    question->answered = answered;
    g_queue_push_tail(&link->waiting, question);
    if (link->waiting.length == 1)
        ask_first(link);
}

static void device_limits_set(LimitsSync *link, const char *uuid, const GError *error)
{
    g_autofree char *why = NULL;

    if (!error)
        return;
    why = g_strdup_printf("vgpu-device-limits@%s.service cannot be started: %s", uuid,
                          error->message);
    outputs_failed(link->outputs, &device_limits_kind, uuid, why);
}

/* systemd would merge a start with one that runs, and that has read the former limit. */
static void set_device_limits(const char *uuid, void *data)
{
    g_autofree char *unit = g_strconcat("vgpu-device-limits@", uuid, ".service", NULL);

    ask_systemd(data, "RestartUnit", g_variant_new("(ss)", unit, "replace"), uuid,
                device_limits_set);
}

static void unit_reverted(LimitsSync *link, const char *uuid, const GError *error)
{
    (void)link;
    if (error)
        g_message("slice %s was removed, but the limits of its unit stay: %s", uuid,
                  error->message);
}

static gboolean is_there(const LimitsSync *link, const char *uuid)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(link->host), uuid);

    return vgpu != NULL;
}

/*
 * The slice was removed while systemd was asked: vgpu-engine-user may have run too early to remove
 * this.
 */
static void revert_unit(LimitsSync *link, const char *uuid, const char *unit)
{
    const char *units[] = {unit, NULL};

    ask_systemd(link, "RevertUnitFiles", g_variant_new("(^as)", units), uuid, unit_reverted);
}

static void engine_limits_set(LimitsSync *link, const char *uuid, const GError *error)
{
    g_autofree char *unit = engine_unit_name(uuid);

    if (error)
        outputs_failed(link->outputs, &limits_kind, uuid, error->message);
    else if (!is_there(link, uuid))
        revert_unit(link, uuid, unit);
}

static void guard_limits_set(LimitsSync *link, const char *uuid, const GError *error)
{
    g_autofree char *unit = guard_unit_name(uuid);

    if (error)
        outputs_failed(link->outputs, &limits_kind, uuid, error->message);
    else if (!slices_find(link->slices, uuid))
        revert_unit(link, uuid, unit);
}

static gboolean is_being_asked(const LimitsSync *link, const char *uuid)
{
    for (const GList *one = link->waiting.head; one; one = one->next) {
        if (g_str_equal(((const Question *)one->data)->uuid, uuid))
            return TRUE;
    }
    return FALSE;
}

/*
 * FALSE: the files do not have its type, so nothing is changed. A container's slice of its own size
 * has none, and gets what its size gives.
 */
static gboolean find_limits(const LimitsSync *link, const Slice *slice, EngineLimits *limits)
{
    const Gpu *gpu = host_gpu(link->host, slice->gpu);
    Offer offer;

    if (!*slice->type) {
        *limits = engine_limits_of(slice, 0, 0);
        return TRUE;
    }
    if (!gpu || !offers_find(link->offers, gpu, slice->type, &offer))
        return FALSE;
    *limits = engine_limits_of(slice, offer.cpu, offer.memory);
    return TRUE;
}

static gboolean has_unit(const Slice *slice)
{
    return slice && slice->present && (slice_is_vgpu(slice) || is_guarded(slice));
}

/* Without a trace of limits in the unit there are none, or they ended with the unit before it. */
static gboolean want_limits(Wants *wants, const char *uuid, void *data)
{
    const LimitsSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    g_autofree char *unit = has_unit(slice) ? unit_of(slice) : NULL;
    g_autofree char *settings = NULL;
    EngineLimits limits;

    if (!link->bus)
        return FALSE;
    if (!unit)
        return TRUE;
    if (!engine_limits_can_be_set(host_root(link->host), unit) ||
        !find_limits(link, slice, &limits))
        return FALSE;
    if (!engine_limits_were_set(host_root(link->host), unit) && !is_being_asked(link, uuid)) {
        if (engine_limits_are_none(&limits))
            return TRUE;
        want_anew(wants);
    }
    settings = g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %u", limits.cpu_us,
                               limits.memory, limits.weight);
    want_unit(wants, settings);
    return TRUE;
}

/* At run time only: the unit keeps it as long as the slice exists, and that ends with a boot. */
static void set_limits(const char *uuid, void *data)
{
    LimitsSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    g_autofree char *unit = unit_of(slice);
    EngineLimits limits;

    if (find_limits(link, slice, &limits))
        ask_systemd(link, "SetUnitProperties",
                    g_variant_new("(sb@a(sv))", unit, TRUE, engine_limits_properties(&limits)),
                    uuid, is_guarded(slice) ? guard_limits_set : engine_limits_set);
}

const OutputKind limits_kind = {
    .level = G_LOG_LEVEL_MESSAGE,
    .trouble = {"cannot limit the engine or guard of slice ", ""},
    .want = want_limits,
    .start = set_limits,
};

static char *device_cgroup(const LimitsSync *link, const Slice *slice)
{
    if (slice_is_vgpu(slice))
        return engine_unit_cgroup(slice->uuid);
    if (slice->transport == SLICE_TRANSPORT_GUARDED)
        return guard_unit_cgroup(slice->uuid);
    return slice->transport == SLICE_TRANSPORT_NATIVE ? claims_cgroup(link->claims, slice->uuid)
                                                      : NULL;
}

/* A container's slices of one GPU are one limit, which the first of them stands for. */
static gboolean want_device_limits(Wants *wants, const char *uuid, void *data)
{
    const LimitsSync *link = data;
    const Slice *slice = slices_find(link->slices, uuid);
    gboolean is_here = slice && slice->present;
    g_autoptr(Slice) share = is_here ? share_group_share(link->slices, link->claims, slice) : NULL;
    const Gpu *gpu = is_here ? host_gpu(link->host, slice->gpu) : NULL;
    g_autofree char *cgroup = is_here ? device_cgroup(link, slice) : NULL;

    if (!link->bus)
        return FALSE;
    if (share && gpu && cgroup)
        device_limits_want(wants, host_root(link->host), share, gpu, cgroup,
                           outputs_started(link->outputs, &device_limits_kind, uuid));
    return TRUE;
}

const OutputKind device_limits_kind = {
    .level = G_LOG_LEVEL_MESSAGE,
    .trouble = {"the GPU memory of slice ", " is not limited below the door"},
    .want = want_device_limits,
    .start = set_device_limits,
};

void limits_sync_refresh(LimitsSync *link)
{
    const GPtrArray *slices = slices_all(link->slices);

    if (!link->bus)
        return;
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        outputs_update(link->outputs, &limits_kind, link, slice->uuid);
        outputs_update(link->outputs, &device_limits_kind, link, slice->uuid);
    }
}

LimitsSync *limits_sync_new(Host *host, Outputs *outputs, Offers *offers, const Slices *slices,
                            const Claims *claims)
{
    LimitsSync *link = g_new0(LimitsSync, 1);

    link->host = host;
    link->outputs = outputs;
    link->offers = offers;
    link->slices = slices;
    link->claims = claims;
    link->end = g_cancellable_new();
    return link;
}

void limits_sync_free(LimitsSync *link)
{
    g_cancellable_cancel(link->end);
    g_object_unref(link->end);
    g_clear_object(&link->bus);
    g_queue_clear_full(&link->waiting, question_free);
    g_free(link);
}

void limits_sync_start(LimitsSync *link, GDBusConnection *bus)
{
    link->bus = g_object_ref(bus);
    limits_sync_refresh(link);
}
