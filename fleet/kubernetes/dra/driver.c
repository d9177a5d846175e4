/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/driver.h"

#include <string.h>

#include "fleet/kubernetes/dra/claim.h"
#include "fleet/kubernetes/dra/health.h"
#include "fleet/kubernetes/dra/metadata.h"
#include "fleet/kubernetes/dra/orphans.h"
#include "fleet/kubernetes/dra/publisher.h"
#include "fleet/kubernetes/grpc/server.h"
#include "fleet/kubernetes/names.h"
#include "dra.pb-c.h"
#include "health.pb-c.h"
#include "registration.pb-c.h"

#define SERVICE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"

/* Of each version of that service. */
#define WATCH_HEALTH ".DRAResourceHealth/NodeWatchResources"

/* Of one call. The kubelet asks for a pod's claims, of which there can be no more. */
#define CLAIMS_MAX 64
/* What vgpud keeps. */
#define PLACE_MAX 255

typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__Claim DraClaim;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__Device DraDevice;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesRequest PrepareRequest;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourceResponse Prepared;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesResponse PrepareResponse;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesResponse__ClaimsEntry
    PreparedEntry;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesRequest UnprepareRequest;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourceResponse Unprepared;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesResponse UnprepareResponse;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry
    UnpreparedEntry;

/**
 * Driver
 * @gpus: of AgentGpu
 * @is_ready: they are known, so that claims can be prepared
 */
struct Driver {
    const KubeConf *conf;
    Agent *agent;
    Api *api;
    Publisher *publisher;
    Health *health;
    Orphans *orphans;
    GPtrArray *gpus;
    gboolean is_ready;
    GrpcService service;
    GrpcService registration;
    char *path;
    char *registration_path;
    GrpcServer *server;
    GrpcServer *registrar;
};

/**
 * Work - one call of the kubelet, with one entry for each claim
 * @left: entries that are not finished
 */
typedef struct {
    Driver *driver;
    GrpcCall *call;
    guint left;
    GPtrArray *entries;
} Work;

/**
 * Entry
 * @place: "NAMESPACE/NAME"
 * @claim: read from the API, for Prepare
 * @is_kept: it has slices that an earlier vgpu-kubelet has made
 * @requests: for each slice the name of its request, without the alternative, as pods name it
 * @error: NULL: done
 * @cdi: two for each slice: vgpud's, and that of the metadata; "": it has none
 */
typedef struct {
    Work *work;
    char *uid;
    char *place;
    Claim *claim;
    gboolean is_kept;
    GStrv requests;
    char *error;
    GStrv cdi;
} Entry;

static void entry_free(void *data)
{
    Entry *entry = data;

    g_free(entry->uid);
    g_free(entry->place);
    g_clear_pointer(&entry->claim, claim_free);
    g_strfreev(entry->requests);
    g_free(entry->error);
    g_strfreev(entry->cdi);
    g_free(entry);
}

static Work *work_new(Driver *driver, GrpcCall *call)
{
    Work *work = g_new0(Work, 1);

    work->driver = driver;
    work->call = grpc_call_ref(call);
    work->entries = g_ptr_array_new_with_free_func(entry_free);
    return work;
}

static void work_free(Work *work)
{
    grpc_call_unref(work->call);
    g_ptr_array_unref(work->entries);
    g_free(work);
}

static Entry *add_entry(Work *work, const DraClaim *claim)
{
    Entry *entry = g_new0(Entry, 1);

    entry->work = work;
    entry->uid = g_strdup(claim->uid);
    entry->place = g_strconcat(claim->namespace_, "/", claim->name, NULL);
    g_ptr_array_add(work->entries, entry);
    return entry;
}

/* Prepare. */

/* Messages live until they are sent: all of them are in @made, to be freed. */
static DraDevice **devices_of(const Entry *entry, const char *pool, GPtrArray *made)
{
    guint count = entry->claim->slices->len;
    DraDevice **devices = g_new0(DraDevice *, count), *all = g_new0(DraDevice, count);

    g_ptr_array_add(made, devices);
    g_ptr_array_add(made, all);
    for (guint i = 0; i < count; i++) {
        DraDevice *device = devices[i] = &all[i];

        k8s__io__kubelet__pkg__apis__dra__v1__device__init(device);
        device->n_request_names = 1;
        device->request_names = &entry->requests[i];
        device->pool_name = (char *)pool;
        device->device_name = entry->claim->devices->pdata[i];
        device->cdi_device_ids = &entry->cdi[2 * i];
        device->n_cdi_device_ids = *entry->cdi[2 * i + 1] ? 2 : 1;
        device->share_id = entry->claim->shares->pdata[i];
    }
    return devices;
}

