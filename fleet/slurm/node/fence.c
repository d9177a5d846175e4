/* SPDX-License-Identifier: MIT */
#include "fleet/slurm/node/fence.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include "fleet/slurm/slurm_api.h"
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "fleet/slurm/node/node.h"

#define OUR_REASON     "vgpu: "
#define STAYING_REASON "vgpu-slurm: "
#define FENCE_NAME     "vgpu-fence:"
#define CLOSED_PREFIX  "vgpu-"
/* Minutes; so long a node stays closed if nobody comes again. */
#define CLOSED_MINUTES 10
/* Slurm kills a health check after 60 seconds, and what it was waiting for then stays behind. */
#define PASS_SECONDS  40
#define GRANT_SECONDS 20

static gboolean fence_failed(GError **error, const char *what, const char *node)
{
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot %s %s: %s", what, node,
                slurm_strerror(errno));
    return FALSE;
}

/* All jobs of the cluster. NULL: slurmctld did not say. */
static job_info_msg_t *load_jobs(void)
{
    job_info_msg_t *jobs = NULL;
    int rc = slurm_load_jobs(0, &jobs, SHOW_DETAIL | SHOW_ALL | SHOW_LOCAL);

    return rc ? NULL : jobs;
}

static gboolean is_running(const job_info_t *job)
{
    guint state = job->job_state & JOB_STATE_BASE;

    return state == JOB_RUNNING || state == JOB_SUSPENDED;
}

static gboolean has_card(const job_info_t *job, const char *node, guint index)
{
    CardPromise cards[NODE_CARDS_MAX];
    int count = is_running(job) ? detail_parse(node_job_detail(job, node), cards) : 0;

    for (int i = 0; i < count; i++)
        if (cards[i].index == index)
            return TRUE;
    return FALSE;
}

/**
 * Owner - whose jobs fences are
 * @name: root, or Slurm's own user, SlurmUser, where root may run no jobs
 * @jobs: all that he has
 */
typedef struct {
    guint32 uid;
    guint32 gid;
    char *name;
    job_info_msg_t *jobs;
} Owner;

/**
 * Fences
 * @owners: root first
 * @count: of owners; 1 where SlurmUser is root
 * @until: no fence is waited for any more; monotonic microseconds
 */
struct Fences {
    char *node;
    Owner owners[2];
    guint count;
    gint64 until;
};

/* @address: NULL: of any card. */
static gboolean is_fence(const Fences *fences, const job_info_t *job, const char *address)
{
    gboolean is_ours = FALSE;

    for (guint i = 0; i < fences->count; i++)
        is_ours = is_ours || job->user_id == fences->owners[i].uid;
    return is_ours && job->name && g_str_has_prefix(job->name, FENCE_NAME) &&
           (!address || g_str_equal(job->name + strlen(FENCE_NAME), address));
}

/* The owners' jobs, one after the other; NULL: there are no more. */
static const job_info_t *job_of(const Fences *fences, guint number)
{
    for (guint i = 0; i < fences->count; i++) {
        const job_info_msg_t *jobs = fences->owners[i].jobs;

        if (number < jobs->record_count)
            return &jobs->job_array[number];
        number -= jobs->record_count;
    }
    return NULL;
}

static gboolean add_owner(Fences *fences, guint32 uid)
{
    Owner *owner = &fences->owners[fences->count];
    const struct passwd *user = getpwuid(uid);

    if (slurm_load_job_user(&owner->jobs, uid, SHOW_DETAIL | SHOW_LOCAL))
        return FALSE;
    owner->uid = uid;
    owner->gid = user ? user->pw_gid : 0;
    owner->name = g_strdup(user ? user->pw_name : "root");
    fences->count++;
    return TRUE;
}

/* A node that does not know SlurmUser has fences of root's only. */
static gboolean add_owners(Fences *fences)
{
    slurm_conf_t *conf = NULL;
    guint32 user;

    if (!add_owner(fences, 0) || slurm_load_ctl_conf(0, &conf))
        return FALSE;
    user = conf->slurm_user_id;
    slurm_free_loaded_conf(conf);
    return !user || !getpwuid(user) || add_owner(fences, user);
}

Fences *fences_load(const char *node, GError **error)
{
    Fences *fences = g_new0(Fences, 1);

    fences->node = g_strdup(node);
    fences->until = g_get_monotonic_time() + PASS_SECONDS * G_USEC_PER_SEC;
    if (add_owners(fences))
        return fences;
    fence_failed(error, "look for fences on", node);
    fences_free(fences);
    return NULL;
}

