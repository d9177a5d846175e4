/* SPDX-License-Identifier: MIT */
/* vgpud, over D-Bus. Nothing else of vgpu-slurm knows of D-Bus. */
#include "fleet/slurm/node/agent.h"

#include <stdio.h>
#include <string.h>

#include "fleet/guard_sockets.h"
#include "lib/bus.h"

#define POOL "slurm"
#define MIB  (G_GUINT64_CONSTANT(1) << 20)

/* vGPUs take mdevctl and the driver their time; a slice that another call works on is waited for.
 */
#define CALL_MS      60000
#define BUSY_RETRIES 20
#define BUSY_WAIT_US (500 * 1000)

/* For a slice's guard, which systemd starts; many jobs may start at once. */
#define GUARD_WAIT_US (60 * G_USEC_PER_SEC)
#define GUARD_POLL_US 5000

#define PER_CENT_MAX 100u

/* vgpud's weight of a slice that is promised one per cent of its card, and the most it takes. */
#define WEIGHT_OF_PER_CENT 8u
#define WEIGHT_MAX         10000u

static AgentResult give_up(AgentResult result, const GError *error, char **why)
{
    *why = g_strdup(error->message);
    return result;
}

/* What vgpud's refusal means for the node; of a card that is healthy. */
static AgentResult result_of(const GError *error)
{
    if (error->domain != AGENT_ERROR)
        return AGENT_AWAY;
    switch (error->code) {
    case AGENT_ERROR_NO_ROOM:
    case AGENT_ERROR_IN_USE:
        return AGENT_NO_ROOM;
    case AGENT_ERROR_NO_ROOM_NOW:
        return AGENT_LENT;
    /* The card is there, so it is the request that no card of this host can fulfil. */
    case AGENT_ERROR_NOT_FOUND:
    case AGENT_ERROR_INVALID:
    case AGENT_ERROR_QUOTA:
        return AGENT_REFUSED;
    default:
        return AGENT_FAILED;
    }
}

/* All objects of vgpud: their paths to their interfaces to their properties. */
static GVariant *list_objects(AgentClient *vgpud, GError **error)
{
    return agent_client_get(vgpud, VGPU_ROOT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL, CALL_MS, error);
}

/* A GPU's properties; NULL: the object is none. */
static GVariant *gpu_in(GVariant *interfaces)
{
    return g_variant_lookup_value(interfaces, VGPU_BUS_NAME ".Gpu", G_VARIANT_TYPE_VARDICT);
}

static char *text_of(GVariant *dict, const char *key)
{
    char *text = NULL;

    return g_variant_lookup(dict, key, "s", &text) ? text : g_strdup("");
}

static guint64 bytes_of(GVariant *dict, const char *key)
{
    guint64 bytes = 0;

    g_variant_lookup(dict, key, "t", &bytes);
    return bytes;
}

/* The properties of the GPU at @address; NULL: there is none. */
static GVariant *find_gpu(GVariant *all, const char *address)
{
    GVariantIter iter;
    GVariant *interfaces;

    g_variant_iter_init(&iter, all);
    while (g_variant_iter_next(&iter, "{&o@a{sa{sv}}}", NULL, &interfaces)) {
        g_autoptr(GVariant) owned = interfaces;
        g_autoptr(GVariant) gpu = gpu_in(owned);
        g_autofree char *name = gpu ? text_of(gpu, "Address") : NULL;

        if (name && g_str_equal(name, address))
            return g_steal_pointer(&gpu);
    }
    return NULL;
}

/* vgpud refuses a tenant that it does not know; Slurm has accounts that nobody has made one for. */
static GHashTable *list_tenants(AgentClient *vgpud, GError **error)
{
    g_autoptr(GVariant) list = agent_client_get(vgpud, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                                                "ListTenants", NULL, CALL_MS, error);
    GHashTable *names;

    if (!list)
        return NULL;
    names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (gsize i = 0; i < g_variant_n_children(list); i++) {
        g_autoptr(GVariant) tenant = g_variant_get_child_value(list, i);

        g_hash_table_add(names, text_of(tenant, "Name"));
    }
    return names;
}

