/* SPDX-License-Identifier: MIT */
#include "fleet/request/submit.h"

#include <stdio.h>
#include <string.h>

/*
 * Finds "shard" or "gpu" in a list such as "cpu=2,gres/shard:a100:5"; @name without "gres/".
 * @rest gets what follows the name: ":a100:5".
 */
static bool find_gres(const char *list, const char *name, const char **rest)
{
    size_t length = strlen(name);

    while (list && *list) {
        const char *at = list;

        if (!strncmp(at, "gres/", 5) || !strncmp(at, "gres:", 5))
            at += 5;
        if (!strncmp(at, name, length) && strchr(":=,;", at[length])) {
            *rest = at + length;
            return true;
        }
        list += strcspn(list, ",;");
        list += *list != 0;
    }
    return false;
}

/* ":a100:5", "=5", ":5K" up to a comma. */
static bool read_shards(const char *rest, FleetRequest *request)
{
    char copy[FLEET_NAME_MAX + 32], *count, *model = NULL;
    size_t length = strcspn(rest, ",;");
    uint32_t scale = 1;

    if (length < 2 || length >= sizeof(copy))
        return false;
    memcpy(copy, rest + 1, length - 1);
    copy[length - 1] = 0;
    count = strpbrk(copy, ":=");
    if (count) {
        *count++ = 0;
        model = copy;
        if (!fleet_name_ok(model))
            return false;
        strcpy(request->model, model);
    } else {
        count = copy;
    }
    length = strlen(count);
    if (length && strchr("KkMm", count[length - 1])) {
        scale = strchr("Kk", count[length - 1]) ? 1024 : 1024 * 1024;
        count[length - 1] = 0;
    }
    request->kind = FLEET_SIZE_MIB;
    if (!fleet_number_parse(count, 1, FLEET_MIB_MAX / scale, &request->size))
        return false;
    request->size *= scale;
    return true;
}

static bool refuse_shards(const char *rest, char *error)
{
    static const char why[] =
        "shards of a node, job or socket may come from several cards, and a slice "
        "is of one; for each task write";
    FleetRequest request = {0};

    if (!read_shards(rest, &request))
        return fleet_error(error, "%s --vgpu=SIZE, such as --vgpu=8G", why);
    return fleet_error(error, "%s --vgpu=%s%s%uM", why, request.model, request.model[0] ? ":" : "",
                       request.size);
}

/*
 * The job's request: from --vgpu, or from a plain --tres-per-task=gres/shard:N. @slice is false if
 * it has none.
 */
static bool find_request(const SubmitAsk *ask, FleetRequest *request, bool *slice, char *error)
{
    const char *rest, *gpus;

    *request = (FleetRequest){0};
    *slice = true;
    if (find_gres(ask->per_node, "shard", &rest) || find_gres(ask->per_job, "shard", &rest) ||
        find_gres(ask->per_socket, "shard", &rest))
        return refuse_shards(rest, error);
    if (ask->option) {
        if (find_gres(ask->per_task, "shard", &rest) || find_gres(ask->per_task, "gpu", &rest) ||
            find_gres(ask->per_node, "gpu", &rest) || find_gres(ask->per_job, "gpu", &rest) ||
            find_gres(ask->per_socket, "gpu", &rest))
            return fleet_error(error,
                               "--vgpu asks for each task's card already: leave out --gres, --gpus "
                               "and the like");
        return fleet_request_parse(ask->option, request, error);
    }
    *slice = find_gres(ask->per_task, "shard", &rest);
    if (*slice && find_gres(ask->per_task, "gpu", &gpus))
        return fleet_error(error, "a task has a card or a slice of one, not both");
    if (*slice && !read_shards(rest, request))
        return fleet_error(error,
                           "\"%.60s\" is no number of shards; one is 1 MiB of a card, or write "
                           "--vgpu=8G",
                           rest);
    return true;
}

/*
 * The model whose cards the job may get, if there is only one; *@model stays as it is if nothing
 * says so. A job that may run in partitions of different models must name one.
 */
static bool find_model(const FleetRequest *request, const FleetConf *conf,
                       const FleetPartition *const *partitions, unsigned count,
                       const FleetModel **model, char *error)
{
    const char *name = request->model[0] ? request->model : count ? partitions[0]->model : "";

    if (request->model[0] && conf->model_count && !fleet_conf_model(conf, name))
        return fleet_error(error, "this cluster has no cards of the model %s", name);
    for (unsigned i = 0; i < count; i++) {
        if (request->model[0] && partitions[i]->model[0] && strcmp(partitions[i]->model, name))
            return fleet_error(error, "the cards of partition %s are %s, not %s",
                               partitions[i]->name, partitions[i]->model, name);
        if (strcmp(partitions[i]->model, name) && !request->model[0]) {
            *model = NULL;
            return true;
        }
    }
    if (name[0])
        *model = fleet_conf_model(conf, name);
    return true;
}

