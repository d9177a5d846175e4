/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/file.h>

#include "lib/bus.h"
#include "host-agent/daemon/audit_sources.h"
#include "host-agent/daemon/containers/claims.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/host/vulkan_watch.h"
#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/methods/slice_run.h"
#include "host-agent/daemon/modes/modes.h"
#include "host-agent/daemon/modes/schedule.h"
#include "host-agent/daemon/modes/wanted.h"
#include "host-agent/daemon/slices/mdevctl.h"
#include "host-agent/daemon/slices/offers.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/daemon/slices/pools.h"
#include "host-agent/daemon/slices/slices.h"
#include "host-agent/daemon/sync/arbiter_sync.h"
#include "host-agent/daemon/sync/cdi.h"
#include "host-agent/daemon/sync/driver_types.h"
#include "host-agent/daemon/sync/limits.h"
#include "host-agent/daemon/sync/node_access.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/sync/transport_sync.h"
#include "lib/vgpud_conf.h"
#include "host-agent/model/request.h"

/* Compares /etc/vgpu with the settings of commands. */

/* The tenants that are declared now, of Tenant; NULL with AGENT_ERROR_INVALID. */
static GPtrArray *config_tenants(HostRoot *root, GError **error)
{
    g_autoptr(GError) cause = NULL;
    GPtrArray *entries = tenants_conf_load(root, &cause);

    if (!entries)
        g_set_error_literal(error, AGENT_ERROR, AGENT_ERROR_INVALID, cause->message);
    return entries;
}

/* Pools and tenants can refuse it, and are asked before anything is changed. */
static gboolean apply_config(Host *host, Tenants *tenants, const Pools *pools,
                             const GPtrArray *entries, gboolean dry_run, GStrvBuilder *changes,
                             GError **error)
{
    g_autoptr(GStrvBuilder) would_be = g_strv_builder_new();

    return pools_apply(pools, TRUE, would_be, error) &&
           tenants_apply(tenants, entries, dry_run, changes, error) &&
           wanted_apply(host_root(host), dry_run, changes, error) &&
           pools_apply(pools, dry_run, changes, error);
}

/*
 * Forgets settings of commands that /etc/vgpu declares; @dry_run: only determines what would
 * change. Returns a sentence for each change; NULL with @error: nothing was changed. It does not
 * read the files again.
 */
static GStrv config_apply(Host *host, Tenants *tenants, const Pools *pools, gboolean dry_run,
                          GError **error)
{
    g_autoptr(GPtrArray) entries = config_tenants(host_root(host), error);
    g_autoptr(GStrvBuilder) changes = g_strv_builder_new();

    if (!entries || !apply_config(host, tenants, pools, entries, dry_run, changes, error))
        return NULL;
    return g_strv_builder_end(changes);
}

/*
 * One vgpud for each host: a second one would finish, or undo, the first one's current operations.
 */

#define LOCK_DIR  "/run/vgpu"
#define LOCK_FILE LOCK_DIR "/vgpud.lock"

static int set_lock_error(const char *path, int code, GError **error)
{
    if (code == EWOULDBLOCK)
        g_set_error(
            error, AGENT_ERROR, AGENT_ERROR_IN_USE,
            "another vgpud is running on this host (it holds %s); \"systemctl status vgpud\" "
            "shows it",
            path);
    else
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_FAILED, "%s can't be locked: %s", path,
                    g_strerror(code));
    return -1;
}

/*
 * A file descriptor that prevents others until it is closed or the process ends; -1 with
 * AGENT_ERROR_IN_USE if another vgpud runs, AGENT_ERROR_FAILED if the lock fails otherwise.
 */
