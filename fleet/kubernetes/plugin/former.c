/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/plugin/former.h"

#include "fleet/kubernetes/names.h"
#include "fleet/kubernetes/plugin/card.h"

#define RETRY_CHECKS 5

/**
 * Former
 * @owners: that the cards' seats would have
 * @said: of those, which problem was told last
 * @checks: until the next look; 0: none is needed
 */
struct Former {
    const KubeConf *conf;
    Agent *agent;
    GPtrArray *owners;
    GHashTable *said;
    guint checks;
    gboolean is_busy;
};

Former *former_new(const KubeConf *conf, Agent *agent)
{
    Former *former = g_new0(Former, 1);

    former->conf = conf;
    former->agent = agent;
    former->owners = g_ptr_array_new_with_free_func(g_free);
    former->said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return former;
}

void former_free(Former *former)
{
    g_ptr_array_unref(former->owners);
    g_hash_table_unref(former->said);
    g_free(former);
}

void former_set_gpus(Former *former, const GPtrArray *gpus)
{
    g_ptr_array_set_size(former->owners, 0);
    for (guint i = 0; i < gpus->len; i++) {
        g_autofree char *name = kube_device_name(((AgentGpu *)gpus->pdata[i])->address);

        g_ptr_array_add(former->owners, g_strconcat(KUBE_SEATS_OWNER, name, NULL));
    }
    former->checks = 1;
}

static void log_problem(Former *former, const char *owner, const char *problem)
{
    if (g_strcmp0(problem, g_hash_table_lookup(former->said, owner)))
        g_warning("%s has no [seats] any more: %s", owner, problem);
    g_hash_table_replace(former->said, g_strdup(owner), g_strdup(problem));
}

static void on_released(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("seats that have no [seats] any more cannot be given back: %s", error->message);
}

static void give_back(Former *former, const GPtrArray *owned, const char *owner)
{
    Held held = card_held(owned, owner, 0);
    g_autofree char *kept = held.count ? card_kept_for(&held, former->conf, owner) : NULL;

    if (!held.count)
        return;
    former->checks = RETRY_CHECKS;
    if (kept)
        log_problem(former, owner, kept);
    else
        agent_release(former->agent, owner, on_released, former);
}

static void on_owned(const GPtrArray *owned, const GError *error, void *data)
{
    Former *former = data;

    (void)error;
    former->is_busy = FALSE;
    if (!owned)
        former->checks = RETRY_CHECKS;
    for (guint i = 0; owned && i < former->owners->len; i++)
        give_back(former, owned, former->owners->pdata[i]);
}

void former_check(Former *former)
{
    if (!former->checks || former->is_busy || --former->checks || !former->owners->len)
        return;
    former->is_busy = TRUE;
    agent_list(former->agent, on_owned, former);
}
