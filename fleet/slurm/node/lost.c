/* SPDX-License-Identifier: MIT */
/*
 * Slices and files of jobs that have gone without an epilog: slurmd was killed, or the node was
 * reset. vgpud says who has slices, slurmctld which jobs are on the node.
 */
#include <errno.h>
#include "fleet/slurm/slurm_api.h"
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

/* Whether slurmctld says that the job has something on the node. TRUE also if it does not say. */
static gboolean slurmctld_has_it(guint32 id, const char *node)
{
    job_info_msg_t *jobs = NULL;
    gboolean here = FALSE;

    if (slurm_load_job(&jobs, id, SHOW_DETAIL))
        return errno != ESLURM_INVALID_JOB_ID;
    for (guint i = 0; i < jobs->record_count; i++) {
        const job_info_t *job = &jobs->job_array[i];
        guint state = job->job_state & JOB_STATE_BASE;

        here |= slurm_id_of(job) == id && node_job_detail(job, node) &&
                (state == JOB_RUNNING || state == JOB_SUSPENDED || job->job_state & JOB_COMPLETING);
    }
    slurm_free_job_info_msg(jobs);
    return here;
}

/* slurmctld ends a step that it finds and does not know; the epilog then removes the slices. */
static gboolean job_is_here(guint32 id, const char *node)
{
    return slurmctld_has_it(id, node) || node_job_has_steps(id);
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

/* The jobs of owners whose first slice was made before then; owner to job. */
static GHashTable *old_jobs(const GPtrArray *owned, gint64 before)
{
    GHashTable *jobs = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree char *cluster = NULL;

    for (guint i = 0; i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];
        guint32 job;

        if (slice->since > before || (!cluster && !(cluster = node_cluster())))
            continue;
        job = node_job_of_owner(slice->owner, cluster);
        if (job)
            g_hash_table_insert(jobs, slice->owner, GUINT_TO_POINTER(job));
    }
    return jobs;
}

/* A prolog that made no slices may have left it: it was killed, or refused the job. */
static void remove_file_if_lost(HostRoot *root, guint32 job, const char *node, gint64 before)
{
    g_autofree char *file = g_strdup_printf(FLEET_JOBS_DIR "/%u", job);
    struct stat status;
    int lock;

    if (!root_stat(root, file, &status) || status.st_mtime > before)
        return;
    lock = node_lock(root, TRUE);
    if (!job_is_here(job, node))
        root_remove(root, file);
    node_unlock(lock);
}

static void remove_lost_files(HostRoot *root, const char *node, gint64 before)
{
    g_auto(GStrv) names = sysfs_list(root, FLEET_JOBS_DIR);
    guint64 job;

    for (guint i = 0; names[i]; i++)
        if (g_ascii_string_to_unsigned(names[i], 10, 1, G_MAXUINT32, &job, NULL))
            remove_file_if_lost(root, (guint32)job, node, before);
}

void node_release_lost(HostRoot *root, const char *node, guint seconds)
{
    gint64 before = g_get_real_time() / G_USEC_PER_SEC - seconds;
    g_autoptr(GHashTable) jobs = NULL;
    g_autoptr(GPtrArray) owned = NULL;
    g_autofree char *why = NULL;
    GHashTableIter iter;
    gpointer owner, job;

    if (agent_list_owned(&owned, &why) != AGENT_OK) {
        node_say(LOG_WARNING, "cannot look for slices whose job has gone: %s", why);
        return;
    }
    jobs = old_jobs(owned, before);
    g_hash_table_iter_init(&iter, jobs);
    while (g_hash_table_iter_next(&iter, &owner, &job))
        release_if_lost(root, owner, GPOINTER_TO_UINT(job), node);
    remove_lost_files(root, node, before);
}
