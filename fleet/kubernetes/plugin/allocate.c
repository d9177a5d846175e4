/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/plugin/allocate.h"

#include <string.h>

#include "fleet/kubernetes/plugin/choose.h"

/* Of one call: more seats than a host has. */
#define SEATS_MAX 4096

/**
 * Wish - one seat for one container
 * @card: NULL: the container has it
 */
typedef struct {
    guint container;
    Card *card;
    guint seat;
} Wish;

/**
 * Allocation
 * @wishes: of Wish
 * @answers: one for each container, filled as vgpud answers
 * @at: the wish whose card is asked about
 */
typedef struct {
    GrpcCall *call;
    const KubeConf *conf;
    Agent *agent;
    GArray *wishes;
    V1beta1__AllocateResponse *response;
    guint at;
} Allocation;

static void ask_next_card(Allocation *allocation);

static void allocation_free(Allocation *allocation)
{
    protobuf_c_message_free_unpacked(&allocation->response->base, NULL);
    g_array_unref(allocation->wishes);
    grpc_call_unref(allocation->call);
    g_free(allocation);
}

static void allocation_fail(Allocation *allocation, const char *why)
{
    g_warning("cannot allocate: %s", why);
    grpc_call_end(allocation->call, GRPC_UNAVAILABLE, why);
    allocation_free(allocation);
}

/* libc's allocator throughout: protobuf-c frees the response with it. GLib's is the same. */
static void *list_append(void ***list, gsize *count, gsize size)
{
    void *item = g_malloc0(size);

    *list = g_renew(void *, *list, *count + 1);
    (*list)[(*count)++] = item;
    return item;
}

