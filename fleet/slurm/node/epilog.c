/* SPDX-License-Identifier: MIT */
/*
 * When a job has ended on the node: its slices are removed, with force if a process still has one.
 * It never fails: that would drain the node for what the next prolog says as well.
 */
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

/* Of a job on several nodes each epilog would overwrite what the others wrote. */
static void account_use(HostRoot *root, const NodeJob *job, const AgentTotals *totals)
{
    g_autofree FleetConf *conf = g_new0(FleetConf, 1);

    if (node_conf_read(root, conf, NULL) && conf->node.account && job->nodes == 1)
        node_account(job, totals);
}

int node_epilog(HostRoot *root)
{
    g_autofree char *path = NULL, *why = NULL;
    g_autoptr(GError) error = NULL;
    AgentTotals totals = {0};
    NodeJob job;

    if (!node_job_from_environment(&job, &error)) {
        node_say(LOG_ERR, "epilog: %s", error->message);
        return EXIT_SUCCESS;
    }
    path = g_strdup_printf(FLEET_JOBS_DIR "/%u", job.id);
    /* The file is the sign that there may be slices: it goes last, so that a killed epilog is seen.
     */
    if (root_has(root, path)) {
        if (agent_release_owner(job.owner, &totals, &why) == AGENT_OK) {
            node_say(LOG_INFO, "job %u used %.1f s of GPUs and at most %" G_GUINT64_FORMAT " MiB",
                     job.id, totals.gpu_seconds, totals.vram_peak >> 20);
            root_remove(root, path);
            account_use(root, &job, &totals);
        } else {
            node_say(LOG_WARNING, "cannot release the slices of %s now: %s", job.owner, why);
        }
    }
    node_job_clear(&job);
    return EXIT_SUCCESS;
}
