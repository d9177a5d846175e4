/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/agent.h"

#include "fleet/guard_sockets.h"
#include "fleet/kubernetes/nvlink.h"
#include "lib/bus.h"

#define POOL "kubernetes"

/* vgpud sends a signal for each property: what it said is looked at after so long. */
#define QUIET_MS 100

/*
 * A new vgpud finds its cards one after the other. For so long a card that it does not have yet is
 * not taken for one that is gone, and is looked for again.
 */
#define SETTLING_SECONDS 15
#define AGAIN_MS         1000

/* vgpud makes slices one after the other, and those of many pods may be asked for at once. */
#define CALL_MS 40000

/* For the guards of slices, which systemd starts; the kubelet gives up after 45 s and asks again.
 */
#define GUARD_WAIT_US (30 * G_USEC_PER_SEC)
#define GUARD_POLL_MS 20

/**
 * Agent
 * @started: monotonic time at which this vgpud came
 * @gpus: what the others know
 * @found: what will be @gpus when vgpud has said how they are linked; NULL: nothing
 */
struct Agent {
    GDBusConnection *bus;
    void (*changed)(void *data);
    void *data;
    GDBusObjectManager *objects;
    GCancellable *cancellable;
    guint timer;
    gboolean is_known;
    gint64 started;
    GPtrArray *gpus;
    GPtrArray *found;
};

AgentGpu *agent_gpu_copy(const AgentGpu *gpu)
{
    AgentGpu *copy = g_memdup2(gpu, sizeof *gpu);

    copy->address = g_strdup(gpu->address);
    copy->model = g_strdup(gpu->model);
    copy->uuid = g_strdup(gpu->uuid);
    copy->pcie_root = g_strdup(gpu->pcie_root);
    copy->nvlink = g_strdup(gpu->nvlink);
    copy->vulkan = g_strdup(gpu->vulkan);
    copy->features = g_strdupv(gpu->features);
    copy->problem = g_strdup(gpu->problem);
    return copy;
}

void agent_gpu_free(AgentGpu *gpu)
{
    g_free(gpu->address);
    g_free(gpu->model);
    g_free(gpu->uuid);
    g_free(gpu->pcie_root);
    g_free(gpu->nvlink);
    g_free(gpu->vulkan);
    g_strfreev(gpu->features);
    g_free(gpu->problem);
    g_free(gpu);
}

void agent_slice_free(AgentSlice *slice)
{
    g_free(slice->part);
    g_free(slice->gpu);
    g_free(slice->type);
    g_free(slice->class);
    g_free(slice->door);
    g_free(slice->engines);
    g_free(slice->tenant);
    g_free(slice->place);
    g_free(slice);
}

/* Calls. */

static void call_manager(Agent *agent, const char *method, GVariant *parameters, const char *reply,
                         GAsyncReadyCallback func, void *data)
{
    g_dbus_connection_call(agent->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           method, parameters, G_VARIANT_TYPE(reply), G_DBUS_CALL_FLAGS_NONE,
                           CALL_MS, agent->cancellable, func, data);
}

static void translate_error(GError *error)
{
    g_autofree char *name = g_dbus_error_get_remote_error(error);

    g_dbus_error_strip_remote_error(error);
    if (g_strcmp0(name, VGPU_BUS_NAME ".Error.Exists"))
        return;
    error->domain = G_IO_ERROR;
    error->code = G_IO_ERROR_EXISTS;
}

/* NULL with @error. @is_gone: the agent was freed. */
static GVariant *answer_of(GObject *source, GAsyncResult *result, gboolean *is_gone, GError **error)
{
    GVariant *answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, error);

    *is_gone = !answer && g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    if (!answer)
        translate_error(*error);
    return answer;
}

/* The cards. */

/* The property, or NULL if it is not there or of another type. */
static GVariant *proxy_property(GDBusProxy *proxy, const char *name, const char *type)
{
    GVariant *value = g_dbus_proxy_get_cached_property(proxy, name);

    if (value && !g_variant_is_of_type(value, G_VARIANT_TYPE(type)))
        g_clear_pointer(&value, g_variant_unref);
    return value;
}

