/* SPDX-License-Identifier: MIT */
/*
 * Every minute: cards that are not healthy are fenced, and those that are again come back; slices
 * whose job has gone are removed; the node drains while vgpud does not answer. It keeps no state:
 * vgpud and slurmctld are asked each time.
 */
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/fence.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

void agent_health_free(void *data)
{
    AgentHealth *health = data;

    g_free(health->gpu);
    g_free(health->why);
    g_free(health);
}

void agent_owned_free(void *data)
{
    AgentOwned *owned = data;

    g_free(owned->owner);
    g_free(owned->gpu);
    g_free(owned);
}

/* NULL: it is healthy. */
static const char *fault_of(const GPtrArray *cards, const char *address)
{
    for (guint i = 0; i < cards->len; i++) {
        const AgentHealth *card = cards->pdata[i];

        if (g_str_equal(card->gpu, address))
            return card->healthy ? NULL : card->why;
    }
    return "vgpud does not have it";
}

/* FALSE: its fence is not up yet. */
static gboolean look_at(const char *node, guint index, const char *address, const char *fault,
                        gboolean requeue)
{
    FenceCard card = {node, index, address, requeue};
    g_autoptr(GError) error = NULL;

    if (fault ? fence_put_up(&card, &error) : fence_take_down(&card, &error))
        return TRUE;
    node_say(LOG_WARNING, "%s%s%s", error->message, fault ? "; the card: " : "",
             fault ? fault : "");
    return FALSE;
}

/*
 * A node that drains starts no fence, so it is closed by the reservation first, and then resumed.
 */
static void look_at_cards(const char *node, const GPtrArray *addresses, const GPtrArray *cards,
                          gboolean requeue)
{
    gboolean all = TRUE, faults = FALSE;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < addresses->len && !faults; i++)
        faults = addresses->pdata[i] && fault_of(cards, addresses->pdata[i]);
    if ((faults && !fence_close_node(node, &error)) || !fence_resume(node, &error)) {
        node_say(LOG_ERR, "%s", error->message);
        return;
    }
    for (guint i = 0; i < addresses->len; i++)
        if (addresses->pdata[i])
            all &= look_at(node, i, addresses->pdata[i], fault_of(cards, addresses->pdata[i]),
                           requeue);
    if (all && !fence_open_node(node, &error))
        node_say(LOG_ERR, "%s", error->message);
}

/* Whether slurmctld says that the job has something on the node. TRUE also if it does not say. */
static gboolean job_is_here(guint32 id, const char *node)
{
    job_info_msg_t *jobs = NULL;
    gboolean here = FALSE;

    if (slurm_load_job(&jobs, id, SHOW_DETAIL))
        return errno != ESLURM_INVALID_JOB_ID;
    for (guint i = 0; i < jobs->record_count; i++) {
        const job_info_t *job = &jobs->job_array[i];
        guint state = job->job_state & JOB_STATE_BASE;

        here |= job->job_id == id && node_job_detail(job, node) &&
                (state == JOB_RUNNING || state == JOB_SUSPENDED || job->job_state & JOB_COMPLETING);
    }
    slurm_free_job_info_msg(jobs);
    return here;
}

/* The owner of a job that ended long ago. Its job cannot start here meanwhile: the lock. */
static void release_if_lost(HostRoot *root, const AgentOwned *owned, const char *cluster,
                            const char *node, gint64 before)
{
    g_autofree char *prefix = g_strdup_printf("slurm:%s:", cluster), *why = NULL;
    g_autofree char *file = NULL;
    AgentTotals totals;
    guint64 id;
    int lock;

    if (owned->since > before || !g_str_has_prefix(owned->owner, prefix) ||
        !g_ascii_string_to_unsigned(owned->owner + strlen(prefix), 10, 1, G_MAXUINT32, &id, NULL))
        return;
    lock = node_lock(root, TRUE);
    if (!job_is_here((guint32)id, node)) {
        node_say(LOG_WARNING, "%s has slices on this node and no job; they are removed",
                 owned->owner);
        file = g_strdup_printf(FLEET_JOBS_DIR "/%u", (guint)id);
        if (agent_release_owner(owned->owner, &totals, &why) == AGENT_OK)
            root_remove(root, file);
        else
            node_say(LOG_WARNING, "cannot release the slices of %s: %s", owned->owner, why);
    }
    node_unlock(lock);
}

static void look_at_owners(HostRoot *root, const char *node, guint seconds)
{
    gint64 before = g_get_real_time() / G_USEC_PER_SEC - seconds;
    g_autoptr(GPtrArray) owned = NULL;
    g_autofree char *why = NULL;
    slurm_conf_t *conf = NULL;

    if (slurm_load_ctl_conf(0, &conf))
        return;
    if (agent_list_owned(&owned, &why) != AGENT_OK)
        node_say(LOG_WARNING, "cannot list owners of slices: %s", why);
    for (guint i = 0; owned && i < owned->len; i++)
        release_if_lost(root, owned->pdata[i], conf->cluster_name, node, before);
    slurm_free_ctl_conf(conf);
}

int node_health(HostRoot *root)
{
    g_autofree FleetConf *conf = g_new0(FleetConf, 1);
    g_autoptr(GPtrArray) addresses = NULL, cards = NULL;
    g_autofree char *why = NULL, *node = node_name();
    g_autoptr(GError) error = NULL;

    slurm_init(NULL);
    if (agent_list_health(&cards, &why) != AGENT_OK) {
        node_say(LOG_ERR, "%s; the node drains", why);
        if (!fence_drain(node, why, &error))
            node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    addresses = node_cards_read(root, &error);
    if (!addresses || !node_conf_read(root, conf, &error)) {
        node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    look_at_cards(node, addresses, cards, conf->node.requeue);
    look_at_owners(root, node, conf->node.orphans);
    return EXIT_SUCCESS;
}
