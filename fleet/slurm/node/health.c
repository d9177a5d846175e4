/* SPDX-License-Identifier: MIT */
/*
 * Every minute: cards that are not healthy are fenced, and those that are again come back; slices
 * whose job has gone are removed; the node drains while vgpud does not answer. It keeps no state
 * but that slurmctld had nothing to say of this node, so that it is not asked each time.
 */
#include "fleet/slurm/slurm_api.h"
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/fence.h"
#include "fleet/slurm/node/node.h"

void agent_health_free(void *data)
{
    AgentHealth *health = data;

    g_free(health->gpu);
    g_free(health->why);
    g_strfreev(health->offenders);
    g_free(health);
}

void agent_owned_free(void *data)
{
    AgentOwned *owned = data;

    g_free(owned->uuid);
    g_free(owned->owner);
    g_free(owned->gpu);
    g_free(owned);
}

/* NULL: it has gone, or it is no card of vgpud's. */
static const AgentHealth *health_at(const GPtrArray *cards, const char *address)
{
    for (guint i = 0; i < cards->len; i++) {
        const AgentHealth *card = cards->pdata[i];

        if (g_str_equal(card->gpu, address))
            return card;
    }
    return NULL;
}

/* NULL: it is healthy. */
static const char *fault_of(const GPtrArray *cards, const char *address)
{
    const AgentHealth *card = health_at(cards, address);

    if (!card)
        return "vgpud does not have it";
    return card->healthy ? NULL : card->why;
}

/*
 * Jobs leave a card that is broken or gone. One that may recover, or on which jobs have ended their
 * own engines, gets no new job, and those that run on it stay.
 */
static gboolean must_leave(const AgentHealth *card)
{
    return !card || card->broken;
}

/*
 * The jobs (guint32) whose engines died on the card by themselves: on the next card they would do
 * the same. To be unreferenced.
 */
static GArray *offenders_of(const AgentHealth *card)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint32));
    g_autofree char *cluster = card && card->offenders[0] ? node_cluster() : NULL;
    g_autofree char *why = NULL;
    g_autoptr(GPtrArray) owned = NULL;

    if (!cluster)
        return jobs;
    if (agent_list_owned(&owned, &why) != AGENT_OK)
        node_say(LOG_WARNING, "cannot list owners of slices: %s", why);
    for (guint i = 0; owned && i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint32 job = g_strv_contains((const char *const *)card->offenders, slice->uuid)
                          ? node_job_of_owner(slice->owner, cluster)
                          : 0;

        if (job)
            g_array_append_val(jobs, job);
    }
    return jobs;
}

/* FALSE: its fence is not up yet. */
static gboolean look_at(const Fences *fences, const FenceCard *card, const char *fault)
{
    g_autoptr(GError) error = NULL;

    if (!fault) {
        fence_take_down(fences, card);
        return TRUE;
    }
    if (fence_put_up(fences, card, &error))
        return TRUE;
    node_say(LOG_WARNING, "%s; the card: %s", error->message, fault);
    return FALSE;
}

/*
 * A node that drains starts no fence, so it is closed by the reservation first, and then resumed.
 * That of a health check that was killed ends by itself.
 */
static gboolean look_at_cards(HostRoot *root, const char *node, const NodeCards *known,
                              const GPtrArray *cards, gboolean requeue, GError **error)
{
    g_autoptr(Fences) fences = NULL;
    gboolean all = TRUE, faults = FALSE;

    for (guint i = 0; i < NODE_CARDS_MAX && !faults; i++)
        faults = known->addresses[i] && fault_of(cards, known->addresses[i]);
    if (!faults && node_is_known_well(root))
        return TRUE;
    node_note_well(root, FALSE);
    fences = fences_load(node, error);
    if (!fences || (faults && !fence_close_node(fences, error)) || !fence_resume(node, error))
        return FALSE;
    if (!faults && !fences_any(fences)) {
        node_note_well(root, TRUE);
        return TRUE;
    }
    for (guint i = 0; i < NODE_CARDS_MAX; i++) {
        const char *address = known->addresses[i];
        const AgentHealth *health = address ? health_at(cards, address) : NULL;
        g_autoptr(GArray) offenders = offenders_of(health);
        FenceCard card = {i, address, requeue && must_leave(health), offenders};

        if (address)
            all &= look_at(fences, &card, fault_of(cards, address));
    }
    return !all || fence_open_node(node, error);
}

int node_health(HostRoot *root)
{
    g_autofree FleetConf *conf = g_new0(FleetConf, 1);
    g_autoptr(GPtrArray) cards = NULL;
    g_autoptr(NodeCards) known = NULL;
    g_autofree char *why = NULL, *node = node_name();
    g_autoptr(GError) error = NULL;

    slurm_init(NULL);
    if (agent_list_health(&cards, &why) != AGENT_OK) {
        node_say(LOG_ERR, "%s; the node drains", why);
        node_note_well(root, FALSE);
        if (!fence_drain(node, FENCE_UNTIL_WELL, why, &error))
            node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    known = node_cards_read(root, &error);
    if (!known || !node_conf_read(root, conf, &error) ||
        !look_at_cards(root, node, known, cards, conf->node.requeue, &error)) {
        node_say(LOG_ERR, "%s", error->message);
        return EXIT_FAILURE;
    }
    node_release_lost(root, node, conf->node.orphans);
    return EXIT_SUCCESS;
}