static char *text_of(GDBusProxy *proxy, const char *name)
{
    g_autoptr(GVariant) value = proxy_property(proxy, name, "s");

    return g_strdup(value ? g_variant_get_string(value, NULL) : "");
}

static gboolean flag_of(GDBusProxy *proxy, const char *name, gboolean missing)
{
    g_autoptr(GVariant) value = proxy_property(proxy, name, "b");

    return value ? g_variant_get_boolean(value) : missing;
}

static gboolean text_is(GDBusProxy *proxy, const char *name, const char *text)
{
    g_autofree char *value = text_of(proxy, name);

    return g_str_equal(value, text);
}

static char *problem_of(GDBusProxy *proxy)
{
    g_autoptr(GVariant) value = proxy_property(proxy, "HealthReasons", "as");
    g_autofree const char **reasons = value ? g_variant_get_strv(value, NULL) : NULL;

    if (flag_of(proxy, "Healthy", TRUE))
        return NULL;
    return reasons && reasons[0] ? g_strjoinv("; ", (char **)reasons) : g_strdup("not healthy");
}

static guint64 bytes_of(GDBusProxy *proxy, const char *name)
{
    g_autoptr(GVariant) value = proxy_property(proxy, name, "t");

    return value ? g_variant_get_uint64(value) : 0;
}

/* Without what vgpud overcommits: a claim's memory is a promise. 0: the GPU is not shared. */
static guint64 capacity_of(GDBusProxy *proxy)
{
    guint64 vram = bytes_of(proxy, "Vram"), capacity = bytes_of(proxy, "Capacity");

    return vram ? MIN(vram, capacity) : capacity;
}

static AgentGpu *gpu_of(GDBusProxy *proxy)
{
    guint64 capacity = capacity_of(proxy);
    g_autoptr(GVariant) numa = proxy_property(proxy, "NumaNode", "i");
    g_autoptr(GVariant) features = proxy_property(proxy, "VulkanFeatures", "as");
    g_autoptr(GVariant) grade = proxy_property(proxy, "HealthGrade", "s");
    AgentGpu *gpu;

    if (!capacity || !text_is(proxy, "Mode", "shared") || !text_is(proxy, "Pool", POOL))
        return NULL;
    gpu = g_new0(AgentGpu, 1);
    gpu->address = text_of(proxy, "Address");
    gpu->model = text_of(proxy, "Model");
    gpu->uuid = text_of(proxy, "Uuid");
    gpu->pcie_root = text_of(proxy, "PcieRoot");
    gpu->nvlink = g_strdup("");
    gpu->vulkan = text_of(proxy, "VulkanApi");
    gpu->features = features ? g_variant_dup_strv(features, NULL) : g_new0(char *, 1);
    gpu->capacity = capacity;
    gpu->flops = bytes_of(proxy, "Flops");
    gpu->bandwidth = bytes_of(proxy, "MemoryBandwidth");
    gpu->numa = numa ? g_variant_get_int32(numa) : -1;
    gpu->problem = problem_of(proxy);
    /* Before there were grades, an unhealthy GPU was a broken one. */
    gpu->is_broken =
        grade ? text_is(proxy, "HealthGrade", "broken") : !flag_of(proxy, "Healthy", TRUE);
    gpu->is_draining = flag_of(proxy, "Draining", FALSE) || !text_is(proxy, "Switching", "");
    return gpu;
}

static int by_address(const void *a, const void *b)
{
    return g_strcmp0((*(AgentGpu *const *)a)->address, (*(AgentGpu *const *)b)->address);
}

static void look_in(Agent *agent, guint milliseconds);

