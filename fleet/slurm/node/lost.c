/* SPDX-License-Identifier: MIT */
/*
 * Slices and files of jobs that have gone without an epilog: slurmd was killed, or the node was
 * reset. vgpud says who has slices, slurmctld which jobs are on the node.
 */
#include <errno.h>
#include "fleet/slurm/slurm_api.h"
#include <sys/stat.h>
#include <syslog.h>

#include "fleet/slurm/node/agent_watch.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

/**
 * JobPlace - where a job is
 * @JOB_WAITS: in slurmctld's queue, and nothing of it runs here
 * @JOB_HERE: on this node, or nobody knows
 */
typedef enum {
    JOB_GONE,
    JOB_WAITS,
    JOB_HERE,
} JobPlace;

static JobPlace place_of(const job_info_t *job, const char *node)
{
    guint state = job->job_state & JOB_STATE_BASE;

    if (node_job_detail(job, node) &&
        (state == JOB_RUNNING || state == JOB_SUSPENDED || job->job_state & JOB_COMPLETING))
        return JOB_HERE;
    return state == JOB_PENDING ? JOB_WAITS : JOB_GONE;
}

static JobPlace ask_slurmctld(guint32 id, const char *node)
{
    job_info_msg_t *jobs = NULL;
    JobPlace place = JOB_GONE;

    if (slurm_load_job(&jobs, id, SHOW_DETAIL | SHOW_LOCAL))
        return errno == ESLURM_INVALID_JOB_ID ? JOB_GONE : JOB_HERE;
    for (guint i = 0; i < jobs->record_count; i++)
        if (slurm_id_of(&jobs->job_array[i]) == id)
            place = MAX(place, place_of(&jobs->job_array[i], node));
    slurm_free_job_info_msg(jobs);
    return place;
}

/* slurmctld ends a step that it finds and does not know; the epilog then removes the slices. */
static JobPlace find_job(guint32 id, const char *node)
{
    return node_job_has_steps(id) ? JOB_HERE : ask_slurmctld(id, node);
}

/* slurmd has run the prolog of a job that waits, and may start the job without another one. */
static void forget_job(HostRoot *root, const char *file, JobPlace place)
{
    if (place == JOB_WAITS && root_has(root, file))
        root_write(root, file, JOB_FILE_LOST, 0600, NULL);
    else
        root_remove(root, file);
}

/* The owner of a job that ended long ago. Its job cannot start here meanwhile: the lock. */
static void release_if_lost(HostRoot *root, const char *owner, guint32 job, const char *node)
{
    g_autofree char *file = g_strdup_printf(FLEET_JOBS_DIR "/%u", job), *why = NULL;
    int lock = node_lock(root, TRUE);
    JobPlace place = find_job(job, node);
    AgentTotals totals;

    if (place != JOB_HERE) {
        node_say(LOG_WARNING, "%s has slices on this node and no job; they are removed", owner);
        if (agent_release_owner(owner, &totals, &why) == AGENT_OK)
            forget_job(root, file, place);
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

        if (slice->since > before || !g_str_has_prefix(slice->owner, "slurm:") ||
            (!cluster && !(cluster = node_cluster())))
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
    if (find_job(job, node) == JOB_GONE)
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