static void answer_prepare(Work *work)
{
    guint count = work->entries->len;
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
    g_autofree PreparedEntry *all = g_new0(PreparedEntry, count);
    g_autofree PreparedEntry **list = g_new0(PreparedEntry *, count);
    g_autofree Prepared *values = g_new0(Prepared, count);
    PrepareResponse response;

    k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_response__init(&response);
    response.n_claims = count;
    response.claims = list;
    for (guint i = 0; i < count; i++) {
        Entry *entry = work->entries->pdata[i];

        list[i] = &all[i];
        k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_response__claims_entry__init(
            list[i]);
        k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resource_response__init(&values[i]);
        list[i]->key = entry->uid;
        list[i]->value = &values[i];
        if (entry->error) {
            values[i].error = entry->error;
        } else {
            values[i].n_devices = entry->claim->slices->len;
            values[i].devices = devices_of(entry, work->driver->conf->node, made);
        }
    }
    grpc_call_answer(work->call, &response.base);
}

static void claim_prepared(Entry *entry, char *error)
{
    Work *work = entry->work;

    entry->error = error;
    if (error)
        g_warning("cannot prepare claim %s: %s", entry->uid, error);
    if (--work->left)
        return;
    answer_prepare(work);
    work_free(work);
}

static GStrv cdi_devices(const Entry *entry, const GPtrArray *doors, GError **error)
{
    const Driver *driver = entry->work->driver;
    g_autofree const char **mdevs = g_new0(const char *, doors->len + 1);
    g_autoptr(GStrvBuilder) devices = g_strv_builder_new();
    g_auto(GStrv) metadata = NULL;

    for (guint i = 0; i < doors->len; i++)
        mdevs[i] = ((AgentDoor *)doors->pdata[i])->mdev;
    metadata = metadata_write(driver->conf, entry->claim, driver->gpus, mdevs, error);
    for (guint i = 0; metadata && i < doors->len; i++) {
        const AgentDoor *door = doors->pdata[i];

        if (!*door->cdi) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                        "slice %u of the claim has no CDI device: see \"vgpuctl doctor\" on the "
                        "node",
                        i);
            return NULL;
        }
        g_strv_builder_add_many(devices, door->cdi, metadata[i], NULL);
    }
    return metadata ? g_strv_builder_end(devices) : NULL;
}

static void on_doors(const GPtrArray *doors, const GError *error, void *data)
{
    Entry *entry = data;
    g_autoptr(GError) own = NULL;

    /* What is allocated to a claim never changes, so it is an upgrade that would make others. */
    if (!doors && !entry->is_kept && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_EXISTS)) {
        entry->is_kept = TRUE;
        g_message("claim %s keeps the slices that it has: %s", entry->uid, error->message);
        agent_find(entry->work->driver->agent, entry->claim->owner, entry->claim->slices, on_doors,
                   entry);
        return;
    }
    entry->cdi = doors ? cdi_devices(entry, doors, &own) : NULL;
    claim_prepared(entry, entry->cdi ? NULL : g_strdup(own ? own->message : error->message));
}

static void on_claim(const HttpAnswer *answer, const GError *problem, void *data)
{
    Entry *entry = data;
    Driver *driver = entry->work->driver;
    const ClaimSetting setting = {.pool = driver->conf->node,
                                  .gpus = driver->gpus,
                                  .tenant = driver->conf->tenant,
                                  .tenant_is_namespace = driver->conf->tenant_is_namespace};
    g_autofree char *refused = api_problem(answer, problem);
    g_autoptr(GError) error = NULL;

    if (refused) {
        claim_prepared(entry, g_strdup_printf("cannot read the claim: %s", refused));
        return;
    }
    /* It may have had the claim undone meanwhile, and then nobody would do that again. */
    if (grpc_call_is_over(entry->work->call)) {
        claim_prepared(entry, g_strdup("the kubelet waits no longer"));
        return;
    }
    entry->claim = claim_read((const char *)answer->body->data, answer->body->len, entry->uid,
                              &setting, &error);
    if (!entry->claim) {
        claim_prepared(entry, g_strdup(error->message));
        return;
    }
    entry->requests = g_new0(char *, entry->claim->slices->len + 1);
    for (guint i = 0; i < entry->claim->slices->len; i++) {
        const char *request = entry->claim->requests->pdata[i];

        entry->requests[i] = g_strndup(request, strcspn(request, "/"));
        ((AgentSlice *)entry->claim->slices->pdata[i])->place =
            strlen(entry->place) <= PLACE_MAX ? g_strdup(entry->place) : NULL;
    }
    agent_make(driver->agent, entry->claim->owner, entry->claim->slices, on_doors, entry);
}