/* Adds to @gpus what only @before has. */
static gboolean keep_missing(GPtrArray *gpus, const GPtrArray *before)
{
    guint count = gpus->len;

    for (guint i = 0; i < before->len; i++) {
        const AgentGpu *gpu = before->pdata[i];
        gboolean is_there = FALSE;

        for (guint k = 0; k < count; k++)
            is_there = is_there || g_str_equal(((AgentGpu *)gpus->pdata[k])->address, gpu->address);
        if (!is_there)
            g_ptr_array_add(gpus, agent_gpu_copy(gpu));
    }
    return gpus->len > count;
}

static void show_found(Agent *agent)
{
    g_autoptr(GPtrArray) before = agent->gpus;

    agent->gpus = g_steal_pointer(&agent->found);
    agent->is_known = TRUE;
    agent->changed(agent->data);
}

/* A domain goes by the address of its first card: a claim's cards are all of one node. */
static void add_links(const GPtrArray *gpus, GVariant *topology)
{
    g_autofree const char **addresses = NULL;
    g_autoptr(GVariant) rows = NULL;
    g_autofree int *domains = NULL;
    guint count;

    g_variant_get(topology, "(^a&s@aas)", &addresses, &rows);
    count = g_strv_length((char **)addresses);
    domains = g_new(int, count);
    nvlink_domains(rows, count, domains);
    for (guint i = 0; i < gpus->len; i++) {
        AgentGpu *gpu = gpus->pdata[i];

        for (guint k = 0; k < count; k++)
            if (g_str_equal(addresses[k], gpu->address) && domains[k] >= 0) {
                g_free(gpu->nvlink);
                gpu->nvlink = g_strdup(addresses[domains[k]]);
            }
    }
}

static void on_topology(GObject *source, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) topology = answer_of(source, result, &is_gone, &error);
    Agent *agent = data;

    /* The answer to a later look may have come before. */
    if (is_gone || !agent->found)
        return;
    if (topology)
        add_links(agent->found, topology);
    show_found(agent);
}

static gboolean look_at_cards(void *data)
{
    Agent *agent = data;
    g_autofree char *owner =
        g_dbus_object_manager_client_get_name_owner(G_DBUS_OBJECT_MANAGER_CLIENT(agent->objects));
    GPtrArray *found;
    GList *objects;

    agent->timer = 0;
    if (!owner)
        return G_SOURCE_REMOVE;
    found = g_ptr_array_new_with_free_func((GDestroyNotify)agent_gpu_free);
    objects = g_dbus_object_manager_get_objects(agent->objects);
    for (GList *at = objects; at; at = at->next) {
        g_autoptr(GDBusInterface) proxy =
            g_dbus_object_get_interface(at->data, VGPU_BUS_NAME ".Gpu");
        AgentGpu *gpu = proxy ? gpu_of(G_DBUS_PROXY(proxy)) : NULL;

        if (gpu)
            g_ptr_array_add(found, gpu);
    }
    g_list_free_full(objects, g_object_unref);
    if (g_get_monotonic_time() - agent->started < SETTLING_SECONDS * G_USEC_PER_SEC &&
        keep_missing(found, agent->gpus))
        look_in(agent, AGAIN_MS);
    g_ptr_array_sort(found, by_address);
    g_clear_pointer(&agent->found, g_ptr_array_unref);
    agent->found = found;
    if (found->len > 1)
        call_manager(agent, "GetTopology", NULL, "(asaas)", on_topology, agent);
    else
        show_found(agent);
    return G_SOURCE_REMOVE;
}

static void look_in(Agent *agent, guint milliseconds)
{
    if (agent->timer)
        g_source_remove(agent->timer);
    agent->timer = g_timeout_add(milliseconds, look_at_cards, agent);
}

static void on_change(Agent *agent)
{
    if (!agent->timer)
        look_in(agent, QUIET_MS);
}

static void on_owner(Agent *agent)
{
    agent->started = g_get_monotonic_time();
    look_in(agent, QUIET_MS);
}

static void watch_cards(Agent *agent);

static gboolean watch_again(void *data)
{
    Agent *agent = data;

    agent->timer = 0;
    watch_cards(agent);
    return G_SOURCE_REMOVE;
}