void fences_free(Fences *fences)
{
    for (guint i = 0; i < fences->count; i++) {
        slurm_free_job_info_msg(fences->owners[i].jobs);
        g_free(fences->owners[i].name);
    }
    g_free(fences->node);
    g_free(fences);
}

/* A fence of this node's, which has a card or waits for one. Others may have the same address. */
static gboolean is_here(const Fences *fences, const job_info_t *job, const char *address)
{
    if (!is_fence(fences, job, address))
        return FALSE;
    if (is_running(job))
        return node_job_detail(job, fences->node) != NULL;
    return (job->job_state & JOB_STATE_BASE) == JOB_PENDING &&
           !g_strcmp0(job->req_nodes, fences->node);
}

gboolean fences_any(const Fences *fences)
{
    const job_info_t *job;

    for (guint i = 0; (job = job_of(fences, i)); i++)
        if (is_here(fences, job, NULL))
            return TRUE;
    return FALSE;
}

/* One that still has a time limit was left by a health check that was killed. */
static gboolean is_fence_of(const Fences *fences, const job_info_t *job, const FenceCard *card)
{
    return is_fence(fences, job, card->address) && has_card(job, fences->node, card->index) &&
           job->time_limit == INFINITE;
}

static gboolean is_up(const Fences *fences, const FenceCard *card)
{
    const job_info_t *job;

    for (guint i = 0; (job = job_of(fences, i)); i++)
        if (is_fence_of(fences, job, card))
            return TRUE;
    return FALSE;
}

static gboolean is_offender(const FenceCard *card, guint32 id)
{
    for (guint i = 0; i < card->offenders->len; i++)
        if (g_array_index(card->offenders, guint32, i) == id)
            return TRUE;
    return FALSE;
}

/* The card's jobs go back to the queue. */
static gboolean clear_card(const Fences *fences, const FenceCard *card)
{
    job_info_msg_t *jobs = load_jobs();

    if (!jobs)
        return FALSE;
    for (guint i = 0; i < jobs->record_count; i++) {
        const job_info_t *job = &jobs->job_array[i];
        gboolean hold;

        if (!has_card(job, fences->node, card->index) || is_fence(fences, job, card->address))
            continue;
        hold = is_offender(card, slurm_id_of(job));
        node_say(LOG_WARNING, "job %u has card %s, which is not healthy, and %s", slurm_id_of(job),
                 card->address,
                 hold ? "is held: its own engine has died there repeatedly; \"scontrol release\" "
                        "starts it again"
                      : "is started again");
        node_job_put_back(slurm_id_of(job), hold);
    }
    slurm_free_job_info_msg(jobs);
    return TRUE;
}

/**
 * FencePlace - a partition that a fence may run in
 * @owner: whose job it is there
 * @minutes: the time limit that it is submitted with
 */
typedef struct {
    const Owner *owner;
    char *partition;
    guint32 minutes;
} FencePlace;

static void fence_place_free(void *data)
{
    FencePlace *place = data;

    g_free(place->partition);
    g_free(place);
}

/* Adds those that run jobs of the owner's. In one that is EXCLUSIVE a fence takes the whole node.
 */
static void add_places(const Fences *fences, guint owner, gboolean is_exclusive,
                       const partition_info_msg_t *partitions, GPtrArray *places)
{
    for (guint i = 0; i < partitions->record_count; i++) {
        const partition_info_t *partition = &partitions->partition_array[i];
        hostlist_t *nodes = slurm_hostlist_create(partition->nodes ? partition->nodes : "");
        gboolean has = slurm_hostlist_find(nodes, fences->node) >= 0;
        /* Others' jobs where root may run none. */
        guint whose = partition->flags & PART_FLAG_NO_ROOT ? 1 : 0;
        FencePlace *place;

        slurm_hostlist_destroy(nodes);
        if (!has || partition->state_up != PARTITION_UP || whose != owner ||
            (partition->max_share == 0) != is_exclusive)
            continue;
        place = g_new(FencePlace, 1);
        *place = (FencePlace){&fences->owners[owner], g_strdup(partition->name),
                              MIN(partition->max_time, CLOSED_MINUTES)};
        g_ptr_array_add(places, place);
    }
}

/* The partitions that have the node and are up (FencePlace), the best first. */
static GPtrArray *places_of(const Fences *fences)
{
    GPtrArray *places = g_ptr_array_new_with_free_func(fence_place_free);
    partition_info_msg_t *partitions = NULL;

    if (slurm_load_partitions(0, &partitions, SHOW_ALL))
        return places;
    for (guint exclusive = FALSE; exclusive <= TRUE; exclusive++)
        for (guint owner = 0; owner < fences->count; owner++)
            add_places(fences, owner, exclusive, partitions, places);
    slurm_free_partition_info_msg(partitions);
    return places;
}

