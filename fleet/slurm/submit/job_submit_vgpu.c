/* SPDX-License-Identifier: MIT */
/*
 * job_submit_vgpu.so: in slurmctld, for each job that is submitted or changed. It turns --vgpu into
 * the shards that Slurm counts and the text in the job's "extra" field that its nodes read, and
 * refuses shards that could be cut over several cards. The decisions are fleet/request/submit.h's;
 * this is the glue, which reads vgpu.conf when it has changed.
 *
 * Built from libslurm-dev alone. slurmctld loads it only if the versions are exactly the same.
 */
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/request/submit.h"

const char plugin_name[] = "vGPUs of jobs";
const char plugin_type[] = "job_submit/vgpu";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* As slurmctld passes it on; its content is not public. */
typedef struct job_record job_record_t;

/* Of libslurmfull, where slurmctld has them. */
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **item);
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifndef FLEET_CONF_PATH
#define FLEET_CONF_PATH "/etc/vgpu/vgpu.conf"
#endif

/* How srun, sbatch and salloc pass on the option "vgpu" of the SPANK plugin "vgpu". */
static const char option[] = "_SLURM_SPANK_OPTION_vgpu_vgpu=";

static FleetConf conf;
static char conf_error[FLEET_ERROR_MAX];
static struct stat conf_read;

static void read_conf(const char *path)
{
    static char text[FLEET_CONF_MAX];
    FILE *file = fopen(path, "re");
    size_t length;

    if (!file) {
        fleet_error(conf_error, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = 0;
    if (length == sizeof(text) - 1)
        fleet_error(conf_error, "%s is longer than %d bytes", path, FLEET_CONF_MAX - 2);
    else if (fleet_conf_parse(text, &conf, conf_error))
        conf_error[0] = 0;
    fclose(file);
}

/* Reads the file again if it is another one, or newer. Without a file the defaults hold. */
static void refresh_conf(void)
{
    struct stat now = {0};

    if (stat(FLEET_CONF_PATH, &now)) {
        bool known = conf_error[0];

        fleet_conf_init(&conf);
        conf_error[0] = 0;
        conf_read = (struct stat){0};
        if (errno != ENOENT)
            fleet_error(conf_error, "cannot look at it: %s", strerror(errno));
        if (conf_error[0] && !known)
            slurm_error("job_submit/vgpu: %s: %s; jobs with a slice are refused", FLEET_CONF_PATH,
                        conf_error);
        return;
    }
    if (now.st_mtim.tv_sec == conf_read.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == conf_read.st_mtim.tv_nsec && now.st_ino == conf_read.st_ino)
        return;
    conf_read = now;
    read_conf(FLEET_CONF_PATH);
    if (conf_error[0])
        slurm_error("job_submit/vgpu: %s: %s; jobs with a slice are refused", FLEET_CONF_PATH,
                    conf_error);
    else
        slurm_info("job_submit/vgpu: read %s: %u models, %u partitions", FLEET_CONF_PATH,
                   conf.model_count, conf.partition_count);
}

static SubmitAsk ask_of(const job_desc_msg_t *job)
{
    SubmitAsk ask = {
        .per_task = job->tres_per_task,
        .per_node = job->tres_per_node,
        .per_job = job->tres_per_job,
        .per_socket = job->tres_per_socket,
        .extra = job->extra,
        .partition = job->partition,
        .qos = job->qos,
    };

    for (uint32_t i = 0; i < job->spank_job_env_size; i++)
        if (!strncmp(job->spank_job_env[i], option, sizeof(option) - 1))
            ask.option = job->spank_job_env[i] + sizeof(option) - 1;
    return ask;
}

static void replace_field(char **field, const char *text)
{
    slurm_xfree((void **)field);
    *field = slurm_xstrdup(text);
}

/* sbatch and salloc leave it open, and slurmctld refuses shards for each of no tasks. */
static uint32_t tasks_of(const job_desc_msg_t *job)
{
    uint32_t nodes = job->min_nodes != NO_VAL && job->min_nodes ? job->min_nodes : 1;

    if (job->num_tasks != NO_VAL)
        return job->num_tasks;
    if (job->ntasks_per_node != NO_VAL16 && job->ntasks_per_node)
        nodes *= job->ntasks_per_node;
    return nodes;
}

static int refuse_job(const char *why, uint32_t uid, char **message)
{
    slurm_info("job_submit/vgpu: uid %u: %s", uid, why);
    *message = slurm_xstrdup(why);
    return ESLURM_INVALID_GRES;
}

int init(void);
int job_submit(job_desc_msg_t *job, uint32_t uid, char **message);
int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t uid, char **message);

/* slurmctld has loaded the plugin. */
int init(void)
{
    fleet_conf_init(&conf);
    return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t *job, uint32_t uid, char **message)
{
    SubmitAsk ask = ask_of(job);
    SubmitDecision decision;
    char error[FLEET_ERROR_MAX];

    refresh_conf();
    if (!submit_decide(&ask, &conf, &decision, error))
        return refuse_job(error, uid, message);
    if (!decision.changes)
        return SLURM_SUCCESS;
    if (conf_error[0])
        return refuse_job("the cluster's vgpu.conf is wrong; slurmctld's log says where", uid,
                          message);
    replace_field(&job->tres_per_task, decision.per_task);
    replace_field(&job->extra, decision.extra);
    job->num_tasks = tasks_of(job);
    if (decision.spread)
        job->bitflags |= GRES_ONE_TASK_PER_SHARING;
    return SLURM_SUCCESS;
}

/* The job itself is not public, so this goes by what is to be changed. */
int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t uid, char **message)
{
    SubmitAsk ask = ask_of(job);
    char error[FLEET_ERROR_MAX];

    (void)record;
    if (!submit_modify(&ask, uid == 0 || uid == geteuid(), error))
        return refuse_job(error, uid, message);
    return SLURM_SUCCESS;
}
