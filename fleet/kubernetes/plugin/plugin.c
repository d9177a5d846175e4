/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/plugin/plugin.h"

#include <sys/stat.h>

#include "fleet/kubernetes/grpc/client.h"
#include "fleet/kubernetes/grpc/server.h"
#include "fleet/kubernetes/names.h"
#include "fleet/kubernetes/plugin/allocate.h"
#include "fleet/kubernetes/plugin/card.h"
#include "fleet/kubernetes/plugin/choose.h"

#define SERVICE  "/v1beta1.DevicePlugin/"
#define REGISTER "/v1beta1.Registration/Register"

/*
 * What seats had by default before it was auto. Those that a pod has stay as they are, and a card
 * whose seats would be others has none that is healthy.
 */
#define FORMER_DOOR "guarded"

/* plugin_check() is called each second. */
#define REGISTER_SECONDS 4
#define RETRY_CHECKS     5

/* A kubelet that has registered us asks for our seats at once, and for as long as it runs. */
#define UNWATCHED_SECONDS 10

/**
 * Plugin
 * @path: of its socket
 * @kubelet: the kubelet's socket, and @registered_at its state when it was registered there
 * @registering: under way
 * @watchers: of GrpcCall, kubelets that are told of changes
 * @watched_at: monotonic time at which there was one, or it was registered
 * @cards: of Card, all that were ever seen: calls that are under way refer to them
 * @checks: since the last attempt to cut cards and give them back
 */
struct Plugin {
    const KubeConf *conf;
    const Seats *seats;
    Agent *agent;
    Http *http;
    char *resource;
    char *endpoint;
    char *path;
    char *kubelet;
    struct stat registered_at;
    gboolean is_registered;
    HttpCall *registering;
    struct stat trying_at;
    GrpcService service;
    GrpcServer *server;
    GPtrArray *watchers;
    gint64 watched_at;
    GPtrArray *cards;
    guint checks;
};

/* What the kubelet is told of the seats. */

static void send_seats(Plugin *plugin, GrpcCall *call)
{
    V1beta1__ListAndWatchResponse *list = g_new0(V1beta1__ListAndWatchResponse, 1);
    gsize total = 0;

    v1beta1__list_and_watch_response__init(list);
    for (guint i = 0; i < plugin->cards->len; i++)
        total += ((Card *)plugin->cards->pdata[i])->seats->count;
    list->devices = g_new0(V1beta1__Device *, total);
    for (guint i = 0; i < plugin->cards->len; i++) {
        const Card *card = plugin->cards->pdata[i];

        if (card->is_back)
            continue;
        for (guint seat = 0; seat < card->seats->count; seat++) {
            V1beta1__Device *device = list->devices[list->n_devices++] = g_new0(V1beta1__Device, 1);

            v1beta1__device__init(device);
            device->id = g_strdup_printf("%s" SEAT_MARK "%u", card->name, seat);
            device->health = g_strdup(card_is_usable(card) ? "Healthy" : "Unhealthy");
            if (card->numa < 0)
                continue;
            device->topology = g_new0(V1beta1__TopologyInfo, 1);
            v1beta1__topology_info__init(device->topology);
            device->topology->n_nodes = 1;
            device->topology->nodes = g_new0(V1beta1__NUMANode *, 1);
            device->topology->nodes[0] = g_new0(V1beta1__NUMANode, 1);
            v1beta1__numanode__init(device->topology->nodes[0]);
            device->topology->nodes[0]->id = card->numa;
        }
    }
    grpc_call_send(call, &list->base);
    protobuf_c_message_free_unpacked(&list->base, NULL);
}

static void tell_kubelet(Plugin *plugin)
{
    for (guint i = plugin->watchers->len; i > 0; i--) {
        GrpcCall *call = plugin->watchers->pdata[i - 1];

        if (!grpc_call_is_over(call))
            send_seats(plugin, call);
    }
}

/* The kubelet's calls. */

static void on_options(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    (void)message;
    (void)data;
    options.get_preferred_allocation_available = TRUE;
    grpc_call_answer(call, &options.base);
}

static void on_watch(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    Plugin *plugin = data;

    (void)message;
    g_ptr_array_add(plugin->watchers, grpc_call_ref(call));
    send_seats(plugin, call);
}

static void on_prefer(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    const V1beta1__PreferredAllocationRequest *request =
        (const V1beta1__PreferredAllocationRequest *)message;
    gsize count = request->n_container_requests;
    g_autofree V1beta1__ContainerPreferredAllocationResponse *all =
        g_new0(V1beta1__ContainerPreferredAllocationResponse, count);
    g_autofree V1beta1__ContainerPreferredAllocationResponse **list =
        g_new0(V1beta1__ContainerPreferredAllocationResponse *, count);
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    Plugin *plugin = data;

    for (gsize i = 0; i < count; i++) {
        const V1beta1__ContainerPreferredAllocationRequest *one = request->container_requests[i];
        GStrv seats = choose_seats(
            (const char *const *)one->available_deviceids, one->n_available_deviceids,
            (const char *const *)one->must_include_deviceids, one->n_must_include_deviceids,
            (gsize)MAX(one->allocation_size, 0), plugin->seats->spread);

        list[i] = &all[i];
        v1beta1__container_preferred_allocation_response__init(list[i]);
        list[i]->deviceids = seats;
        list[i]->n_deviceids = seats ? g_strv_length(seats) : 0;
    }
    response.n_container_responses = count;
    response.container_responses = list;
    grpc_call_answer(call, &response.base);
    for (gsize i = 0; i < count; i++)
        g_strfreev(list[i]->deviceids);
}