static char *engines_of(const FleetRequest *request)
{
    g_autoptr(GString) words = g_string_new(NULL);

    for (unsigned bit = 0; fleet_engine_word(bit); bit++)
        if (request->engines & (1u << bit))
            g_string_append_printf(words, "%s%s", words->len ? "," : "", fleet_engine_word(bit));
    return g_strdup(words->str);
}

static guint per_cent(guint of_one, guint tasks)
{
    return MIN(of_one * tasks, PER_CENT_MAX);
}

/*
 * No more than Slurm counted, so that vgpud's ledger never has less room than Slurm: of a guarantee
 * without a share, the memory's part rounded down, and of other classes nothing. Their share is a
 * weight.
 */
static void add_compute(GVariantDict *dict, const FleetRequest *request, guint tasks,
                        guint memory_per_cent)
{
    guint compute = 0;

    if (request->class == FLEET_CLASS_GUARANTEED)
        compute = request->share ? per_cent(request->share, tasks) : memory_per_cent;
    else if (request->share)
        g_variant_dict_insert(dict, "Weight", "u",
                              MIN(request->share * tasks * WEIGHT_OF_PER_CENT, WEIGHT_MAX));
    g_variant_dict_insert(dict, "Compute", "u", compute);
}

static void add_limits(GVariantDict *dict, const FleetRequest *request, guint tasks)
{
    g_autofree char *engines = engines_of(request);

    if (request->class)
        g_variant_dict_insert(dict, "Class", "s", fleet_class_word(request->class));
    if (request->cap)
        g_variant_dict_insert(dict, "Cap", "u", per_cent(request->cap, tasks));
    if (request->resident)
        g_variant_dict_insert(dict, "Resident", "t", request->resident * MIB * tasks);
    if (request->oversubscribe)
        g_variant_dict_insert(dict, "Oversubscribe", "t", request->oversubscribe * MIB * tasks);
    if (request->priority)
        g_variant_dict_insert(dict, "Priority", "u", (guint)request->priority);
    if (*engines)
        g_variant_dict_insert(dict, "Engines", "s", engines);
}

/*
 * A vGPU's type gives what the request does not say. The driver makes a vGPU with its type's memory
 * and changes it then, so the type is the largest that is within the request; else the smallest. If
 * the GPU offers none, vgpud says why.
 */
static char *type_for(GVariant *types, const char *gpu, guint64 wanted)
{
    g_autofree char *chosen = g_strdup("full");
    guint64 best = 0;

    for (gsize i = 0; i < g_variant_n_children(types); i++) {
        g_autoptr(GVariant) type = g_variant_get_child_value(types, i);
        g_autofree char *of = text_of(type, "Gpu");
        guint64 vram = bytes_of(type, "Vram");
        gboolean better = vram <= wanted ? best > wanted || vram > best : !best || vram < best;

        if (!vram || !g_str_equal(of, gpu) || !better)
            continue;
        best = vram;
        g_free(chosen);
        chosen = text_of(type, "Id");
    }
    return g_steal_pointer(&chosen);
}

/**
 * World - what requests are made from
 * @objects: of vgpud
 * @types: of vGPUs; NULL: no slice is one
 * @tenants: names; NULL: no slice has one
 */
typedef struct {
    GVariant *objects;
    GVariant *types;
    GHashTable *tenants;
} World;