static int instance_lock(HostRoot *root, GError **error)
{
    g_autofree char *path = root_path(root, LOCK_FILE, NULL);
    int fd, code;

    root_mkdir(root, LOCK_DIR, 0755, NULL);
    fd = root_open(root, LOCK_FILE, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return set_lock_error(path, errno, error);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    code = errno;
    close(fd);
    return set_lock_error(path, code, error);
}

/**
 * struct Agent
 * @lock: prevents a second vgpud; -1: not yet
 */
struct Agent {
    int lock;
    Inventory *inventory;
    Db *db;
    Operations *operations;
    Lifecycle life;
    Host *host;
    Offers *offers;
    Slices *slices;
    Tenants *tenants;
    Claims *claims;
    MeterLink meter;
    Findings *findings;
    Returns *returns;
    Evictions *evictions;
    Metering *metering;
    Pools *pools;
    Outputs *outputs;
    TransportSync *doors;
    CdiSync *cdi;
    NodeAccess *nodes;
    Vgpus *vgpus;
    ArbiterSync *arbiters;
    LimitsSync *limits;
    Modes *modes;
    Schedule *schedule;
    DefinitionWatch *definitions;
    DomainWatch *domains;
    VulkanWatch *vulkan;
    AuditWorld audit;
    AuditOperations *audit_operations;
    AuditGpus *audit_gpus;
    gboolean exported;
};

static void warn_at_start(const GError *cause, const char *lost)
{
    g_warning("%s; until this is corrected (\"vgpuctl reload\") %s", cause->message, lost);
}

/*
 * At the start nothing was in force before. A wrong file costs its own part only: a host without
 * its arbiters would share its GPUs without anybody who divides them.
 */
static void read_at_start(Agent *agent)
{
    g_autoptr(GError) types = NULL;
    g_autoptr(GError) tenants = NULL;
    g_autoptr(GError) schedule = NULL;
    GPtrArray *declared, *entries;

    if (!offers_reload(agent->offers, &types))
        warn_at_start(types, "no vGPU or slice can be made; those that exist stay");
    declared = config_tenants(inventory_root(agent->inventory), &tenants);
    if (declared)
        tenants_declare(agent->tenants, declared);
    else
        warn_at_start(tenants, "no declared tenant exists, only those set by command");
    entries = schedule_read(agent->schedule, &schedule);
    if (entries)
        schedule_take(agent->schedule, entries);
    else
        warn_at_start(schedule, "no GPU changes its mode or pool by the clock");
}

/**
 * Settings - all of /etc/vgpu, without a mistake
 * @tenants: of Tenant
 * @schedule: of ScheduleEntry
 */
typedef struct {
    VgpudConf *conf;
    Offers *offers;
    GPtrArray *tenants;
    GPtrArray *schedule;
} Settings;

static void settings_free(Settings *settings)
{
    g_clear_pointer(&settings->conf, vgpud_conf_free);
    g_clear_pointer(&settings->offers, offers_free);
    g_clear_pointer(&settings->tenants, g_ptr_array_unref);
    g_clear_pointer(&settings->schedule, g_ptr_array_unref);
    g_free(settings);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Settings, settings_free)

/*
 * For a reload. Also the driver has taken them, because it can refuse what the files say. NULL with
 * @error: what was in force before still is, in the driver as well.
 */
static Settings *settings_read(const Agent *agent, GError **error)
{
    HostRoot *root = inventory_root(agent->inventory);
    g_autoptr(Settings) settings = g_new0(Settings, 1);

    settings->offers = offers_new(root);
    settings->conf = vgpud_conf_load(root, error);
    if (!settings->conf || !offers_reload(settings->offers, error))
        return NULL;
    settings->tenants = config_tenants(root, error);
    if (settings->tenants)
        settings->schedule = schedule_read(agent->schedule, error);
    if (!settings->schedule ||
        !driver_types_update(agent->host, agent->offers, settings->offers, error))
        return NULL;
    return g_steal_pointer(&settings);
}

static void settings_take(Agent *agent, Settings *settings)
{
    tenants_declare(agent->tenants, g_steal_pointer(&settings->tenants));
    offers_take(agent->offers, g_steal_pointer(&settings->offers));
    schedule_take(agent->schedule, g_steal_pointer(&settings->schedule));
    evictions_set_grace(agent->evictions, settings->conf->pressure_grace);
    evictions_set_native(agent->evictions, settings->conf->pressure_native);
    slices_set_displaced(agent->slices, settings->conf->displaced);
    host_refresh(agent->host);
    slices_refresh(agent->slices);
    modes_reload(agent->modes);
    arbiter_sync_refresh(agent->arbiters);
    arbiter_sync_start_again(agent->arbiters);
    limits_sync_refresh(agent->limits);
    cdi_sync_refresh(agent->cdi);
    meter_tell(&agent->meter, "SettingsChanged", g_variant_new("()"));
}

static void reload_authorized(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Agent *agent = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(Settings) settings = settings_read(agent, &error);

    (void)caller;
    if (!settings) {
        call_fail(invocation, error);
        return;
    }
    settings_take(agent, settings);
    call_answer(invocation, NULL);
}

/* What can be refused is determined before anything is changed. */
static GStrv apply_settings(Agent *agent, gboolean dry_run, GError **error)
{
    g_autoptr(Settings) settings = NULL;
    g_auto(GStrv) changes = config_apply(agent->host, agent->tenants, agent->pools, TRUE, error);

    if (!changes || dry_run)
        return g_steal_pointer(&changes);
    settings = settings_read(agent, error);
    if (!settings)
        return NULL;
    g_strfreev(changes);
    changes = config_apply(agent->host, agent->tenants, agent->pools, FALSE, error);
    if (changes)
        settings_take(agent, settings);
    else
        driver_types_update(agent->host, settings->offers, agent->offers, NULL);
    return g_steal_pointer(&changes);
}

static void apply_authorized(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Agent *agent = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) options = NULL;
    g_auto(GStrv) changes = NULL;
    gboolean dry_run = FALSE;
    const DictKey keys[] = {{"DryRun", 'b', &dry_run, NULL, 0, 0}};

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(@a{sv})", &options);
    if (dict_read(options, keys, G_N_ELEMENTS(keys), &error))
        changes = apply_settings(agent, dry_run, &error);
    if (!changes) {
        call_fail(invocation, error);
        return;
    }
    if (!dry_run)
        g_message("%s applied /etc/vgpu", caller->user);
    call_answer(invocation, g_variant_new("(^as)", changes));
}