static void on_allocate(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    Plugin *plugin = data;

    seats_allocate(call, (const V1beta1__AllocateRequest *)message, plugin->cards, plugin->conf,
                   plugin->agent);
}

static const GrpcMethod methods[] = {
    {SERVICE "GetDevicePluginOptions", &v1beta1__empty__descriptor, on_options},
    {SERVICE "ListAndWatch", &v1beta1__empty__descriptor, on_watch},
    {SERVICE "GetPreferredAllocation", &v1beta1__preferred_allocation_request__descriptor,
     on_prefer},
    {SERVICE "Allocate", &v1beta1__allocate_request__descriptor, on_allocate},
    {NULL, NULL, NULL},
};

/* Cards are cut, and given back. */

static Card *card_of(Plugin *plugin, const char *owner)
{
    for (guint i = 0; i < plugin->cards->len; i++) {
        g_autofree char *its = card_owner(plugin->cards->pdata[i]);

        if (g_str_equal(its, owner))
            return plugin->cards->pdata[i];
    }
    return NULL;
}

typedef struct {
    Plugin *plugin;
    Card *card;
} CardCall;

static CardCall *card_call_new(Plugin *plugin, Card *card)
{
    CardCall *call = g_new0(CardCall, 1);

    call->plugin = plugin;
    call->card = card;
    card->is_busy = TRUE;
    return call;
}

static void on_cut(const GPtrArray *doors, const GError *error, void *data)
{
    g_autofree CardCall *call = data;
    gboolean was = card_is_usable(call->card);

    call->card->is_busy = FALSE;
    call->card->is_cut = doors != NULL;
    call->card->is_other = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_EXISTS);
    card_say(call->card, doors ? NULL : error->message);
    if (was != card_is_usable(call->card))
        tell_kubelet(call->plugin);
}

static void on_given_back(const GError *error, void *data)
{
    g_autofree CardCall *call = data;

    call->card->is_busy = FALSE;
    card_say(call->card, error ? error->message : NULL);
    if (error)
        return;
    call->card->is_cut = FALSE;
    call->card->door = call->card->seats->door;
    call->card->is_other = FALSE;
    call->card->is_back = !call->card->is_there;
    tell_kubelet(call->plugin);
}

static void cut_card(Plugin *plugin, Card *card, const char *owner)
{
    g_autoptr(GPtrArray) slices = card_slices(card, plugin->conf->tenant);

    agent_make(plugin->agent, owner, slices, on_cut, card_call_new(plugin, card));
}

/* Before a card is cut, and when it is withdrawn. */
static void on_owned(const GPtrArray *owned, const GError *error, void *data)
{
    g_autofree CardCall *call = data;
    Card *card = call->card;
    g_autofree char *owner = card_owner(card);
    g_autofree char *kept = NULL;
    Held held;

    card->is_busy = FALSE;
    if (!owned) {
        card_say(card, error->message);
        return;
    }
    held = card_held(owned, owner, card->seats->count);
    if (card->is_there && !held.is_other && !card->is_other) {
        cut_card(call->plugin, card, owner);
        return;
    }
    kept = held.count ? card_kept_for(&held, call->plugin->conf, owner) : NULL;
    if (kept && card->is_there && !held.is_other && card->seats->is_default_door &&
        card->door == card->seats->door) {
        card->door = FORMER_DOOR;
        cut_card(call->plugin, card, owner);
        return;
    }
    if (kept)
        card_say(card, kept);
    else
        agent_release(call->plugin->agent, owner, on_given_back, card_call_new(call->plugin, card));
}

static void work_on(Plugin *plugin, Card *card)
{
    if (card->is_busy || card->is_back || (card->is_there && card->is_cut))
        return;
    agent_list(plugin->agent, on_owned, card_call_new(plugin, card));
}

static void work_on_all(Plugin *plugin)
{
    for (guint i = 0; i < plugin->cards->len; i++)
        work_on(plugin, plugin->cards->pdata[i]);
    plugin->checks = 0;
}

