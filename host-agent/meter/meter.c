/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/meter.h"

#include "host-agent/meter/alone_time.h"
#include "host-agent/meter/owners.h"
#include "host-agent/meter/use_list.h"
#include "lib/bus.h"
#include "lib/vgpud_conf.h"

struct Meter {
    AgentLink agent;
    Db *db;
    HostView *view;
    AloneTime *alone;
    Owners *owners;
    Health *health;
    PressureWatch *pressure;
    BypassWatch *bypass;
    UsageSampler *usage;
    Scrape *scrape;
};

/* An arbiter may still report a slice that has just been removed. */
static void add_alone_time(const ReportedSlice *slice, SliceUse *use, void *data)
{
    const Meter *meter = data;

    if (host_view_slice(meter->view, slice->uuid))
        alone_time_add(meter->alone, slice, use);
}

/* A busy port must not stop the rest. */
static void offer_metrics(Meter *meter, const char *listen)
{
    g_autoptr(GError) error = NULL;

    if (!scrape_listen(meter->scrape, listen, &error))
        g_message("%s", error->message);
}

/* @conf: NULL: it cannot be read, and what was said before counts. */
static void read_settings(Meter *meter, const VgpudConf *conf)
{
    host_view_read_offers(meter->view);
    if (!conf)
        return;
    bypass_watch_set_policy(meter->bypass, conf->on_bypass);
    offer_metrics(meter, conf->metrics_listen);
}

static void refresh_watches(Meter *meter)
{
    pressure_watch_refresh(meter->pressure);
    usage_sampler_refresh(meter->usage);
    bypass_watch_refresh(meter->bypass);
}

static void read_gpus(Meter *meter)
{
    host_view_read_gpus(meter->view);
    health_gpus_changed(meter->health);
    refresh_watches(meter);
}

static gboolean make_modules(Meter *meter, OnBypass on_bypass, GError **error)
{
    meter->alone = alone_time_new(host_view_root(meter->view));
    arbiter_reports_complete(host_view_reports(meter->view), add_alone_time, meter);
    meter->owners = owners_new(meter->view, error);
    if (!meter->owners)
        return FALSE;
    meter->health = health_new(meter->view, &meter->agent);
    meter->pressure = pressure_watch_new(meter->view, &meter->agent);
    meter->bypass = bypass_watch_new(meter->view, &meter->agent, on_bypass);
    meter->usage = usage_sampler_new(meter->view, &meter->agent);
    meter->scrape =
        scrape_new(meter->view, meter->health, meter->pressure, meter->bypass, meter->owners);
    return TRUE;
}

Meter *meter_new(HostRoot *root, const AgentLink *agent, GVariant *state, GError **error)
{
    g_autoptr(Meter) meter = g_new0(Meter, 1);
    g_autoptr(VgpudConf) conf = vgpud_conf_load_at_start(root, error);
    g_autoptr(GVariant) slices = NULL, held = NULL, cleared = NULL;
    gint64 started;

    meter->agent = *agent;
    meter->db = conf ? db_open_meter(root, error) : NULL;
    if (!meter->db)
        return NULL;
    g_variant_get(state, "(@a{sa{sv}}@a(sss)@a(stt)x)", &slices, &held, &cleared, &started);
    meter->view = host_view_new(root, meter->db);
    host_view_set_slices(meter->view, slices);
    host_view_read_offers(meter->view);
    if (!make_modules(meter, conf->on_bypass, error))
        return NULL;
    scrape_set_started(meter->scrape, started);
    health_restore(meter->health, held, cleared);
    offer_metrics(meter, conf->metrics_listen);
    read_gpus(meter);
    usage_sampler_tell_again(meter->usage);
    owners_sample(meter->owners);
    return g_steal_pointer(&meter);
}

