/* SPDX-License-Identifier: MIT */
#include "fleet/slurm/node/agent_watch.h"

#include <gio/gio.h>

#include "lib/bus.h"

#define GPU_INTERFACE "org.mdev_vgpu.Host1.Gpu"
#define OWNER_CLASS   "best-effort"
/* Of one call. Slurm kills a health check after 60 s. */
#define PATIENCE_MS 10000

static GVariant *call(const char *path, const char *interface, const char *method, const char *type,
                      char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDBusConnection) bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, &error);
    GVariant *answer = NULL;

    if (bus)
        answer = g_dbus_connection_call_sync(bus, VGPU_BUS_NAME, path, interface, method, NULL,
                                             G_VARIANT_TYPE(type), G_DBUS_CALL_FLAGS_NONE,
                                             PATIENCE_MS, NULL, &error);
    if (!answer)
        *why = g_strdup_printf("vgpud does not answer: %s", error->message);
    return answer;
}

static AgentHealth *health_of(GVariant *properties)
{
    AgentHealth *health = g_new0(AgentHealth, 1);
    g_auto(GStrv) reasons = NULL;

    g_variant_lookup(properties, "Address", "s", &health->gpu);
    g_variant_lookup(properties, "Healthy", "b", &health->healthy);
    g_variant_lookup(properties, "HealthReasons", "^as", &reasons);
    health->why = reasons ? g_strjoinv("; ", reasons) : g_strdup("");
    return health;
}

AgentResult agent_list_health(GPtrArray **cards, char **why)
{
    g_autoptr(GVariant) answer = call(VGPU_ROOT_PATH, "org.freedesktop.DBus.ObjectManager",
                                      "GetManagedObjects", "(a{oa{sa{sv}}})", why);
    g_autoptr(GVariantIter) objects = NULL;
    GVariant *interfaces;

    *cards = NULL;
    if (!answer)
        return AGENT_AWAY;
    *cards = g_ptr_array_new_with_free_func(agent_health_free);
    g_variant_get(answer, "(a{oa{sa{sv}}})", &objects);
    while (g_variant_iter_loop(objects, "{&o@a{sa{sv}}}", NULL, &interfaces)) {
        g_autoptr(GVariant) gpu =
            g_variant_lookup_value(interfaces, GPU_INTERFACE, G_VARIANT_TYPE_VARDICT);

        if (gpu)
            g_ptr_array_add(*cards, health_of(gpu));
    }
    return AGENT_OK;
}

/* Owner to when it got its first slice. */
static GHashTable *owners_since(char **why)
{
    g_autoptr(GVariant) answer =
        call(VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, "ListOwners", "(a(ssx))", why);
    GHashTable *since = NULL;
    GVariantIter *owners;
    const char *owner;
    gint64 when;

    if (!answer)
        return NULL;
    since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_variant_get(answer, "(a(ssx))", &owners);
    while (g_variant_iter_next(owners, "(&s&sx)", &owner, NULL, &when))
        g_hash_table_insert(since, g_strdup(owner), g_memdup2(&when, sizeof(when)));
    g_variant_iter_free(owners);
    return since;
}

static AgentOwned *owned_of(GVariant *slice, GHashTable *since)
{
    g_autofree char *class = NULL;
    AgentOwned *owned = g_new0(AgentOwned, 1);
    const gint64 *when;

    g_variant_lookup(slice, "Owner", "s", &owned->owner);
    g_variant_lookup(slice, "Gpu", "s", &owned->gpu);
    g_variant_lookup(slice, "Class", "s", &class);
    g_variant_lookup(slice, "VramUsed", "t", &owned->used);
    owned->best_effort = g_strcmp0(class, OWNER_CLASS) == 0;
    when = owned->owner ? g_hash_table_lookup(since, owned->owner) : NULL;
    owned->since = when ? *when : 0;
    return owned;
}

AgentResult agent_list_owned(GPtrArray **slices, char **why)
{
    g_autoptr(GHashTable) since = owners_since(why);
    g_autoptr(GVariant) answer = NULL;
    g_autoptr(GVariantIter) list = NULL;
    GVariant *slice;

    *slices = NULL;
    if (since)
        answer = call(VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, "ListSlices", "(aa{sv})", why);
    if (!answer)
        return AGENT_AWAY;
    *slices = g_ptr_array_new_with_free_func(agent_owned_free);
    g_variant_get(answer, "(aa{sv})", &list);
    while (g_variant_iter_loop(list, "@a{sv}", &slice)) {
        AgentOwned *owned = owned_of(slice, since);

        /* An owner that is not listed has gone in between. */
        if (owned->since)
            g_ptr_array_add(*slices, owned);
        else
            agent_owned_free(owned);
    }
    return AGENT_OK;
}
