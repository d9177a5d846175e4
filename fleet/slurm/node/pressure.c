/* SPDX-License-Identifier: MIT */
/*
 * pressure-command= of vgpud: a card has less free memory than its water mark. Best-effort jobs
 * that have slices of it go back to the queue, the youngest first, until what they use makes up for
 * what is missing. vgpud calls again if it was not enough.
 */
#include <errno.h>
#include "fleet/slurm/slurm_api.h"
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/node.h"

static int youngest_first(const void *a, const void *b)
{
    const AgentOwned *first = *(AgentOwned *const *)a, *second = *(AgentOwned *const *)b;

    return first->since < second->since ? 1 : first->since > second->since ? -1 : 0;
}

static guint64 number_of(const char *name)
{
    const char *text = g_getenv(name);

    return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

int node_pressure(void)
{
    const char *gpu = g_getenv("GPU");
    guint64 free = number_of("FREE"), mark = number_of("MARK"), got = 0;
    g_autoptr(GPtrArray) owned = NULL;
    g_autofree char *why = NULL, *cluster = NULL;
    guint count = 0;

    if (!gpu) {
        node_say(LOG_ERR, "pressure: GPU, FREE and MARK must be given, as vgpud does");
        return EXIT_FAILURE;
    }
    if (agent_list_owned(&owned, &why) != AGENT_OK) {
        node_say(LOG_ERR, "cannot list owners of slices: %s", why);
        return EXIT_FAILURE;
    }
    slurm_init(NULL);
    cluster = node_cluster();
    if (!cluster) {
        node_say(LOG_ERR, "cannot ask slurmctld for the cluster's name: %s", slurm_strerror(errno));
        return EXIT_FAILURE;
    }
    g_ptr_array_sort(owned, youngest_first);
    for (guint i = 0; i < owned->len && (!count || free + got < mark); i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint32 job = slice->best_effort && g_str_equal(slice->gpu, gpu)
                          ? node_job_of_owner(slice->owner, cluster)
                          : 0;

        if (!job)
            continue;
        node_say(LOG_WARNING, "GPU %s is short of memory: job %u goes back to the queue", gpu, job);
        node_job_put_back(job, FALSE);
        got += slice->used;
        count++;
    }
    return EXIT_SUCCESS;
}