void plugin_set_gpus(Plugin *plugin, const GPtrArray *gpus)
{
    gboolean changed = FALSE;

    for (guint i = 0; i < plugin->cards->len; i++) {
        Card *card = plugin->cards->pdata[i];
        const AgentGpu *found = NULL;

        for (guint k = 0; k < gpus->len && !found; k++)
            if (g_str_equal(((AgentGpu *)gpus->pdata[k])->address, card->address))
                found = gpus->pdata[k];
        changed = card_set(card, found) || changed;
    }
    for (guint k = 0; k < gpus->len; k++) {
        g_autoptr(Card) card = card_new(gpus->pdata[k], plugin->seats);
        g_autofree char *owner = card_owner(card);

        if (card_of(plugin, owner))
            continue;
        card_set(card, gpus->pdata[k]);
        g_ptr_array_add(plugin->cards, g_steal_pointer(&card));
        changed = TRUE;
    }
    if (changed)
        tell_kubelet(plugin);
    work_on_all(plugin);
}

/* Registration. */

static void on_registered(const GError *error, void *data)
{
    Plugin *plugin = data;

    plugin->registering = NULL;
    if (error) {
        g_warning("the kubelet does not register %s: %s", plugin->resource, error->message);
        return;
    }
    plugin->is_registered = TRUE;
    plugin->registered_at = plugin->trying_at;
    plugin->watched_at = g_get_monotonic_time();
    g_message("the kubelet has registered %s", plugin->resource);
}

static void register_it(Plugin *plugin)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;

    options.get_preferred_allocation_available = TRUE;
    request.version = "v1beta1";
    request.endpoint = plugin->endpoint;
    request.resource_name = plugin->resource;
    request.options = &options;
    plugin->registering = grpc_client_call(plugin->http, plugin->kubelet, REGISTER, &request.base,
                                           REGISTER_SECONDS, on_registered, plugin);
}

/* A new socket may have the inode of the one before. */
static gboolean is_same_socket(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* FALSE: it does not listen. A kubelet that starts removes all sockets from its folder. */
static gboolean listen_if_gone(Plugin *plugin)
{
    g_autofree char *folder = g_path_get_dirname(plugin->path);
    g_autoptr(GError) error = NULL;

    if (plugin->server && grpc_server_is_there(plugin->server))
        return TRUE;
    g_clear_pointer(&plugin->server, grpc_server_free);
    plugin->is_registered = FALSE;
    g_mkdir_with_parents(folder, 0750);
    plugin->server = grpc_server_new(plugin->path, &plugin->service, &error);
    if (!plugin->server)
        g_warning("%s", error->message);
    return plugin->server != NULL;
}

/*
 * The kubelet may give up the stream of seats, and its socket stays the same. It then takes all
 * seats for unhealthy until it or its plugin registers again.
 */
static void check_watchers(Plugin *plugin)
{
    gint64 now = g_get_monotonic_time();

    for (guint i = plugin->watchers->len; i > 0; i--)
        if (grpc_call_is_over(plugin->watchers->pdata[i - 1]))
            g_ptr_array_remove_index_fast(plugin->watchers, i - 1);
    if (plugin->watchers->len)
        plugin->watched_at = now;
    if (!plugin->is_registered || now - plugin->watched_at < UNWATCHED_SECONDS * G_USEC_PER_SEC)
        return;
    g_message("the kubelet no longer watches the seats of %s, which registers again",
              plugin->resource);
    plugin->is_registered = FALSE;
}

void plugin_check(Plugin *plugin)
{
    struct stat now;

    if (++plugin->checks >= RETRY_CHECKS)
        work_on_all(plugin);
    if (!plugin->cards->len || plugin->registering || stat(plugin->kubelet, &now))
        return;
    if (plugin->is_registered && !is_same_socket(&now, &plugin->registered_at))
        plugin->is_registered = FALSE;
    check_watchers(plugin);
    if (!listen_if_gone(plugin) || plugin->is_registered)
        return;
    plugin->trying_at = now;
    register_it(plugin);
}

Plugin *plugin_new(const KubeConf *conf, const Seats *seats, Agent *agent, Http *http)
{
    Plugin *plugin = g_new0(Plugin, 1);
    g_autofree char *folder = g_build_filename(conf->kubelet, "device-plugins", NULL);

    plugin->conf = conf;
    plugin->seats = seats;
    plugin->agent = agent;
    plugin->http = http;
    plugin->resource = g_strdup_printf(KUBE_VENDOR "/%s-%s", seats->model, seats->type);
    plugin->endpoint = g_strdup_printf("mdev-vgpu-%s-%s.sock", seats->model, seats->type);
    plugin->path = g_build_filename(folder, plugin->endpoint, NULL);
    plugin->kubelet = g_build_filename(folder, "kubelet.sock", NULL);
    plugin->service = (GrpcService){methods, plugin};
    plugin->watchers = g_ptr_array_new_with_free_func((GDestroyNotify)grpc_call_unref);
    plugin->cards = g_ptr_array_new_with_free_func((GDestroyNotify)card_free);
    return plugin;
}

void plugin_free(Plugin *plugin)
{
    if (plugin->registering)
        http_cancel(plugin->registering);
    g_clear_pointer(&plugin->server, grpc_server_free);
    g_ptr_array_unref(plugin->watchers);
    g_ptr_array_unref(plugin->cards);
    g_free(plugin->resource);
    g_free(plugin->endpoint);
    g_free(plugin->path);
    g_free(plugin->kubelet);
    g_free(plugin);
}