void meter_free(Meter *meter)
{
    g_clear_pointer(&meter->scrape, scrape_free);
    g_clear_pointer(&meter->usage, usage_sampler_free);
    g_clear_pointer(&meter->bypass, bypass_watch_free);
    g_clear_pointer(&meter->pressure, pressure_watch_free);
    g_clear_pointer(&meter->health, health_free);
    g_clear_pointer(&meter->owners, owners_free);
    g_clear_pointer(&meter->view, host_view_free);
    g_clear_pointer(&meter->alone, alone_time_free);
    g_clear_pointer(&meter->db, db_free);
    g_free(meter);
}

/* @uuid: not the slice's own. */
static void set_slice(Meter *meter, const char *uuid, GVariant *told)
{
    host_view_set_slice(meter->view, uuid, told);
    if (!told)
        alone_time_forget(meter->alone, uuid);
    owners_update(meter->owners, uuid);
}

/* UUIDs, to be freed. */
static GStrv known_slices(const Meter *meter)
{
    const GPtrArray *slices = host_view_slices(meter->view);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; i < slices->len; i++)
        g_strv_builder_add(uuids, ((const Slice *)g_ptr_array_index(slices, i))->uuid);
    return g_strv_builder_end(uuids);
}

static void forget_others(Meter *meter, GVariant *slices)
{
    g_auto(GStrv) known = known_slices(meter);

    for (guint i = 0; known[i]; i++) {
        g_autoptr(GVariant) still = g_variant_lookup_value(slices, known[i], NULL);

        if (!still)
            set_slice(meter, known[i], NULL);
    }
}

void meter_begin_again(Meter *meter, GVariant *state)
{
    g_autoptr(GVariant) slices = g_variant_get_child_value(state, 0);
    g_autoptr(VgpudConf) conf = vgpud_conf_load_at_start(host_view_root(meter->view), NULL);
    GVariantIter iter;
    const char *uuid;
    GVariant *told;
    gint64 started;

    g_variant_get_child(state, 3, "x", &started);
    scrape_set_started(meter->scrape, started);
    read_settings(meter, conf);
    forget_others(meter, slices);
    g_variant_iter_init(&iter, slices);
    while (g_variant_iter_loop(&iter, "{&s@a{sv}}", &uuid, &told))
        set_slice(meter, uuid, told);
    counters_forget(host_view_counters(meter->view), NULL);
    health_events_lost(meter->health);
    read_gpus(meter);
    health_tell_again(meter->health);
    usage_sampler_tell_again(meter->usage);
}

void meter_set_agent_up(Meter *meter, gboolean up)
{
    counters_set_watched(host_view_counters(meter->view), up);
    scrape_set_agent_up(meter->scrape, up);
}

static void hear_slice(Meter *meter, GVariant *arguments)
{
    g_autofree char *uuid = NULL;
    g_autoptr(GVariant) told = NULL;

    g_variant_get(arguments, "(s@a{sv})", &uuid, &told);
    set_slice(meter, uuid, g_variant_n_children(told) ? told : NULL);
    refresh_watches(meter);
}

static void hear_gpus(Meter *meter, GVariant *arguments)
{
    (void)arguments;
    read_gpus(meter);
}

static void hear_vgpu(Meter *meter, GVariant *arguments)
{
    const char *uuid;

    g_variant_get(arguments, "(&s)", &uuid);
    counters_read_one(host_view_counters(meter->view), uuid);
    health_vgpu_changed(meter->health, uuid);
    refresh_watches(meter);
}

static void hear_losses(Meter *meter, GVariant *arguments)
{
    (void)arguments;
    counters_forget(host_view_counters(meter->view), NULL);
    health_events_lost(meter->health);
}

/* vgpud has taken them, so they have no mistake. */
static void hear_settings(Meter *meter, GVariant *arguments)
{
    g_autoptr(VgpudConf) conf = vgpud_conf_load(host_view_root(meter->view), NULL);

    (void)arguments;
    read_settings(meter, conf);
    read_gpus(meter);
    usage_sampler_tell_again(meter->usage);
}