/* What follows from what the meter tells. */
static gboolean make_metering(Agent *agent, GError **error)
{
    g_autoptr(VgpudConf) conf = vgpud_conf_load_at_start(inventory_root(agent->inventory), error);

    if (!conf)
        return FALSE;
    slices_set_displaced(agent->slices, conf->displaced);
    agent->findings = findings_new(agent->host, &agent->meter);
    agent->returns = returns_new(agent->host, agent->slices);
    agent->evictions = evictions_new(agent->host, agent->offers, agent->slices, agent->returns,
                                     conf->pressure_grace);
    evictions_set_native(agent->evictions, conf->pressure_native);
    agent->metering =
        metering_new(&(MeteringParts){agent->host, agent->slices, agent->tenants, agent->claims,
                                      agent->findings, agent->evictions, &agent->meter});
    return TRUE;
}

/* What each slice has on the host, in the order in which it is made, each for a reason. */
static void set_steps(const Agent *agent)
{
    const OutputStep steps[] = {
        {&slice_dirs_kind, agent->doors, TRUE},     /* the arbiter makes its socket in there */
        {&share_kind, agent->arbiters, TRUE},       /* who uses the slice finds its share */
        {&limits_kind, agent->limits, TRUE},        /* a running engine gets them at once */
        {&device_limits_kind, agent->limits, TRUE}, /* a guard's unit reads the file */
        {&cuda_links_kind, agent->doors, FALSE},    /* a program sees those of when it starts */
        {&guard_kind, agent->doors, TRUE},          /* starts with what is there */
        {&cdi_kind, agent->cdi, FALSE},             /* offers what is there */
    };

    outputs_set_steps(agent->outputs, steps, G_N_ELEMENTS(steps));
}