static void world_clear(World *world)
{
    g_clear_pointer(&world->objects, g_variant_unref);
    g_clear_pointer(&world->types, g_variant_unref);
    g_clear_pointer(&world->tenants, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(World, world_clear)

static gboolean is_vm(const AgentSlice *slice)
{
    return slice->request->door == FLEET_DOOR_VM;
}

/* A job waits for this, so only what its slices need is asked for; they are of one job. */
static gboolean world_read(World *world, AgentClient *vgpud, const AgentSlice *slice,
                           GError **error)
{
    world->objects = list_objects(vgpud, error);
    if (!world->objects)
        return FALSE;
    if (*slice->tenant && !(world->tenants = list_tenants(vgpud, error)))
        return FALSE;
    if (is_vm(slice))
        world->types = agent_client_get(vgpud, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                                        "ListTypes", NULL, CALL_MS, error);
    return !is_vm(slice) || world->types;
}

/*
 * Of all its tasks on the card. A job that has the card alone may have more tasks there than all of
 * their memory: what of it moves is within what vgpud lends of a card.
 */
static guint64 vram_of(const AgentSlice *slice, guint64 whole)
{
    const FleetRequest *request = slice->request;
    guint64 vram = request->size * MIB * slice->tasks;
    guint64 resident = request->resident * MIB * slice->tasks;

    if (request->kind == FLEET_SIZE_FULL)
        return whole;
    return resident && whole ? MAX(resident, MIN(vram, whole - whole / 50)) : vram;
}

static GVariant *dict_of(const char *owner, const AgentSlice *slice, GVariant *gpu,
                         const World *world)
{
    const FleetRequest *request = slice->request;
    guint64 whole = MIN(bytes_of(gpu, "Vram"), bytes_of(gpu, "Capacity"));
    g_autofree char *part = g_strdup_printf("%u", slice->part);
    FleetDoor door = request->door ? request->door : FLEET_DOOR_AUTO;
    guint64 vram = vram_of(slice, whole);
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Owner", "s", owner);
    g_variant_dict_insert(&dict, "Part", "s", part);
    g_variant_dict_insert(&dict, "Uid", "u", slice->uid);
    g_variant_dict_insert(&dict, "Pool", "s", POOL);
    g_variant_dict_insert_value(&dict, "Gpus", g_variant_new_strv(&slice->gpu, 1));
    g_variant_dict_insert(&dict, "Vram", "t", vram);
    g_variant_dict_insert(&dict, "Door", "s", fleet_door_word(door));
    if (is_vm(slice)) {
        g_autofree char *type = type_for(world->types, slice->gpu, vram);

        g_variant_dict_insert(&dict, "Type", "s", type);
    }
    if (world->tenants && g_hash_table_contains(world->tenants, slice->tenant))
        g_variant_dict_insert(&dict, "Tenant", "s", slice->tenant);
    add_compute(&dict, request, slice->tasks, whole ? (guint)(vram * PER_CENT_MAX / whole) : 0);
    add_limits(&dict, request, slice->tasks);
    return g_variant_dict_end(&dict);
}

/* A card that is not there, or not healthy, is no lack of room. */
static gboolean is_healthy(GVariant *gpu, const char *address, char **why)
{
    g_autofree const char **reasons = NULL;
    g_autofree char *text = NULL;
    gboolean healthy = FALSE;

    if (gpu && g_variant_lookup(gpu, "Healthy", "b", &healthy) && healthy)
        return TRUE;
    if (gpu)
        g_variant_lookup(gpu, "HealthReasons", "^a&s", &reasons);
    text = reasons ? g_strjoinv(", ", (char **)reasons) : g_strdup("vgpud does not know it");
    *why = g_strdup_printf("card %s cannot be used: %s", address, text);
    return FALSE;
}

/* Floating; NULL: one of the cards cannot be used. */
static GVariant *requests_of(const char *owner, const AgentSlice *slices, guint count,
                             const World *world, char **why)
{
    GVariantBuilder list;

    g_variant_builder_init(&list, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < count; i++) {
        g_autoptr(GVariant) gpu = find_gpu(world->objects, slices[i].gpu);

        if (!is_healthy(gpu, slices[i].gpu, why)) {
            g_variant_builder_clear(&list);
            return NULL;
        }
        g_variant_builder_add_value(&list, dict_of(owner, &slices[i], gpu, world));
    }
    return g_variant_builder_end(&list);
}

static GVariant *manager_call(AgentClient *vgpud, const char *method, GVariant *parameters,
                              GError **error)
{
    return agent_client_get(vgpud, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, method, parameters,
                            CALL_MS, error);
}

static GVariant *release_owner(AgentClient *vgpud, const char *owner, GError **error)
{
    return manager_call(vgpud, "ReleaseOwner", g_variant_new("(sa{sv})", owner, NULL), error);
}

/*
 * Slices of another request under this job's name are left from an earlier run of it, whose end
 * this node has missed.
 */
static GVariant *create_slices(AgentClient *vgpud, const char *owner, GVariant *requests,
                               GError **error)
{
    gboolean released = FALSE;

    for (guint tries = 0;; tries++) {
        g_autoptr(GError) cause = NULL;
        GVariant *made =
            manager_call(vgpud, "CreateSlices", g_variant_new("(@aa{sv})", requests), &cause);
        gboolean exists = g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_EXISTS);
        gboolean busy = g_error_matches(cause, AGENT_ERROR, AGENT_ERROR_IN_USE);

        if (made)
            return made;
        if (exists && !released) {
            g_autoptr(GVariant) totals = release_owner(vgpud, owner, NULL);

            released = TRUE;
        } else if (busy && tries < BUSY_RETRIES) {
            g_usleep(BUSY_WAIT_US);
        } else {
            g_propagate_error(error, g_steal_pointer(&cause));
            return NULL;
        }
    }
}

#define CONTAINERS_DIR "/run/vgpu/containers/"

/* In its list of binds, where these two have a meaning. */
static void add_bind(GString *binds, const char *from, const char *to)
{
    g_auto(GStrv) colons = g_strsplit(from, ":", -1);
    g_autofree char *escaped = g_strjoinv("\\:", colons);

    /* A target cannot be escaped. */
    if (to && strchr(to, ':'))
        return;
    g_string_append_printf(binds, "%s%s%s%s", binds->len ? "," : "", escaped, to ? ":" : "",
                           to ? to : "");
}

/*
 * Apptainer shows a container nothing of the host's /run and /usr, and drops the library path, but
 * reads what to bind and which variables to set. So a job's slice is in its containers as it is in
 * the job: at the same paths, and at those that a container of CDI has.
 */
static GStrv with_apptainer(GVariant *door, const char *uuid, const char *const *env)
{
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();
    g_autoptr(GVariant) mounts = g_variant_lookup_value(door, "Mounts", G_VARIANT_TYPE("a(sss)"));
    g_autoptr(GString) binds = g_string_new(NULL);
    g_autofree char *slice = g_strconcat(CONTAINERS_DIR, uuid, NULL);
    const char *from, *to;

    for (guint i = 0; env[i]; i++) {
        const char *equals = strchr(env[i], '='), *value = equals ? equals + 1 : "";
        g_autofree char *folder = g_path_get_dirname(value);

        g_strv_builder_add(all, env[i]);
        g_strv_builder_take(all, g_strconcat("APPTAINERENV_", env[i], NULL));
        if (g_str_has_prefix(env[i], "VGPU_GOVERNOR_SLICES=")) {
            add_bind(binds, value, NULL);
            add_bind(binds, slice, NULL);
        } else if (g_str_has_suffix(value, ".sock") && !strstr(binds->str, folder)) {
            add_bind(binds, folder, NULL);
        }
    }
    for (gsize i = 0; mounts && i < g_variant_n_children(mounts); i++) {
        g_variant_get_child(mounts, i, "(&s&ss)", &from, &to, NULL);
        add_bind(binds, from, to);
    }
    if (binds->len)
        g_strv_builder_take(all, g_strconcat("APPTAINER_BINDPATH=", binds->str, NULL));
    return g_strv_builder_end(all);
}

/* What a program needs for each of the slices. */
static GPtrArray *doors_of(AgentClient *vgpud, GVariant *made, GError **error)
{
    g_autoptr(GPtrArray) doors = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);

    for (gsize i = 0; i < g_variant_n_children(made); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(made, i);
        g_autofree char *uuid = text_of(slice, "Uuid");
        g_autoptr(GVariant) door =
            manager_call(vgpud, "GetDoor", g_variant_new("(s)", uuid), error);
        g_autofree const char **env = NULL;

        if (!door)
            return NULL;
        if (g_variant_lookup(door, "Env", "^a&s", &env))
            g_ptr_array_add(doors, with_apptainer(door, uuid, env));
        else
            g_ptr_array_add(doors, g_new0(char *, 1));
    }
    return g_steal_pointer(&doors);
}

