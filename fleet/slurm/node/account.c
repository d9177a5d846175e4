/* SPDX-License-Identifier: MIT */
/*
 * What a job used of GPUs goes into its record, where sacct shows it beside what was promised:
 * AdminComment={"vgpu":{"v":1,"gpu_s":…}}.
 */
#include <errno.h>
#include "fleet/slurm/slurm_api.h"
#include <slurm/slurmdb.h>
#include <stdlib.h>
#include <syslog.h>

#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/node.h"

/* slurmdbd may not have the job's record yet: slurmctld tells it in its own time. */
#define TRIES       5
#define TRY_AGAIN_S 1

static char *comment_of(const AgentTotals *totals)
{
    char gpu[G_ASCII_DTOSTR_BUF_SIZE], waited[G_ASCII_DTOSTR_BUF_SIZE],
        throttled[G_ASCII_DTOSTR_BUF_SIZE], joules[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(gpu, sizeof(gpu), "%.3f", totals->gpu_seconds);
    g_ascii_formatd(waited, sizeof(waited), "%.3f", totals->waited_seconds);
    g_ascii_formatd(throttled, sizeof(throttled), "%.3f", totals->throttled_seconds);
    g_ascii_formatd(joules, sizeof(joules), "%.0f", totals->joules);
    return g_strdup_printf("{\"vgpu\":{\"v\":1,\"gpu_s\":%s,\"vram_peak\":%" G_GUINT64_FORMAT
                           ",\"waited_s\":%s,\"throttled_s\":%s,\"joules\":%s}}",
                           gpu, totals->vram_peak, waited, throttled, joules);
}

/* slurmdbd changes what differs from these, which mean "as it was". */
static slurmdb_job_rec_t change_to(char *comment)
{
    return (slurmdb_job_rec_t){.admin_comment = comment,
                               .array_task_id = NO_VAL,
                               .derived_ec = NO_VAL,
                               .priority = NO_VAL,
                               .requid = (uint32_t)-1,
                               .resvid = NO_VAL,
                               .state = NO_VAL};
}

static gboolean modify_job(void *db, guint32 id, const char *cluster, char *comment)
{
    slurm_selected_step_t step = {
        .array_task_id = NO_VAL,
        .het_job_offset = NO_VAL,
        .step_id = {.job_id = id, .step_het_comp = NO_VAL, .step_id = NO_VAL},
    };
    slurmdb_job_rec_t change = change_to(comment);
    slurmdb_job_cond_t which = {0};
    list_t *changed;
    gboolean found;

    /* Both lists point to what is here, so they free nothing. */
    which.step_list = slurm_list_create(NULL);
    slurm_list_append(which.step_list, &step);
    which.cluster_list = slurm_list_create(NULL);
    slurm_list_append(which.cluster_list, (char *)cluster);
    which.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE;
    which.db_flags = SLURMDB_JOB_FLAG_NOTSET;
    changed = slurmdb_job_modify(db, &which, &change);
    found = changed && slurm_list_count(changed) > 0;
    if (changed)
        slurm_list_destroy(changed);
    slurm_list_destroy(which.step_list);
    slurm_list_destroy(which.cluster_list);
    return found && !slurmdb_connection_commit(db, true);
}

void node_account(const NodeJob *job, const AgentTotals *totals)
{
    g_autofree char *comment = comment_of(totals);
    const char *cluster = g_getenv("SLURM_CLUSTER_NAME");
    void *db;
    gboolean done = FALSE;

    slurm_init(NULL);
    db = slurmdb_connection_get(NULL);
    for (guint i = 0; db && cluster && i < TRIES && !done; i++) {
        if (i)
            g_usleep(TRY_AGAIN_S * G_USEC_PER_SEC);
        done = modify_job(db, job->id, cluster, comment);
    }
    if (!done)
        node_say(LOG_WARNING, "cannot write into the record of job %u what it used: %s: %s",
                 job->id, comment, slurm_strerror(errno));
    if (db)
        slurmdb_connection_close(&db);
}
