/* SPDX-License-Identifier: MIT */
/*
 * pressure-command= of vgpud: a card has less free memory than its water mark. Best-effort jobs
 * that have slices of it go back to the queue, the youngest first, until what they use makes up for
 * what is missing. vgpud calls again if it was not enough.
 */
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
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

/* "slurm:CLUSTER:JOBID"; 0: no job. */
static guint32 job_of(const char *owner)
{
    const char *colon = strrchr(owner, ':');
    guint64 id;

    return g_str_has_prefix(owner, "slurm:") &&
                   g_ascii_string_to_unsigned(colon + 1, 10, 1, G_MAXUINT32, &id, NULL)
               ? (guint32)id
               : 0;
}

int node_pressure(void)
{
    const char *gpu = g_getenv("GPU");
    guint64 free = number_of("FREE"), mark = number_of("MARK"), got = 0;
    g_autoptr(GPtrArray) owned = NULL;
    g_autofree char *why = NULL;
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
    g_ptr_array_sort(owned, youngest_first);
    for (guint i = 0; i < owned->len && (!count || free + got < mark); i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint32 job = slice->best_effort && g_str_equal(slice->gpu, gpu) ? job_of(slice->owner) : 0;

        if (!job)
            continue;
        node_say(LOG_WARNING, "GPU %s is short of memory: job %u goes back to the queue", gpu, job);
        node_job_put_back(job);
        got += slice->used;
        count++;
    }
    return EXIT_SUCCESS;
}