AgentResult agent_wait_for_guards(const GPtrArray *doors, char **why)
{
    g_autoptr(GPtrArray) sockets = g_ptr_array_new_with_free_func(g_free);
    gint64 until = g_get_monotonic_time() + GUARD_WAIT_US;
    const char *missing;

    for (guint i = 0; i < doors->len; i++)
        guard_sockets_add(sockets, doors->pdata[i]);
    while ((missing = guard_sockets_missing(sockets)) && g_get_monotonic_time() < until)
        g_usleep(GUARD_POLL_US);
    if (missing)
        *why = guard_sockets_sentence(missing);
    return missing ? AGENT_FAILED : AGENT_OK;
}

AgentResult agent_create_slices(const char *owner, const AgentSlice *slices, guint count,
                                GPtrArray **doors, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) vgpud = agent_client_open(TRUE, &error);
    g_auto(World) world = {0};
    g_autoptr(GVariant) requests = NULL, made = NULL;

    *doors = NULL;
    if (!vgpud || !world_read(&world, vgpud, &slices[0], &error))
        return give_up(AGENT_AWAY, error, why);
    requests = requests_of(owner, slices, count, &world, why);
    if (!requests)
        return AGENT_UNHEALTHY;
    g_variant_ref_sink(requests);
    made = create_slices(vgpud, owner, requests, &error);
    if (!made)
        return give_up(result_of(error), error, why);
    *doors = doors_of(vgpud, made, &error);
    if (!*doors)
        return give_up(error->domain == AGENT_ERROR ? AGENT_FAILED : AGENT_AWAY, error, why);
    return AGENT_OK;
}