static void hear_cleared(Meter *meter, GVariant *arguments)
{
    const char *gpu;
    guint64 aer_fatal, ecc;

    g_variant_get(arguments, "(&stt)", &gpu, &aer_fatal, &ecc);
    health_cleared(meter->health, gpu, aer_fatal, ecc);
}

static const struct {
    const char *name;
    void (*hear)(Meter *meter, GVariant *arguments);
} signals[] = {
    {"SliceChanged", hear_slice},       {"GpusChanged", hear_gpus},
    {"VgpuChanged", hear_vgpu},         {"EventsLost", hear_losses},
    {"SettingsChanged", hear_settings}, {"HealthCleared", hear_cleared},
};

void meter_hear(Meter *meter, const char *signal, GVariant *arguments)
{
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++)
        if (g_str_equal(signals[i].name, signal))
            signals[i].hear(meter, arguments);
}

static void reply_with(MeterReplyFunc func, void *data, GVariant *answer)
{
    g_variant_ref_sink(answer);
    func(answer, NULL, data);
    g_variant_unref(answer);
}

static void answer_report(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data)
{
    const char *tenant, *month;

    g_variant_get(arguments, "(&s&s)", &tenant, &month);
    usage_sampler_report(meter->usage, tenant, month, func, data);
}

static void answer_list_use(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data)
{
    (void)arguments;
    reply_with(func, data, g_variant_new("(@a{sa{sv}})", use_list(meter->view)));
}

static void answer_acknowledge(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data)
{
    g_autoptr(GError) error = NULL;
    guint64 aer_fatal, ecc;
    const char *gpu;

    g_variant_get(arguments, "(&s)", &gpu);
    if (health_acknowledge(meter->health, gpu, &aer_fatal, &ecc, &error))
        reply_with(func, data, g_variant_new("(tt)", aer_fatal, ecc));
    else
        func(NULL, error, data);
}

static void answer_sample_owners(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data)
{
    (void)arguments;
    owners_sample(meter->owners);
    reply_with(func, data, g_variant_new("()"));
}

static GVariant *dict_of_totals(const OwnerTotals *totals)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Slices", "u", totals->slices);
    g_variant_dict_insert(&dict, "GpuTime", "t", totals->counts.gpu_ns);
    g_variant_dict_insert(&dict, "Waited", "t", totals->counts.waited_ns);
    g_variant_dict_insert(&dict, "Throttled", "t", totals->counts.throttled_ns);
    g_variant_dict_insert(&dict, "PeakVram", "t", totals->peak_vram);
    if (totals->energy_known)
        g_variant_dict_insert(&dict, "Energy", "t", totals->energy_uj);
    return g_variant_dict_end(&dict);
}

static void answer_get_owner(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data)
{
    const char *owner;
    OwnerTotals totals;

    g_variant_get(arguments, "(&s)", &owner);
    totals = owners_totals(meter->owners, owner);
    reply_with(func, data, g_variant_new("(@a{sv})", dict_of_totals(&totals)));
}

static const struct {
    const char *name;
    void (*answer)(Meter *meter, GVariant *arguments, MeterReplyFunc func, void *data);
} methods[] = {
    {"Report", answer_report},
    {"ListUse", answer_list_use},
    {"AcknowledgeHealth", answer_acknowledge},
    {"SampleOwners", answer_sample_owners},
    {"GetOwner", answer_get_owner},
};

void meter_answer(Meter *meter, const char *method, GVariant *arguments, MeterReplyFunc func,
                  void *data)
{
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        if (g_str_equal(methods[i].name, method))
            methods[i].answer(meter, arguments, func, data);
}

const HostView *meter_view(const Meter *meter)
{
    return meter->view;
}

Health *meter_health(const Meter *meter)
{
    return meter->health;
}

PressureWatch *meter_pressure(const Meter *meter)
{
    return meter->pressure;
}

BypassWatch *meter_bypass(const Meter *meter)
{
    return meter->bypass;
}

UsageSampler *meter_usage(const Meter *meter)
{
    return meter->usage;
}

Scrape *meter_scrape(const Meter *meter)
{
    return meter->scrape;
}