static void on_objects(GObject *source, GAsyncResult *result, void *data)
{
    g_autoptr(GError) error = NULL;
    GDBusObjectManager *objects = g_dbus_object_manager_client_new_finish(result, &error);
    Agent *agent = data;

    (void)source;
    if (!objects) {
        if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
            return;
        g_warning("vgpud does not list its GPUs, and is asked again in a second (see \"systemctl "
                  "status vgpud\"): %s",
                  error->message);
        agent->timer = g_timeout_add(AGAIN_MS, watch_again, agent);
        return;
    }
    agent->objects = objects;
    g_signal_connect_swapped(objects, "object-added", G_CALLBACK(on_change), agent);
    g_signal_connect_swapped(objects, "object-removed", G_CALLBACK(on_change), agent);
    g_signal_connect_swapped(objects, "interface-proxy-properties-changed", G_CALLBACK(on_change),
                             agent);
    g_signal_connect_swapped(objects, "notify::name-owner", G_CALLBACK(on_owner), agent);
    look_in(agent, QUIET_MS);
}

static void watch_cards(Agent *agent)
{
    g_dbus_object_manager_client_new(agent->bus, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE,
                                     VGPU_BUS_NAME, VGPU_ROOT_PATH, NULL, NULL, NULL,
                                     agent->cancellable, on_objects, agent);
}

Agent *agent_new(GDBusConnection *bus, void (*changed)(void *data), void *data)
{
    Agent *agent = g_new0(Agent, 1);

    agent->bus = g_object_ref(bus);
    agent->changed = changed;
    agent->data = data;
    agent->cancellable = g_cancellable_new();
    agent->gpus = g_ptr_array_new_with_free_func((GDestroyNotify)agent_gpu_free);
    watch_cards(agent);
    return agent;
}

void agent_free(Agent *agent)
{
    g_cancellable_cancel(agent->cancellable);
    if (agent->timer)
        g_source_remove(agent->timer);
    if (agent->objects)
        g_signal_handlers_disconnect_by_data(agent->objects, agent);
    g_clear_object(&agent->objects);
    g_ptr_array_unref(agent->gpus);
    g_clear_pointer(&agent->found, g_ptr_array_unref);
    g_object_unref(agent->cancellable);
    g_object_unref(agent->bus);
    g_free(agent);
}

const GPtrArray *agent_gpus(Agent *agent)
{
    return agent->gpus;
}

gboolean agent_is_known(const Agent *agent)
{
    return agent->is_known;
}

/**
 * Making - slices, the door of each, and the sockets of their guards
 * @alive: cancelled when the agent is freed
 * @owner, @wanted: of agent_find(), the caller's
 * @doors: of AgentDoor, NULL for those not known yet
 * @left: doors that are asked for
 * @sockets: that containers mount
 * @until: they must be there
 */
typedef struct {
    Agent *agent;
    GCancellable *alive;
    AgentDoorsFunc func;
    void *data;
    const char *owner;
    const GPtrArray *wanted;
    GPtrArray *doors;
    guint left;
    GPtrArray *sockets;
    gint64 until;
    GError *error;
} Making;

typedef struct {
    Making *making;
    guint place;
} DoorCall;

static void door_free(void *data)
{
    AgentDoor *door = data;

    if (!door)
        return;
    g_free(door->cdi);
    g_free(door->mdev);
    g_strfreev(door->env);
    g_clear_pointer(&door->devices, g_variant_unref);
    g_clear_pointer(&door->mounts, g_variant_unref);
    g_free(door);
}

static void making_free(Making *making)
{
    g_object_unref(making->alive);
    g_ptr_array_unref(making->doors);
    g_ptr_array_unref(making->sockets);
    g_clear_error(&making->error);
    g_free(making);
}

static void add_sockets(GVariant *keys, GPtrArray *sockets)
{
    g_autofree const char **env = NULL;

    if (g_variant_lookup(keys, "Env", "^a&s", &env))
        guard_sockets_add(sockets, env);
}