static char *reservation_of(const char *node)
{
    return g_strconcat(CLOSED_PREFIX, node, NULL);
}

/* Where root may run no jobs, it may not submit others' either. With errno. */
static resource_allocation_response_msg_t *allocate_as(const Owner *owner, job_desc_msg_t *job,
                                                       int seconds)
{
    resource_allocation_response_msg_t *granted = NULL;
    int problem;

    if (!setegid(owner->gid) && !seteuid(owner->uid))
        granted = slurm_allocate_or_wait(job, seconds);
    problem = errno;
    if (seteuid(0) || setegid(0))
        abort();
    errno = problem;
    return granted;
}

/* A whole card, whichever is free within @seconds; the job's number, or 0 with errno. */
static guint32 take_any_card(const char *node, const FenceCard *card, const FencePlace *place,
                             int seconds)
{
    g_autofree char *name = g_strconcat(FENCE_NAME, card->address, NULL);
    g_autofree char *reservation = reservation_of(node);
    resource_allocation_response_msg_t *granted;
    char per_node[] = "gres/gpu:1", dir[] = "/";
    job_desc_msg_t job;
    guint32 id;

    slurm_init_job_desc_msg(&job);
    job.name = name;
    job.user_id = place->owner->uid;
    job.group_id = place->owner->gid;
    job.min_nodes = job.max_nodes = 1;
    job.num_tasks = 1;
    job.pn_min_memory = 1;
    job.partition = place->partition;
    job.req_nodes = (char *)node;
    job.reservation = reservation;
    job.tres_per_node = per_node;
    job.work_dir = dir;
    job.time_limit = place->minutes;
    granted = allocate_as(place->owner, &job, seconds);
    if (!granted)
        return 0;
    id = slurm_id_of(granted);
    slurm_free_resource_allocation_response_msg(granted);
    return id;
}

static gboolean job_has_card(guint32 id, const char *node, guint index)
{
    job_info_msg_t *jobs = NULL;
    gboolean has = FALSE;

    if (slurm_load_job(&jobs, id, SHOW_DETAIL | SHOW_LOCAL))
        return FALSE;
    for (guint i = 0; i < jobs->record_count; i++)
        has = has || has_card(&jobs->job_array[i], node, index);
    slurm_free_job_info_msg(jobs);
    return has;
}

/*
 * The reservation ends before the fence does, and would take it along. Nor may the fence's own time
 * limit, which no partition's, QOS' or account's limit forbids for so short, end it.
 */
static gboolean fence_make_lasting(guint32 id)
{
    char none[] = "";
    job_desc_msg_t job;

    slurm_init_job_desc_msg(&job);
    slurm_id_of(&job) = id;
    job.reservation = none;
    job.time_limit = INFINITE;
    return !slurm_update_job(&job);
}

/* One card after the other, until it is the one. @why gets a clause if it cannot be had. */
static gboolean take_card_in(const Fences *fences, const FenceCard *card, const FencePlace *place,
                             GString *why)
{
    const char *node = fences->node;
    guint32 others[NODE_CARDS_MAX];
    gboolean ours = FALSE;
    guint count = 0;

    while (count < NODE_CARDS_MAX) {
        gint64 left = (fences->until - g_get_monotonic_time()) / G_USEC_PER_SEC;
        guint32 id;

        errno = ETIMEDOUT;
        id = left > 0 ? take_any_card(node, card, place, (int)MIN(left, GRANT_SECONDS)) : 0;
        if (id)
            others[count++] = id;
        if (id && !job_has_card(id, node, card->index))
            continue;
        ours = id && fence_make_lasting(id);
        if (ours)
            count--;
        else
            g_string_append_printf(
                why, "%sin partition %s: %s", why->len ? "; " : "", place->partition,
                errno == ETIMEDOUT ? "jobs still have it, or the node has no free CPU"
                                   : slurm_strerror(errno));
        break;
    }
    while (count)
        slurm_kill_job(others[--count], SIGKILL, 0);
    return ours;
}

static gboolean take_card(const Fences *fences, const FenceCard *card, GString *why)
{
    g_autoptr(GPtrArray) places = places_of(fences);
    gboolean taken = FALSE;

    for (guint i = 0; i < places->len && !taken; i++)
        taken = take_card_in(fences, card, places->pdata[i], why);
    if (!places->len)
        g_string_append(why, "no partition of the node is up and runs jobs of root's: remove "
                             "DisableRootJobs= from one of them, or give Slurm a user of its own "
                             "(SlurmUser=)");
    return taken;
}

