/* SPDX-License-Identifier: MIT */
/* vgpud, over D-Bus, as agent.c. */
#include "fleet/slurm/node/agent_watch.h"

#include "lib/bus.h"

#define GPU_INTERFACE VGPU_BUS_NAME ".Gpu"
/* Of one call. Slurm kills a health check after 60 s. */
#define PATIENCE_MS 10000

static AgentResult agent_away(const GError *error, char **why)
{
    *why = g_strdup(error->message);
    return AGENT_AWAY;
}

/* UUIDs of the slices that the findings name. */
static GStrv offenders_of(GVariant *properties)
{
    g_autoptr(GVariant) findings =
        g_variant_lookup_value(properties, "HealthFindings", G_VARIANT_TYPE("aa{sv}"));
    g_autoptr(GStrvBuilder) offenders = g_strv_builder_new();
    gsize count = findings ? g_variant_n_children(findings) : 0;

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) finding = g_variant_get_child_value(findings, i);
        const char *slice;

        if (g_variant_lookup(finding, "Slice", "&s", &slice))
            g_strv_builder_add(offenders, slice);
    }
    return g_strv_builder_end(offenders);
}

static AgentHealth *health_of(GVariant *properties)
{
    AgentHealth *health = g_new0(AgentHealth, 1);
    g_auto(GStrv) reasons = NULL;
    const char *grade = NULL;

    g_variant_lookup(properties, "HealthGrade", "&s", &grade);
    health->offenders = offenders_of(properties);
    g_variant_lookup(properties, "Address", "s", &health->gpu);
    g_variant_lookup(properties, "Healthy", "b", &health->healthy);
    /* Before there were grades, an unhealthy GPU was a broken one. */
    health->broken = grade ? g_str_equal(grade, "broken") : !health->healthy;
    g_variant_lookup(properties, "HealthReasons", "^as", &reasons);
    health->why = reasons ? g_strjoinv("; ", reasons) : g_strdup("");
    return health;
}

AgentResult agent_list_health(GPtrArray **cards, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) vgpud = agent_client_open(TRUE, &error);
    g_autoptr(GVariant) all =
        vgpud ? agent_client_get(vgpud, VGPU_ROOT_PATH, "org.freedesktop.DBus.ObjectManager",
                                 "GetManagedObjects", NULL, PATIENCE_MS, &error)
              : NULL;
    GVariantIter iter;
    GVariant *interfaces;

    *cards = NULL;
    if (!all)
        return agent_away(error, why);
    *cards = g_ptr_array_new_with_free_func(agent_health_free);
    g_variant_iter_init(&iter, all);
    while (g_variant_iter_loop(&iter, "{&o@a{sa{sv}}}", NULL, &interfaces)) {
        g_autoptr(GVariant) gpu =
            g_variant_lookup_value(interfaces, GPU_INTERFACE, G_VARIANT_TYPE_VARDICT);

        if (gpu)
            g_ptr_array_add(*cards, health_of(gpu));
    }
    return AGENT_OK;
}

/* When each owner got its first slice. */
static GHashTable *since_of(GVariant *owners)
{
    GHashTable *since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GVariantIter iter;
    GVariant *owner;

    g_variant_iter_init(&iter, owners);
    while (g_variant_iter_loop(&iter, "@a{sv}", &owner)) {
        char *name = NULL;
        gint64 when;

        if (g_variant_lookup(owner, "Since", "x", &when) &&
            g_variant_lookup(owner, "Owner", "s", &name))
            g_hash_table_insert(since, name, g_memdup2(&when, sizeof(when)));
    }
    return since;
}

/* NULL: it has no owner, or one that has gone in between. */
static AgentOwned *owned_of(GVariant *slice, GHashTable *since)
{
    g_autofree char *owner = NULL, *class = NULL;
    const gint64 *when;
    AgentOwned *owned;

    g_variant_lookup(slice, "Owner", "s", &owner);
    when = owner ? g_hash_table_lookup(since, owner) : NULL;
    if (!when)
        return NULL;
    owned = g_new0(AgentOwned, 1);
    owned->owner = g_steal_pointer(&owner);
    owned->since = *when;
    g_variant_lookup(slice, "Uuid", "s", &owned->uuid);
    g_variant_lookup(slice, "Gpu", "s", &owned->gpu);
    g_variant_lookup(slice, "VramUsed", "t", &owned->used);
    g_variant_lookup(slice, "Class", "s", &class);
    owned->best_effort = class && fleet_class_of(class) == FLEET_CLASS_BEST_EFFORT;
    return owned;
}

/* @arguments: floating; NULL: none. */
static GVariant *call_list(AgentClient *vgpud, const char *method, GVariant *arguments,
                           GError **error)
{
    return agent_client_get(vgpud, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, method, arguments,
                            PATIENCE_MS, error);
}

static GVariant *ask_for_owned(void)
{
    return g_variant_new_parsed("({'Keys': <['Owner', 'Uuid', 'Gpu', 'VramUsed', 'Class']>},)");
}

AgentResult agent_list_owned(GPtrArray **slices, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) vgpud = agent_client_open(TRUE, &error);
    g_autoptr(GVariant) owners = vgpud ? call_list(vgpud, "ListOwners", NULL, &error) : NULL;
    g_autoptr(GVariant) all =
        owners ? call_list(vgpud, "FindSlices", ask_for_owned(), &error) : NULL;
    g_autoptr(GHashTable) since = NULL;
    GVariantIter iter;
    GVariant *slice;

    *slices = NULL;
    if (!all)
        return agent_away(error, why);
    since = since_of(owners);
    *slices = g_ptr_array_new_with_free_func(agent_owned_free);
    g_variant_iter_init(&iter, all);
    while (g_variant_iter_loop(&iter, "@a{sv}", &slice)) {
        AgentOwned *owned = owned_of(slice, since);

        if (owned)
            g_ptr_array_add(*slices, owned);
    }
    return AGENT_OK;
}