static AgentDoor *door_of(GVariant *keys)
{
    AgentDoor *door = g_new0(AgentDoor, 1);
    g_autoptr(GVariant) env = g_variant_lookup_value(keys, "ContainerEnv", G_VARIANT_TYPE("as"));

    if (!g_variant_lookup(keys, "Cdi", "s", &door->cdi))
        door->cdi = g_strdup("");
    if (!g_variant_lookup(keys, "Mdev", "s", &door->mdev))
        door->mdev = g_strdup("");
    door->env = env ? g_variant_dup_strv(env, NULL) : g_new0(char *, 1);
    door->devices = g_variant_lookup_value(keys, "Devices", G_VARIANT_TYPE("a(ss)"));
    door->mounts = g_variant_lookup_value(keys, "Mounts", G_VARIANT_TYPE("a(sss)"));
    return door;
}

/* G_SOURCE_REMOVE: the caller has its answer, and @data are gone. */
static gboolean answer_with_guards(void *data)
{
    Making *making = data;
    const char *missing = making->error ? NULL : guard_sockets_missing(making->sockets);
    gboolean is_gone = g_cancellable_is_cancelled(making->alive);

    if (missing && !is_gone && g_get_monotonic_time() < making->until)
        return G_SOURCE_CONTINUE;
    if (missing) {
        g_autofree char *why = guard_sockets_sentence(missing);

        making->error = g_error_new_literal(G_IO_ERROR, G_IO_ERROR_TIMED_OUT, why);
    }
    if (!is_gone)
        making->func(making->error ? NULL : making->doors, making->error, making->data);
    making_free(making);
    return G_SOURCE_REMOVE;
}

static void on_door(GObject *source, GAsyncResult *result, void *data)
{
    DoorCall *asked = data;
    Making *making = asked->making;
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) answer = answer_of(source, result, &is_gone, &error);
    g_autoptr(GVariant) keys = answer ? g_variant_get_child_value(answer, 0) : NULL;

    if (keys) {
        making->doors->pdata[asked->place] = door_of(keys);
        add_sockets(keys, making->sockets);
    } else if (!making->error) {
        making->error = g_steal_pointer(&error);
    }
    g_free(asked);
    if (--making->left)
        return;
    making->until = g_get_monotonic_time() + GUARD_WAIT_US;
    if (answer_with_guards(making) == G_SOURCE_CONTINUE)
        g_timeout_add(GUARD_POLL_MS, answer_with_guards, making);
}

static char *word_of(GVariant *slice, const char *name)
{
    char *text = NULL;

    return g_variant_lookup(slice, name, "s", &text) ? text : g_strdup("");
}

/* The caller has @error, or the doors of no slice. */
static void end_early(Making *making, const GError *error, gboolean is_gone)
{
    if (!is_gone)
        making->func(error ? NULL : making->doors, error, making->data);
    making_free(making);
}

/* @uuids: of slices, in the order of the doors. */
static void ask_for_doors(Making *making, const GPtrArray *uuids)
{
    making->left = uuids->len;
    for (guint i = 0; i < uuids->len; i++) {
        DoorCall *asked = g_new0(DoorCall, 1);

        asked->making = making;
        asked->place = i;
        call_manager(making->agent, "GetDoor", g_variant_new("(s)", uuids->pdata[i]), "(a{sv})",
                     on_door, asked);
    }
}

static void on_slices(GObject *source, GAsyncResult *result, void *data)
{
    Making *making = data;
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) answer = answer_of(source, result, &is_gone, &error);
    g_autoptr(GVariant) slices = answer ? g_variant_get_child_value(answer, 0) : NULL;
    guint count = slices ? (guint)g_variant_n_children(slices) : 0;
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);

    if (answer && count != making->doors->len)
        error = g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "vgpud made %u slices instead of %u",
                            count, making->doors->len);
    if (error || !count) {
        end_early(making, error, is_gone);
        return;
    }
    for (guint i = 0; i < count; i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);

        g_ptr_array_add(uuids, word_of(slice, "Uuid"));
    }
    ask_for_doors(making, uuids);
}