/* Sizes that are parts of a card become MiB. */
static bool settle_size(FleetRequest *request, const FleetModel *model, char *error)
{
    bool part = request->kind == FLEET_SIZE_PERCENT || request->kind == FLEET_SIZE_PART;

    if (request->kind == FLEET_SIZE_FULL)
        return true;
    if (part && !model)
        return fleet_error(error, "a part of a card depends on its size: name the model, as in "
                                  "--vgpu=MODEL:half, or a partition whose cards are all alike");
    if (request->kind == FLEET_SIZE_PERCENT)
        request->size = (uint32_t)((uint64_t)model->vram * request->size / 100);
    else if (request->kind == FLEET_SIZE_PART)
        request->size = model->vram / request->size;
    request->kind = FLEET_SIZE_MIB;
    if (model && request->size > model->vram)
        return fleet_error(error, "%u MiB are more than a card of the model %s has: %u MiB",
                           request->size, model->name, model->vram);
    if (request->resident > request->size)
        return fleet_error(error, "resident=%uM is more than the %u MiB of the slice",
                           request->resident, request->size);
    return request->size || fleet_error(error, "that part of the card is less than 1 MiB");
}

static bool qos_allowed(const FleetClassRule *rule, const char *qos)
{
    for (unsigned i = 0; i < rule->qos_count; i++)
        if (qos && !strcmp(rule->qos[i], qos))
            return true;
    return !rule->qos_count;
}

#define AUTO_DOORS (1u << FLEET_DOOR_GUARDED | 1u << FLEET_DOOR_NATIVE)

/* The card decides between two doors where the partitions allow both. */
static void settle_defaults(FleetRequest *request, const FleetPartition *const *partitions,
                            unsigned count)
{
    unsigned doors = AUTO_DOORS;

    if (!request->class)
        request->class = FLEET_CLASS_GUARANTEED;
    if (!request->door)
        request->door = count && partitions[0]->door ? partitions[0]->door : FLEET_DOOR_AUTO;
    for (unsigned i = 0; i < count; i++)
        if (partitions[i]->doors)
            doors &= partitions[i]->doors;
    if (request->door == FLEET_DOOR_AUTO && doors == 1u << FLEET_DOOR_GUARDED)
        request->door = FLEET_DOOR_GUARDED;
    if (request->door == FLEET_DOOR_AUTO && doors == 1u << FLEET_DOOR_NATIVE)
        request->door = FLEET_DOOR_NATIVE;
}

static bool partition_allows(const FleetPartition *partition, const FleetRequest *request,
                             char *error)
{
    unsigned doors = request->door == FLEET_DOOR_AUTO ? AUTO_DOORS : 1u << request->door;

    if (partition->doors && (partition->doors & doors) != doors)
        return fleet_error(error, "partition %s does not allow door=%s", partition->name,
                           fleet_door_word(request->door));
    if (partition->classes && !(partition->classes & 1u << request->class))
        return fleet_error(error, "partition %s does not allow class=%s", partition->name,
                           fleet_class_word(request->class));
    return true;
}

static bool qos_allows(const FleetClassRule *rule, const FleetRequest *request, const char *qos,
                       char *error)
{
    return qos_allowed(rule, qos) ||
           fleet_error(error, "class=%s needs another QOS, such as --qos=%s",
                       fleet_class_word(request->class), rule->qos[0]);
}

static bool class_allows(const FleetClassRule *rule, const FleetRequest *request, char *error)
{
    if (request->priority > rule->priority)
        return fleet_error(error, "priority=%u is more than the %u that class %s may have",
                           request->priority, rule->priority, fleet_class_word(request->class));
    return true;
}

static bool all_allow(const FleetPartition *const *partitions, unsigned count,
                      const FleetRequest *request, char *error)
{
    for (unsigned i = 0; i < count; i++)
        if (!partition_allows(partitions[i], request, error))
            return false;
    return true;
}

/* @part per cent of @whole, rounded up. */
static uint32_t percent_up(uint32_t whole, uint32_t part)
{
    return (uint32_t)(((uint64_t)whole * part + 99) / 100);
}

uint32_t submit_memory_cost(const FleetRequest *request, const FleetConf *conf)
{
    uint32_t floor = percent_up(request->size, conf->classes[request->class].floor);

    if (request->class == FLEET_CLASS_BEST_EFFORT && floor > request->resident)
        return floor;
    return request->resident ? request->resident : floor;
}

/* The dominant share of the request, in shards. */
static bool count_shards(const FleetRequest *request, const FleetConf *conf,
                         const FleetModel *model, uint32_t *shards, char *error)
{
    uint32_t compute;

    *shards = submit_memory_cost(request, conf);
    if (request->class != FLEET_CLASS_GUARANTEED || !request->share)
        return true;
    if (!model)
        return fleet_error(error,
                           "a guarantee of compute depends on the card: name the model, as in "
                           "--vgpu=MODEL:%uM,share=%u, or a partition whose cards are all alike",
                           request->size, request->share);
    compute = percent_up(model->vram, request->share);
    *shards = compute > *shards ? compute : *shards;
    return true;
}

/*
 * Slurm would count the resident memory alone, and put tasks on a card that together have more than
 * the card. Those of other jobs have slices of their own, which take turns.
 */