/* Names come from the kubelet, and go into a URL and an owner's name. FALSE: the call has ended. */
static gboolean check_claims(GrpcCall *call, DraClaim *const *claims, gsize count)
{
    if (count > CLAIMS_MAX) {
        grpc_call_end(call, GRPC_INVALID_ARGUMENT, "too many claims");
        return FALSE;
    }
    for (gsize i = 0; i < count; i++) {
        if (kube_is_name(claims[i]->uid) && kube_is_name(claims[i]->namespace_) &&
            kube_is_name(claims[i]->name))
            continue;
        grpc_call_end(call, GRPC_INVALID_ARGUMENT, "a claim has no valid uid, namespace or name");
        return FALSE;
    }
    return TRUE;
}

static void on_prepare(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    const PrepareRequest *request = (const PrepareRequest *)message;
    Driver *driver = data;
    Work *work;

    if (!check_claims(call, request->claims, request->n_claims))
        return;
    work = work_new(driver, call);
    work->left = (guint)request->n_claims + 1;
    for (gsize i = 0; i < request->n_claims; i++) {
        const DraClaim *claim = request->claims[i];
        Entry *entry = add_entry(work, claim);
        g_autofree char *path = g_strdup_printf(KUBE_CLAIM_PATH, claim->namespace_, claim->name);

        api_call(driver->api, "GET", path, NULL, on_claim, entry);
    }
    if (!--work->left) {
        answer_prepare(work);
        work_free(work);
    }
}

/* Unprepare. */

static void answer_unprepare(Work *work)
{
    guint count = work->entries->len;
    g_autofree UnpreparedEntry *all = g_new0(UnpreparedEntry, count);
    g_autofree UnpreparedEntry **list = g_new0(UnpreparedEntry *, count);
    g_autofree Unprepared *values = g_new0(Unprepared, count);
    UnprepareResponse response;

    k8s__io__kubelet__pkg__apis__dra__v1__node_unprepare_resources_response__init(&response);
    response.n_claims = count;
    response.claims = list;
    for (guint i = 0; i < count; i++) {
        Entry *entry = work->entries->pdata[i];

        list[i] = &all[i];
        k8s__io__kubelet__pkg__apis__dra__v1__node_unprepare_resources_response__claims_entry__init(
            list[i]);
        k8s__io__kubelet__pkg__apis__dra__v1__node_unprepare_resource_response__init(&values[i]);
        list[i]->key = entry->uid;
        list[i]->value = &values[i];
        if (entry->error)
            values[i].error = entry->error;
    }
    grpc_call_answer(work->call, &response.base);
}

static void on_released(const GError *error, void *data)
{
    Entry *entry = data;
    Work *work = entry->work;

    entry->error = error ? g_strdup(error->message) : NULL;
    if (!error)
        metadata_remove(work->driver->conf, entry->uid);
    if (error)
        g_warning("cannot unprepare claim %s: %s", entry->uid, error->message);
    if (--work->left)
        return;
    answer_unprepare(work);
    work_free(work);
}

static void on_unprepare(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    const UnprepareRequest *request = (const UnprepareRequest *)message;
    Driver *driver = data;
    Work *work;

    if (!check_claims(call, request->claims, request->n_claims))
        return;
    work = work_new(driver, call);
    work->left = (guint)request->n_claims;
    for (gsize i = 0; i < request->n_claims; i++) {
        Entry *entry = add_entry(work, request->claims[i]);
        g_autofree char *owner = g_strconcat(KUBE_CLAIM_OWNER, entry->uid, NULL);

        agent_release(driver->agent, owner, on_released, entry);
    }
    if (!work->left) {
        answer_unprepare(work);
        work_free(work);
    }
}

static void on_watch_health(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    (void)message;
    health_add_watcher(((Driver *)data)->health, call);
}

static const GrpcMethod methods[] = {
    {"/v1" WATCH_HEALTH, &drahealth__node_watch_resources_request__descriptor, on_watch_health},
    {"/v1beta1" WATCH_HEALTH, &drahealth__node_watch_resources_request__descriptor,
     on_watch_health},
    {"/v1alpha1" WATCH_HEALTH, &drahealth__node_watch_resources_request__descriptor,
     on_watch_health},
    {SERVICE "NodePrepareResources",
     &k8s__io__kubelet__pkg__apis__dra__v1__node_prepare_resources_request__descriptor, on_prepare},
    {SERVICE "NodeUnprepareResources",
     &k8s__io__kubelet__pkg__apis__dra__v1__node_unprepare_resources_request__descriptor,
     on_unprepare},
    {NULL, NULL, NULL},
};