/* The UUID of the owner's slice of that part and GPU; NULL: there is none. */
static char *find_slice(GVariant *all, const char *owner, const AgentSlice *wanted)
{
    for (gsize i = 0; i < g_variant_n_children(all); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(all, i);
        g_autofree char *of = word_of(slice, "Owner"), *part = word_of(slice, "Part"),
                        *gpu = word_of(slice, "Gpu");

        if (g_str_equal(of, owner) && g_str_equal(part, wanted->part) &&
            g_str_equal(gpu, wanted->gpu))
            return word_of(slice, "Uuid");
    }
    return NULL;
}

static void on_existing(GObject *source, GAsyncResult *result, void *data)
{
    Making *making = data;
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) answer = answer_of(source, result, &is_gone, &error);
    g_autoptr(GVariant) all = answer ? g_variant_get_child_value(answer, 0) : NULL;
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; all && i < making->wanted->len && !error; i++) {
        const AgentSlice *wanted = making->wanted->pdata[i];
        char *uuid = find_slice(all, making->owner, wanted);

        if (uuid)
            g_ptr_array_add(uuids, uuid);
        else
            error =
                g_error_new(G_IO_ERROR, G_IO_ERROR_EXISTS,
                            "%s has slices that were requested with other values, and none of "
                            "GPU %s with the part %s; \"vgpuctl owner release %s\" removes them",
                            making->owner, wanted->gpu, wanted->part, making->owner);
    }
    if (error)
        end_early(making, error, is_gone);
    else
        ask_for_doors(making, uuids);
}

static void add_text(GVariantBuilder *keys, const char *name, const char *text)
{
    if (text && *text)
        g_variant_builder_add(keys, "{sv}", name, g_variant_new_string(text));
}

static void add_number(GVariantBuilder *keys, const char *name, guint number)
{
    if (number)
        g_variant_builder_add(keys, "{sv}", name, g_variant_new_uint32(number));
}

static void add_bytes(GVariantBuilder *keys, const char *name, guint64 bytes)
{
    if (bytes)
        g_variant_builder_add(keys, "{sv}", name, g_variant_new_uint64(bytes));
}

static GVariant *request_of(const char *owner, const AgentSlice *slice)
{
    const char *const gpus[] = {slice->gpu, NULL};
    GVariantBuilder keys;

    g_variant_builder_init(&keys, G_VARIANT_TYPE_VARDICT);
    add_text(&keys, "Owner", owner);
    add_text(&keys, "Part", slice->part);
    add_text(&keys, "Pool", POOL);
    g_variant_builder_add(&keys, "{sv}", "Gpus", g_variant_new_strv(gpus, -1));
    add_text(&keys, "Type", slice->type);
    add_bytes(&keys, "Vram", slice->vram);
    add_bytes(&keys, "Resident", slice->resident);
    add_bytes(&keys, "Oversubscribe", slice->oversubscribe);
    if (slice->compute >= 0)
        g_variant_builder_add(&keys, "{sv}", "Compute",
                              g_variant_new_uint32((guint32)slice->compute));
    add_number(&keys, "Cap", slice->cap);
    add_number(&keys, "Priority", slice->priority);
    add_text(&keys, "Class", slice->class);
    add_text(&keys, "Door", slice->door);
    add_text(&keys, "Engines", slice->engines);
    add_text(&keys, "Tenant", slice->tenant);
    /* On one card it has no other meaning. */
    add_text(&keys, "Job", slice->place);
    return g_variant_builder_end(&keys);
}

static Making *making_new(Agent *agent, guint count, AgentDoorsFunc func, void *data)
{
    Making *making = g_new0(Making, 1);

    making->agent = agent;
    making->alive = g_object_ref(agent->cancellable);
    making->func = func;
    making->data = data;
    making->doors = g_ptr_array_new_with_free_func(door_free);
    making->sockets = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_set_size(making->doors, (int)count);
    return making;
}