/* @state: only its users or its engine have changed. */
static void update_outputs(const Agent *agent, const char *uuid, gboolean state)
{
    outputs_update_slice(agent->outputs, uuid, !slices_find(agent->slices, uuid), state);
}

static void slice_changed(const char *uuid, void *data)
{
    Agent *agent = data;

    update_outputs(agent, uuid, FALSE);
    node_access_update(agent->nodes);
    metering_slice_changed(agent->metering, uuid);
    if (agent->exported)
        domain_watch_refresh(agent->domains);
}

static void tenants_changed(void *data)
{
    Agent *agent = data;

    transport_sync_refresh(agent->doors);
}

static void container_ended(const char *uuid, const char *container, void *data)
{
    Agent *agent = data;

    g_message("%s, which used slice %s, has ended without a report", container, uuid);
    slice_claim_end(agent->vgpus, uuid, container);
}

/* GPUs have changed, so their slices may have. */
static void gpus_changed(void *data)
{
    Agent *agent = data;

    if (!agent->exported)
        return;
    slices_show_capacity(agent->slices);
    transport_sync_refresh(agent->doors);
    cdi_sync_refresh(agent->cdi);
    node_access_refresh(agent->nodes);
    meter_tell(&agent->meter, "GpusChanged", g_variant_new("()"));
}

static void switching_changed(GObject *gpu, GParamSpec *property, void *data)
{
    (void)gpu;
    (void)property;
    gpus_changed(data);
}

static void gpu_added(VgpuGpu *gpu, void *data)
{
    g_signal_connect(gpu, "notify::switching", G_CALLBACK(switching_changed), data);
}

static void guard_starts(const char *uuid, void *data)
{
    const Agent *agent = data;

    outputs_update(agent->outputs, &limits_kind, agent->limits, uuid);
    outputs_update(agent->outputs, &device_limits_kind, agent->limits, uuid);
}

static void claim_changed(const char *uuid, void *data)
{
    Agent *agent = data;

    if (!agent->exported)
        return;
    update_outputs(agent, uuid, TRUE);
    metering_users_changed(agent->metering, uuid);
}

/* "slurm job 4711" of "slurm:CLUSTER:4711"; other engines' owners as they are. To be freed. */
static char *owner_for_people(const char *owner)
{
    if (g_str_has_prefix(owner, "slurm:"))
        return g_strconcat("slurm job ", strrchr(owner, ':') + 1, NULL);
    return g_strdup(owner);
}

/*
 * Users of the GPU's slices whose transport the kernel does not know. An owner has its slices until
 * it is released, with any transport.
 */
static void add_users(const char *gpu, GStrvBuilder *users, void *data)
{
    Agent *agent = data;
    const GPtrArray *slices = slices_all(agent->slices);
    g_autoptr(GHashTable) members = arbiters_members(host_arbiters(agent->host), gpu);

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);
        g_autofree char *user = NULL;

        if (!g_str_equal(slice->gpu, gpu))
            continue;
        user = *slice->owner ? owner_for_people(slice->owner)
                             : claims_user(agent->claims, members, slice);
        if (user)
            g_strv_builder_take(users, g_strdup_printf("%s has slice %s", user, slice->uuid));
    }
}