static bool moves_memory(const FleetRequest *request)
{
    return request->resident && request->resident < request->size;
}

/* The list per task: as it was, without shards, and with the slice's. */
static bool write_tres(const char *before, const FleetRequest *request, uint32_t shards, char *list,
                       char *error)
{
    const char *colon = request->model[0] ? ":" : "", *rest;
    size_t used = 0;

    list[0] = 0;
    for (const char *at = before ? before : ""; *at;) {
        size_t length = strcspn(at, ",;");

        if (!find_gres(at, "shard", &rest) || rest > at + length) {
            if (used + length + 2 > FLEET_TRES_MAX)
                return fleet_error(error, "the list of resources for each task is too long");
            memcpy(list + used, at, length);
            used += length;
            list[used++] = ',';
            list[used] = 0;
        }
        at += length;
        at += *at != 0;
    }
    if (request->kind == FLEET_SIZE_FULL)
        used += (size_t)snprintf(list + used, FLEET_TRES_MAX - used, "gres/gpu%s%s:1", colon,
                                 request->model);
    else
        used += (size_t)snprintf(list + used, FLEET_TRES_MAX - used, "gres/shard%s%s:%u", colon,
                                 request->model, shards);
    return used < FLEET_TRES_MAX ||
           fleet_error(error, "the list of resources for each task is too long");
}

/*
 * The partitions that the job may run in and the file knows, up to @max; without a name, the file's
 * default one.
 */
static unsigned find_partitions(const FleetConf *conf, const char *names,
                                const FleetPartition **found, unsigned max)
{
    unsigned count = 0;

    for (unsigned i = 0; i < conf->partition_count && count < max; i++) {
        const FleetPartition *partition = &conf->partitions[i];
        size_t length = strlen(partition->name);
        bool named = !names && partition->is_default;

        for (const char *at = names; at && *at && !named; at += strcspn(at, ","), at += *at == ',')
            named = strcspn(at, ",") == length && !memcmp(at, partition->name, length);
        if (named)
            found[count++] = partition;
    }
    return count;
}

bool submit_decide(const SubmitAsk *ask, const FleetConf *conf, SubmitDecision *decision,
                   char *error)
{
    const FleetPartition *partitions[FLEET_PARTITIONS_MAX];
    const FleetModel *model = conf->model_count == 1 ? &conf->models[0] : NULL;
    unsigned count = find_partitions(conf, ask->partition, partitions, FLEET_PARTITIONS_MAX);
    FleetRequest request;
    uint32_t shards = 0;
    bool slice;

    memset(decision, 0, sizeof(*decision));
    if (!find_request(ask, &request, &slice, error))
        return false;
    if (ask->extra && (slice || !strncmp(ask->extra, "vgpu", 4)))
        return fleet_error(error,
                           "--extra belongs to vGPUs here: a job with a slice cannot have its own");
    if (!slice)
        return true;
    if (!find_model(&request, conf, partitions, count, &model, error) ||
        !settle_size(&request, model, error))
        return false;
    settle_defaults(&request, partitions, count);
    if (!all_allow(partitions, count, &request, error) ||
        !qos_allows(&conf->classes[request.class], &request, ask->qos, error) ||
        !class_allows(&conf->classes[request.class], &request, error) ||
        !count_shards(&request, conf, model, &shards, error) ||
        !write_tres(ask->per_task, &request, shards, decision->per_task, error))
        return false;
    decision->changes = true;
    decision->spread = request.spread || moves_memory(&request);
    fleet_request_format(&request, decision->extra);
    return true;
}

bool submit_allows(const FleetRequest *request, const FleetConf *conf, const char *partition,
                   const char *qos, char *error)
{
    const FleetPartition *partitions[FLEET_PARTITIONS_MAX];
    unsigned count = find_partitions(conf, partition, partitions, FLEET_PARTITIONS_MAX);
    const FleetClassRule *rule = &conf->classes[request->class];

    return all_allow(partitions, count, request, error) &&
           (!qos || qos_allows(rule, request, qos, error)) && class_allows(rule, request, error);
}

bool submit_modify(const SubmitAsk *ask, bool operator_asks, char *error)
{
    const char *rest;
    bool shards =
        find_gres(ask->per_task, "shard", &rest) || find_gres(ask->per_node, "shard", &rest) ||
        find_gres(ask->per_job, "shard", &rest) || find_gres(ask->per_socket, "shard", &rest);

    if (!shards && !ask->option && (!ask->extra || strncmp(ask->extra, "vgpu", 4)))
        return true;
    if (!operator_asks)
        return fleet_error(error,
                           "a job's slice cannot be changed: cancel the job and submit it again");
    if (!ask->extra != !shards)
        return fleet_error(error,
                           "the shards of a job and its --extra belong together: change both or "
                           "neither");
    return true;
}

uint32_t submit_shards(const char *per_task)
{
    FleetRequest request = {0};
    const char *rest;

    return find_gres(per_task, "shard", &rest) && read_shards(rest, &request) ? request.size : 0;
}