gboolean fence_close_node(const Fences *fences, GError **error)
{
    g_autofree char *name = reservation_of(fences->node);
    g_autofree char *users = g_strjoin(",", fences->owners[0].name,
                                       fences->count > 1 ? fences->owners[1].name : NULL, NULL);
    char *made;
    resv_desc_msg_t reservation, later;

    slurm_init_resv_desc_msg(&reservation);
    reservation.name = name;
    reservation.node_list = fences->node;
    reservation.users = users;
    reservation.start_time = time(NULL);
    reservation.duration = CLOSED_MINUTES;
    reservation.flags = RESERVE_FLAG_MAINT | RESERVE_FLAG_IGN_JOBS;
    made = slurm_create_reservation(&reservation);
    if (made) {
        slurm_free_name(made);
        return TRUE;
    }
    if (errno != ESLURM_RESERVATION_NAME_DUP)
        return fence_failed(error, "close node", fences->node);
    slurm_init_resv_desc_msg(&later);
    later.name = name;
    later.users = users;
    later.end_time = reservation.start_time + CLOSED_MINUTES * 60;
    return !slurm_update_reservation(&later) ||
           fence_failed(error, "keep closed node", fences->node);
}

gboolean fence_open_node(const char *node, GError **error)
{
    g_autofree char *name = reservation_of(node);
    reservation_name_msg_t reservation = {.name = name};

    return !slurm_delete_reservation(&reservation) || errno == ESLURM_RESERVATION_INVALID ||
           fence_failed(error, "open node", node);
}

/* What a health check that was killed has left: jobs that wait, or would not last. */
static void drop_strays(const Fences *fences, const FenceCard *card)
{
    const job_info_t *job;

    for (guint i = 0; (job = job_of(fences, i)); i++)
        if (is_here(fences, job, card->address) && !is_fence_of(fences, job, card))
            slurm_kill_job(slurm_id_of(job), SIGKILL, 0);
}

gboolean fence_put_up(const Fences *fences, const FenceCard *card, GError **error)
{
    g_autoptr(GString) why = g_string_new(NULL);
    const char *node = fences->node;

    drop_strays(fences, card);
    if (is_up(fences, card))
        return TRUE;
    if (card->requeue && !clear_card(fences, card))
        return fence_failed(error, "look for jobs on", node);
    if (take_card(fences, card, why))
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_BUSY,
                "card %s cannot be fenced yet: %s; no job starts on %s until then", card->address,
                why->str, node);
    return FALSE;
}

void fence_take_down(const Fences *fences, const FenceCard *card)
{
    const job_info_t *job;

    for (guint i = 0; (job = job_of(fences, i)); i++)
        if (is_here(fences, job, card->address))
            slurm_kill_job(slurm_id_of(job), SIGKILL, 0);
}

static gboolean node_state(const char *node, guint *state, char **reason)
{
    node_info_msg_t *nodes = NULL;
    gboolean found;

    if (slurm_load_node_single(&nodes, (char *)node, SHOW_ALL))
        return FALSE;
    found = nodes->record_count == 1;
    if (found) {
        *state = nodes->node_array[0].node_state;
        *reason = g_strdup(nodes->node_array[0].reason ? nodes->node_array[0].reason : "");
    }
    slurm_free_node_info_msg(nodes);
    return found;
}

static gboolean set_state(const char *node, guint state, char *reason)
{
    update_node_msg_t update;

    slurm_init_update_node_msg(&update);
    update.node_names = (char *)node;
    update.node_state = state;
    update.reason = reason;
    return !slurm_update_node(&update);
}

gboolean fence_drain(const char *node, FenceDrain until, const char *why, GError **error)
{
    const char *prefix = until == FENCE_UNTIL_WELL ? OUR_REASON : STAYING_REASON;
    g_autofree char *reason = NULL, *ours = g_strconcat(prefix, why, NULL);
    guint state;

    if (!node_state(node, &state, &reason))
        return fence_failed(error, "ask for node", node);
    return state & NODE_STATE_DRAIN || set_state(node, NODE_STATE_DRAIN, ours) ||
           fence_failed(error, "drain node", node);
}

gboolean fence_resume(const char *node, GError **error)
{
    g_autofree char *reason = NULL;
    guint state;

    if (!node_state(node, &state, &reason))
        return fence_failed(error, "ask for node", node);
    if (!(state & NODE_STATE_DRAIN) || !g_str_has_prefix(reason, OUR_REASON))
        return TRUE;
    node_say(LOG_INFO, "node %s resumes; it drained because of: %s", node, reason);
    return set_state(node, NODE_RESUME, NULL) || fence_failed(error, "resume node", node);
}