static gboolean make_modules(Agent *agent, GError **error)
{
    static const ProgramsForRoom programs = {slice_suspend_for_room, slice_resume_with_room,
                                             slice_end_for_room};
    SwitchPools pools;

    agent->host = host_new(agent->inventory, agent->db);
    agent->offers = offers_new(inventory_root(agent->inventory));
    agent->operations = operations_new(agent->db, NULL);
    agent->audit_operations = audit_operations_new(agent->operations);
    agent->audit_gpus = audit_gpus_new(agent->host, agent->operations);
    agent->slices = slices_new(agent->host, agent->offers, agent->operations, error);
    if (agent->slices)
        agent->tenants = tenants_new(agent->host, agent->slices, error);
    if (agent->tenants)
        agent->claims = claims_new(agent->host, agent->slices, error);
    if (!agent->claims || !make_metering(agent, error))
        return FALSE;
    agent->life =
        (Lifecycle){agent->host, agent->slices, agent->claims, agent->operations, &agent->meter};
    operations_add_kinds(agent->operations, lifecycle_kinds, &agent->life);
    agent->modes = modes_new(agent->host, agent->operations);
    agent->pools = pools_new(agent->host, agent->slices);
    pools = pools_for_switches(agent->pools);
    modes_set_pools(agent->modes, &pools);
    if (!operations_load(agent->operations, error))
        return FALSE;
    agent->vulkan = vulkan_watch_new(agent->host);
    agent->vgpus = vgpus_new(&agent->life, agent->offers, agent->tenants, agent->returns);
    evictions_set_programs(agent->evictions, &programs, agent->vgpus);
    claims_watch(agent->claims, container_ended, agent);
    agent->outputs = outputs_new(host_root(agent->host));
    agent->doors = transport_sync_new(agent->host, agent->outputs, agent->slices, agent->tenants,
                                      agent->claims);
    agent->cdi = cdi_sync_new(agent->host, agent->outputs, agent->slices, agent->tenants);
    agent->nodes = node_access_new(agent->host, agent->outputs, agent->slices);
    tenants_watch(agent->tenants, tenants_changed, agent);
    claims_watch_changes(agent->claims, claim_changed, agent);
    host_watch(agent->host, gpu_added, gpus_changed, agent);
    host_set_users(agent->host, add_users, agent);
    host_set_door(agent->host, slice_transport_of_gpu);
    agent->arbiters =
        arbiter_sync_new(agent->host, agent->outputs, agent->offers, agent->slices, agent->claims);
    agent->limits =
        limits_sync_new(agent->host, agent->outputs, agent->offers, agent->slices, agent->claims);
    set_steps(agent);
    slices_watch(agent->slices, slice_changed, agent);
    agent->domains = domain_watch_new(&agent->life);
    agent->schedule = schedule_new(agent->host, agent->modes);
    agent->audit = (AuditWorld){agent->host, agent->slices, agent->tenants, agent->claims};
    audit_set_describe(audit_state, &agent->audit);
    authority_answer(host_manager(agent->host), "handle-reload", ACTION_ADMINISTER,
                     reload_authorized, NULL, agent);
    authority_answer(host_manager(agent->host), "handle-apply-config", ACTION_ADMINISTER,
                     apply_authorized, NULL, agent);
    return TRUE;
}

Agent *agent_new(HostRoot *root, GError **error)
{
    g_autoptr(Agent) agent = g_new0(Agent, 1);

    agent->inventory = inventory_new(root);
    agent->lock = instance_lock(root, error);
    agent->db = agent->lock >= 0 ? db_open(root, error) : NULL;
    if (!agent->db || !make_modules(agent, error))
        return NULL;
    read_at_start(agent);
    return g_steal_pointer(&agent);
}