AgentResult agent_release_owner(const char *owner, AgentTotals *totals, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) vgpud = agent_client_open(TRUE, &error);
    g_autoptr(GVariant) used = vgpud ? release_owner(vgpud, owner, &error) : NULL;

    *totals = (AgentTotals){0};
    if (!used)
        return give_up(error->domain == AGENT_ERROR ? AGENT_FAILED : AGENT_AWAY, error, why);
    totals->gpu_seconds = (gdouble)bytes_of(used, "GpuTime") / 1e9;
    totals->waited_seconds = (gdouble)bytes_of(used, "Waited") / 1e9;
    totals->throttled_seconds = (gdouble)bytes_of(used, "Throttled") / 1e9;
    totals->vram_peak = bytes_of(used, "PeakVram");
    totals->joules = (gdouble)bytes_of(used, "Energy") / 1e6;
    return AGENT_OK;
}

/* NULL: it is not Slurm's, or has no node that a job could be given. */
static AgentCard *card_of(GVariant *gpu)
{
    g_autofree char *pool = text_of(gpu, "Pool");
    g_autofree char *mode = text_of(gpu, "Mode");
    g_auto(GStrv) nodes = NULL;
    AgentCard *card;

    g_variant_lookup(gpu, "Nodes", "^as", &nodes);
    if (!g_str_equal(pool, POOL) || !g_str_equal(mode, "shared") || !nodes || !nodes[0])
        return NULL;
    card = g_new0(AgentCard, 1);
    card->gpu = text_of(gpu, "Address");
    card->model = text_of(gpu, "Model");
    card->vram = (guint)(MIN(bytes_of(gpu, "Vram"), bytes_of(gpu, "Capacity")) / MIB);
    card->promisable = bytes_of(gpu, "Capacity") / MIB;
    card->nodes = g_steal_pointer(&nodes);
    card->cpus = g_strdup("");
    card->links = g_strdup("");
    return card;
}