#define APPEND(answer, field, type)                                                                \
    ((type *)list_append((void ***)&(answer)->field, &(answer)->n_##field, sizeof(type)))

static void add_cdi(V1beta1__ContainerAllocateResponse *answer, const AgentDoor *door)
{
    V1beta1__CDIDevice *device = APPEND(answer, cdi_devices, V1beta1__CDIDevice);

    v1beta1__cdidevice__init(device);
    device->name = g_strdup(door->cdi);
}

/* For a runtime that does not read CDI's files. */
static void add_parts(V1beta1__ContainerAllocateResponse *answer, const AgentDoor *door)
{
    GVariantIter at;
    const char *host, *inside, *options;

    for (guint i = 0; door->env[i]; i++) {
        const char *equals = strchr(door->env[i], '=');
        V1beta1__ContainerAllocateResponse__EnvsEntry *env;

        if (!equals)
            continue;
        env = APPEND(answer, envs, V1beta1__ContainerAllocateResponse__EnvsEntry);
        v1beta1__container_allocate_response__envs_entry__init(env);
        env->key = g_strndup(door->env[i], (gsize)(equals - door->env[i]));
        env->value = g_strdup(equals + 1);
    }
    if (door->devices) {
        g_variant_iter_init(&at, door->devices);
        while (g_variant_iter_next(&at, "(&s&s)", &host, &inside)) {
            V1beta1__DeviceSpec *device = APPEND(answer, devices, V1beta1__DeviceSpec);

            v1beta1__device_spec__init(device);
            device->host_path = g_strdup(host);
            device->container_path = g_strdup(inside);
            device->permissions = g_strdup("rw");
        }
    }
    if (door->mounts) {
        g_variant_iter_init(&at, door->mounts);
        while (g_variant_iter_next(&at, "(&s&s&s)", &host, &inside, &options)) {
            V1beta1__Mount *mount = APPEND(answer, mounts, V1beta1__Mount);

            v1beta1__mount__init(mount);
            mount->host_path = g_strdup(host);
            mount->container_path = g_strdup(inside);
            mount->read_only = g_regex_match_simple("(^|,)ro(,|$)", options, G_REGEX_DEFAULT,
                                                    G_REGEX_MATCH_DEFAULT);
        }
    }
}

static void on_doors(const GPtrArray *doors, const GError *error, void *data)
{
    Allocation *allocation = data;
    Card *card = g_array_index(allocation->wishes, Wish, allocation->at).card;

    if (!doors) {
        allocation_fail(allocation, error->message);
        return;
    }
    /* All wishes of this card; those that have been served before are behind. */
    for (guint i = allocation->at; i < allocation->wishes->len; i++) {
        Wish *wish = &g_array_index(allocation->wishes, Wish, i);
        V1beta1__ContainerAllocateResponse *answer =
            allocation->response->container_responses[wish->container];

        if (wish->card != card)
            continue;
        if (allocation->conf->with_cdi)
            add_cdi(answer, doors->pdata[wish->seat]);
        else
            add_parts(answer, doors->pdata[wish->seat]);
        wish->card = NULL;
    }
    ask_next_card(allocation);
}

/* About the next card, or else answers. */
static void ask_next_card(Allocation *allocation)
{
    GArray *wishes = allocation->wishes;
    g_autoptr(GPtrArray) slices = NULL;
    g_autofree char *owner = NULL;
    Card *card;

    while (allocation->at < wishes->len && !g_array_index(wishes, Wish, allocation->at).card)
        allocation->at++;
    if (allocation->at == wishes->len) {
        grpc_call_answer(allocation->call, &allocation->response->base);
        allocation_free(allocation);
        return;
    }
    card = g_array_index(wishes, Wish, allocation->at).card;
    slices = card_slices(card, allocation->conf->tenant);
    owner = card_owner(card);
    agent_make(allocation->agent, owner, slices, on_doors, allocation);
}

/* FALSE: there is no such seat now. */
static gboolean find_seat(const GPtrArray *cards, const char *name, Wish *wish)
{
    const char *mark = g_strrstr(name, SEAT_MARK);
    guint64 seat;

    for (guint i = 0; mark && i < cards->len; i++) {
        Card *card = cards->pdata[i];

        if (strlen(card->name) != (gsize)(mark - name) ||
            strncmp(card->name, name, (gsize)(mark - name)))
            continue;
        wish->card = card;
        if (!card_is_usable(card) ||
            !g_ascii_string_to_unsigned(mark + strlen(SEAT_MARK), 10, 0, card->seats->count - 1,
                                        &seat, NULL))
            return FALSE;
        wish->seat = (guint)seat;
        return TRUE;
    }
    return FALSE;
}

/* NULL, or a sentence. */
static char *read_request(Allocation *allocation, const V1beta1__AllocateRequest *request,
                          const GPtrArray *cards)
{
    for (gsize i = 0; i < request->n_container_requests; i++) {
        const V1beta1__ContainerAllocateRequest *container = request->container_requests[i];

        v1beta1__container_allocate_response__init(
            APPEND(allocation->response, container_responses, V1beta1__ContainerAllocateResponse));
        for (gsize k = 0; k < container->n_devices_ids; k++) {
            Wish wish = {.container = (guint)i};

            if (!find_seat(cards, container->devices_ids[k], &wish))
                return g_strdup_printf("there is no seat %s now", container->devices_ids[k]);
            if (allocation->wishes->len == SEATS_MAX)
                return g_strdup("too many seats");
            g_array_append_val(allocation->wishes, wish);
        }
    }
    return NULL;
}

void seats_allocate(GrpcCall *call, const V1beta1__AllocateRequest *request, const GPtrArray *cards,
                    const KubeConf *conf, Agent *agent)
{
    Allocation *allocation = g_new0(Allocation, 1);
    g_autofree char *why = NULL;

    allocation->call = grpc_call_ref(call);
    allocation->conf = conf;
    allocation->agent = agent;
    allocation->wishes = g_array_new(FALSE, TRUE, sizeof(Wish));
    allocation->response = g_new0(V1beta1__AllocateResponse, 1);
    v1beta1__allocate_response__init(allocation->response);
    why = read_request(allocation, request, cards);
    if (why)
        allocation_fail(allocation, why);
    else
        ask_next_card(allocation);
}