void agent_free(Agent *agent)
{
    /* Before its switches are abandoned: they are due again at the next start. */
    g_clear_pointer(&agent->schedule, schedule_free);
    g_clear_pointer(&agent->operations, operations_free);
    if (agent->audit.host)
        audit_set_describe(NULL, NULL);
    g_clear_pointer(&agent->audit_operations, audit_operations_free);
    g_clear_pointer(&agent->modes, modes_free);
    g_clear_pointer(&agent->definitions, definition_watch_free);
    g_clear_pointer(&agent->domains, domain_watch_free);
    g_clear_pointer(&agent->vulkan, vulkan_watch_free);
    g_clear_pointer(&agent->limits, limits_sync_free);
    g_clear_pointer(&agent->arbiters, arbiter_sync_free);
    g_clear_pointer(&agent->nodes, node_access_free);
    g_clear_pointer(&agent->cdi, cdi_sync_free);
    g_clear_pointer(&agent->outputs, outputs_free);
    g_clear_pointer(&agent->doors, transport_sync_free);
    g_clear_pointer(&agent->vgpus, vgpus_free);
    g_clear_pointer(&agent->pools, pools_free);
    g_clear_pointer(&agent->metering, metering_free);
    g_clear_pointer(&agent->evictions, evictions_free);
    g_clear_pointer(&agent->returns, returns_free);
    g_clear_pointer(&agent->findings, findings_free);
    g_clear_pointer(&agent->claims, claims_free);
    g_clear_pointer(&agent->tenants, tenants_free);
    g_clear_pointer(&agent->slices, slices_free);
    g_clear_pointer(&agent->offers, offers_free);
    g_clear_pointer(&agent->host, host_free);
    g_clear_pointer(&agent->audit_gpus, audit_gpus_free);
    g_clear_pointer(&agent->db, db_free);
    inventory_free(agent->inventory);
    if (agent->lock >= 0)
        close(agent->lock);
    g_free(agent);
}

Host *agent_host(const Agent *agent)
{
    return agent->host;
}

Metering *agent_metering(const Agent *agent)
{
    return agent->metering;
}

void agent_set_meter(Agent *agent, const MeterLink *meter)
{
    agent->meter = *meter;
}

DomainWatch *agent_domains(const Agent *agent)
{
    return agent->domains;
}

Operations *agent_operations(const Agent *agent)
{
    return agent->operations;
}

Slices *agent_slices(const Agent *agent)
{
    return agent->slices;
}

void agent_look_at_containers(Agent *agent)
{
    claims_look(agent->claims);
}

static void definition_changed(const char *uuid, void *data)
{
    agent_update_vgpu(data, uuid);
}

void agent_export(Agent *agent, GDBusConnection *bus)
{
    modes_share_without_driver(agent->modes);
    host_export(agent->host, bus);
    /* Before all are read, so that a write in between is not missed. */
    agent->definitions =
        definition_watch_new(inventory_root(agent->inventory), definition_changed, agent);
    slices_refresh(agent->slices);
    placing_resume_after_boot(agent->host, agent->slices, agent->tenants);
    operations_resume(agent->operations);
    modes_recover(agent->modes);
    schedule_start(agent->schedule, bus);
    domain_watch_refresh(agent->domains);
    evictions_connect(agent->evictions, bus);
    transport_sync_start(agent->doors, bus, guard_starts, agent);
    arbiter_sync_start(agent->arbiters, bus);
    cdi_sync_start(agent->cdi);
    node_access_start(agent->nodes);
    limits_sync_start(agent->limits, bus);
    vulkan_watch_start(agent->vulkan, bus);
    agent->exported = TRUE;
    claims_recover(agent->claims);
    slice_sweep_start(agent->vgpus);
}

void agent_refresh(Agent *agent)
{
    if (!agent->exported)
        return;
    host_refresh(agent->host);
    slices_refresh(agent->slices);
    arbiter_sync_refresh(agent->arbiters);
    limits_sync_refresh(agent->limits);
    slice_sweep(agent->vgpus);
    domain_watch_refresh(agent->domains);
}

void agent_events_lost(Agent *agent)
{
    vgpu_states_forget(host_vgpu_states(agent->host), NULL);
    meter_tell(&agent->meter, "EventsLost", g_variant_new("()"));
    agent_refresh(agent);
}

void agent_update_vgpu(Agent *agent, const char *uuid)
{
    vgpu_states_forget(host_vgpu_states(agent->host), uuid);
    if (!agent->exported)
        return;
    slices_update(agent->slices, uuid);
    update_outputs(agent, uuid, TRUE);
    domain_watch_refresh(agent->domains);
    meter_tell(&agent->meter, "VgpuChanged", g_variant_new("(s)", uuid));
}