static int by_address(const void *a, const void *b)
{
    return g_strcmp0((*(const AgentCard *const *)a)->gpu, (*(const AgentCard *const *)b)->gpu);
}

/* From nvidia-smi's words to Slurm's numbers. "NV12", of 12 NVLinks, is nearer than any bridge. */
static int nearness_of(const char *distance)
{
    static const char *const words[] = {"SYS", "NODE", "PHB", "PXB", "PIX"};
    int links;

    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_str_equal(distance, words[i]))
            return (int)i;
    if (sscanf(distance, "NV%d", &links) == 1 && links > 0)
        return (int)G_N_ELEMENTS(words) - 1 + links;
    return 0;
}

static int column_of(const char *const *gpus, const char *gpu)
{
    for (int i = 0; gpus[i]; i++)
        if (g_str_equal(gpus[i], gpu))
            return i;
    return -1;
}

static char *links_of(const GPtrArray *cards, guint at, const char *const *gpus, GVariant *rows)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int row = column_of(gpus, ((AgentCard *)cards->pdata[at])->gpu);
    g_autoptr(GVariant) distances = row >= 0 ? g_variant_get_child_value(rows, (gsize)row) : NULL;

    for (guint i = 0; distances && i < cards->len; i++) {
        int column = column_of(gpus, ((AgentCard *)cards->pdata[i])->gpu);
        const char *distance = "";

        if (column >= 0)
            g_variant_get_child(distances, (gsize)column, "&s", &distance);
        g_string_append_printf(text, "%s%d", i ? "," : "", i == at ? -1 : nearness_of(distance));
    }
    return g_strdup(text->str);
}

static gboolean add_links(AgentClient *vgpud, const GPtrArray *cards, GError **error)
{
    g_autoptr(GVariant) answer = agent_client_get_all(
        vgpud, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE, "GetTopology", NULL, CALL_MS, error);
    g_autofree const char **gpus = NULL;
    g_autoptr(GVariant) rows = NULL;

    if (!answer)
        return FALSE;
    g_variant_get(answer, "(^a&s@aas)", &gpus, &rows);
    for (guint i = 0; i < cards->len; i++) {
        AgentCard *card = cards->pdata[i];

        g_free(card->links);
        card->links = links_of(cards, i, gpus, rows);
    }
    return TRUE;
}

AgentResult agent_list_cards(GPtrArray **cards, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(AgentClient) vgpud = agent_client_open(TRUE, &error);
    g_autoptr(GVariant) all = vgpud ? list_objects(vgpud, &error) : NULL;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(agent_card_free);
    GVariantIter iter;
    GVariant *interfaces;

    *cards = NULL;
    if (!all)
        return give_up(AGENT_AWAY, error, why);
    g_variant_iter_init(&iter, all);
    while (g_variant_iter_next(&iter, "{&o@a{sa{sv}}}", NULL, &interfaces)) {
        g_autoptr(GVariant) owned = interfaces;
        g_autoptr(GVariant) gpu = gpu_in(owned);
        AgentCard *card = gpu ? card_of(gpu) : NULL;

        if (card)
            g_ptr_array_add(found, card);
    }
    g_ptr_array_sort(found, by_address);
    if (!add_links(vgpud, found, &error))
        return give_up(AGENT_AWAY, error, why);
    *cards = g_steal_pointer(&found);
    return AGENT_OK;
}
