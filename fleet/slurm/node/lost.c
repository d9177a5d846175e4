/* SPDX-License-Identifier: MIT */
/*
 * Slices whose job has gone without an epilog: slurmd was killed, or the node was reset. vgpud says
 * who has slices, slurmctld which jobs are on the node.
 */
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <string.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

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

/* "slurm:CLUSTER:JOBID" of this cluster; 0: another's. */
static guint32 job_of(const char *owner)
{
    g_autofree char *prefix = NULL;
    slurm_conf_t *conf = NULL;
    guint64 id = 0;

    if (!g_str_has_prefix(owner, "slurm:") || slurm_load_ctl_conf(0, &conf))
        return 0;
    prefix = g_strdup_printf("slurm:%s:", conf->cluster_name);
    slurm_free_ctl_conf(conf);
    if (!g_str_has_prefix(owner, prefix))
        return 0;
    g_ascii_string_to_unsigned(owner + strlen(prefix), 10, 1, G_MAXUINT32, &id, NULL);
    return (guint32)id;
}

/* The owner of a job that ended long ago. Its job cannot start here meanwhile: the lock. */
static void release_if_lost(HostRoot *root, const char *owner, guint32 job, const char *node)
{
    g_autofree char *file = g_strdup_printf(FLEET_JOBS_DIR "/%u", job), *why = NULL;
    int lock = node_lock(root, TRUE);
    AgentTotals totals;

    if (!job_is_here(job, node)) {
        node_say(LOG_WARNING, "%s has slices on this node and no job; they are removed", owner);
        if (agent_release_owner(owner, &totals, &why) == AGENT_OK)
            root_remove(root, file);
        else
            node_say(LOG_WARNING, "cannot release the slices of %s: %s", owner, why);
    }
    node_unlock(lock);
}

void node_release_lost(HostRoot *root, const char *node, guint seconds)
{
    gint64 before = g_get_real_time() / G_USEC_PER_SEC - seconds;
    g_autoptr(GPtrArray) owned = NULL;
    g_autofree char *why = NULL;

    if (agent_list_owned(&owned, &why) != AGENT_OK)
        node_say(LOG_WARNING, "cannot list owners of slices: %s", why);
    for (guint i = 0; owned && i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint32 job = slice->since <= before ? job_of(slice->owner) : 0;

        if (job)
            release_if_lost(root, slice->owner, job, node);
    }
}