void agent_make(Agent *agent, const char *owner, const GPtrArray *slices, AgentDoorsFunc func,
                void *data)
{
    Making *making = making_new(agent, slices->len, func, data);
    GVariantBuilder requests;

    g_variant_builder_init(&requests, G_VARIANT_TYPE("aa{sv}"));
    for (guint i = 0; i < slices->len; i++)
        g_variant_builder_add_value(&requests, request_of(owner, slices->pdata[i]));
    call_manager(agent, "CreateSlices", g_variant_new("(aa{sv})", &requests), "(aa{sv})", on_slices,
                 making);
}

/* @filter: the arguments, as text. */
static void find_slices(Agent *agent, const char *filter, GAsyncReadyCallback func, void *data)
{
    call_manager(agent, "FindSlices", g_variant_new_parsed(filter), "(aa{sv})", func, data);
}

void agent_find(Agent *agent, const char *owner, const GPtrArray *slices, AgentDoorsFunc func,
                void *data)
{
    Making *making = making_new(agent, slices->len, func, data);

    making->owner = owner;
    making->wanted = slices;
    find_slices(agent, "({'Keys': <['Uuid', 'Owner', 'Part', 'Gpu']>},)", on_existing, making);
}

typedef struct {
    AgentDoneFunc func;
    void *data;
} Releasing;

static void on_released(GObject *source, GAsyncResult *result, void *data)
{
    g_autofree Releasing *releasing = data;
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) answer = answer_of(source, result, &is_gone, &error);

    if (!is_gone)
        releasing->func(answer ? NULL : error, releasing->data);
}

void agent_release(Agent *agent, const char *owner, AgentDoneFunc func, void *data)
{
    Releasing *releasing = g_new0(Releasing, 1);

    releasing->func = func;
    releasing->data = data;
    call_manager(agent, "ReleaseOwner", g_variant_new("(sa{sv})", owner, NULL), "(a{sv})",
                 on_released, releasing);
}

typedef struct {
    AgentOwnedFunc func;
    void *data;
} Listing;

static void owned_free(void *data)
{
    AgentOwned *owned = data;

    g_free(owned->owner);
    g_free(owned->part);
    g_free(owned->place);
    g_free(owned->container);
    g_free(owned);
}

static void on_list(GObject *source, GAsyncResult *result, void *data)
{
    g_autofree Listing *listing = data;
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(owned_free);
    g_autoptr(GError) error = NULL;
    gboolean is_gone;
    g_autoptr(GVariant) answer = answer_of(source, result, &is_gone, &error);
    g_autoptr(GVariant) slices = answer ? g_variant_get_child_value(answer, 0) : NULL;

    if (is_gone)
        return;
    for (gsize i = 0; slices && i < g_variant_n_children(slices); i++) {
        g_autoptr(GVariant) slice = g_variant_get_child_value(slices, i);
        AgentOwned *owned = g_new0(AgentOwned, 1);

        if (!g_variant_lookup(slice, "Owner", "s", &owned->owner) || !*owned->owner) {
            owned_free(owned);
            continue;
        }
        if (!g_variant_lookup(slice, "Part", "s", &owned->part))
            owned->part = g_strdup("");
        if (!g_variant_lookup(slice, "Job", "s", &owned->place))
            owned->place = g_strdup("");
        if (!g_variant_lookup(slice, "Container", "s", &owned->container))
            owned->container = g_strdup("");
        g_ptr_array_add(all, owned);
    }
    listing->func(slices ? all : NULL, error, listing->data);
}

void agent_list(Agent *agent, AgentOwnedFunc func, void *data)
{
    Listing *listing = g_new0(Listing, 1);

    listing->func = func;
    listing->data = data;
    find_slices(agent, "({'Keys': <['Owner', 'Part', 'Job', 'Container']>},)", on_list, listing);
}
