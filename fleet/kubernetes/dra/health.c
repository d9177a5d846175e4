/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/health.h"

#include "fleet/kubernetes/agent.h"
#include "fleet/kubernetes/names.h"
#include "health.pb-c.h"

/* After 30 s without a word a kubelet takes the health for unknown. */
#define REPEAT_SECONDS 10

/* Of a message, in bytes. */
#define MESSAGE_MAX 1024

/**
 * Health
 * @watchers: of GrpcCall
 * @told_at: monotonic time at which all of them were told last
 */
struct Health {
    const char *pool;
    const GPtrArray *gpus;
    GPtrArray *watchers;
    gint64 told_at;
};

Health *health_new(const char *pool, const GPtrArray *gpus)
{
    Health *health = g_new0(Health, 1);

    health->pool = pool;
    health->gpus = gpus;
    health->watchers = g_ptr_array_new_with_free_func((GDestroyNotify)grpc_call_unref);
    return health;
}

void health_free(Health *health)
{
    g_ptr_array_unref(health->watchers);
    g_free(health);
}

/* A message of at most MESSAGE_MAX bytes that is valid UTF-8. */
static char *message_of(const AgentGpu *gpu)
{
    g_autofree char *start = g_strndup(gpu->problem ? gpu->problem : "", MESSAGE_MAX);
    const char *end;

    if (!g_utf8_validate(start, -1, &end))
        start[end - start] = '\0';
    return g_steal_pointer(&start);
}

static Drahealth__DeviceHealth *device_of(const Health *health, const AgentGpu *gpu)
{
    Drahealth__DeviceHealth *device = g_new0(Drahealth__DeviceHealth, 1);

    drahealth__device_health__init(device);
    device->device = g_new0(Drahealth__DeviceIdentifier, 1);
    drahealth__device_identifier__init(device->device);
    device->device->pool_name = g_strdup(health->pool);
    device->device->device_name = kube_device_name(gpu->address);
    device->health =
        gpu->problem ? DRAHEALTH__HEALTH_STATUS__UNHEALTHY : DRAHEALTH__HEALTH_STATUS__HEALTHY;
    device->last_updated_time = g_get_real_time() / G_USEC_PER_SEC;
    device->message = message_of(gpu);
    return device;
}

static void send_devices(const Health *health, GrpcCall *call)
{
    Drahealth__NodeWatchResourcesResponse *list = g_new0(Drahealth__NodeWatchResourcesResponse, 1);

    drahealth__node_watch_resources_response__init(list);
    list->devices = g_new0(Drahealth__DeviceHealth *, health->gpus->len);
    for (guint i = 0; i < health->gpus->len; i++)
        list->devices[list->n_devices++] = device_of(health, health->gpus->pdata[i]);
    grpc_call_send(call, &list->base);
    protobuf_c_message_free_unpacked(&list->base, NULL);
}

void health_add_watcher(Health *health, GrpcCall *call)
{
    g_ptr_array_add(health->watchers, grpc_call_ref(call));
    send_devices(health, call);
}

void health_tell(Health *health)
{
    for (guint i = health->watchers->len; i > 0; i--) {
        GrpcCall *call = health->watchers->pdata[i - 1];

        if (grpc_call_is_over(call))
            g_ptr_array_remove_index_fast(health->watchers, i - 1);
        else
            send_devices(health, call);
    }
    health->told_at = g_get_monotonic_time();
}

void health_check(Health *health)
{
    if (g_get_monotonic_time() - health->told_at >= REPEAT_SECONDS * G_USEC_PER_SEC)
        health_tell(health);
}