/* Registration: the kubelet finds the socket in its folder, and asks what it is. */

static void on_info(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    static char *versions[] = {"v1.DRAPlugin", "v1.DRAResourceHealth", "v1beta1.DRAResourceHealth",
                               "v1alpha1.DRAResourceHealth"};
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;
    Driver *driver = data;

    (void)message;
    info.type = "DRAPlugin";
    info.name = KUBE_DRIVER;
    info.endpoint = driver->path;
    info.n_supported_versions = G_N_ELEMENTS(versions);
    info.supported_versions = versions;
    grpc_call_answer(call, &info.base);
}

static void on_status(GrpcCall *call, const ProtobufCMessage *message, void *data)
{
    const Pluginregistration__RegistrationStatus *status =
        (const Pluginregistration__RegistrationStatus *)message;
    Pluginregistration__RegistrationStatusResponse response =
        PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;

    (void)data;
    if (status->plugin_registered)
        g_message("the kubelet has registered " KUBE_DRIVER);
    else
        g_warning("the kubelet refuses " KUBE_DRIVER ": %s", status->error);
    grpc_call_answer(call, &response.base);
}

static const GrpcMethod registration_methods[] = {
    {"/pluginregistration.Registration/GetInfo", &pluginregistration__info_request__descriptor,
     on_info},
    {"/pluginregistration.Registration/NotifyRegistrationStatus",
     &pluginregistration__registration_status__descriptor, on_status},
    {NULL, NULL, NULL},
};

/* The second one's appearance is the sign for the kubelet, so the first has to be there. */
static gboolean listen_again(Driver *driver, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(driver->path);
    g_autofree char *registry = g_path_get_dirname(driver->registration_path);

    g_clear_pointer(&driver->registrar, grpc_server_free);
    g_clear_pointer(&driver->server, grpc_server_free);
    g_mkdir_with_parents(folder, 0750);
    g_mkdir_with_parents(registry, 0750);
    driver->server = grpc_server_new(driver->path, &driver->service, error);
    if (!driver->server)
        return FALSE;
    driver->registrar = grpc_server_new(driver->registration_path, &driver->registration, error);
    return driver->registrar != NULL;
}

Driver *driver_new(const KubeConf *conf, Agent *agent, Api *api)
{
    Driver *driver = g_new0(Driver, 1);

    driver->conf = conf;
    driver->agent = agent;
    driver->api = api;
    driver->gpus = g_ptr_array_new_with_free_func((GDestroyNotify)agent_gpu_free);
    driver->publisher = publisher_new(api, conf->node);
    driver->health = health_new(conf->node, driver->gpus);
    driver->orphans = orphans_new(conf, agent, api);
    driver->service = (GrpcService){methods, driver};
    driver->registration = (GrpcService){registration_methods, driver};
    driver->path = g_build_filename(conf->kubelet, "plugins", KUBE_DRIVER, "dra.sock", NULL);
    driver->registration_path =
        g_build_filename(conf->kubelet, "plugins_registry", KUBE_DRIVER "-reg.sock", NULL);
    return driver;
}

void driver_free(Driver *driver)
{
    g_clear_pointer(&driver->registrar, grpc_server_free);
    g_clear_pointer(&driver->server, grpc_server_free);
    orphans_free(driver->orphans);
    publisher_free(driver->publisher);
    health_free(driver->health);
    g_ptr_array_unref(driver->gpus);
    g_free(driver->path);
    g_free(driver->registration_path);
    g_free(driver);
}

void driver_check(Driver *driver)
{
    g_autoptr(GError) error = NULL;

    if (!driver->is_ready)
        return;
    health_check(driver->health);
    if (driver->server && grpc_server_is_there(driver->server) && driver->registrar &&
        grpc_server_is_there(driver->registrar))
        return;
    if (!listen_again(driver, &error))
        g_warning("%s", error->message);
}

void driver_set_gpus(Driver *driver, const GPtrArray *gpus)
{
    g_ptr_array_set_size(driver->gpus, 0);
    for (guint i = 0; i < gpus->len; i++)
        g_ptr_array_add(driver->gpus, agent_gpu_copy(gpus->pdata[i]));
    driver->is_ready = TRUE;
    driver_check(driver);
    health_tell(driver->health);
    publisher_set(driver->publisher, driver->gpus);
}
