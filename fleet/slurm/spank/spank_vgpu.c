/* SPDX-License-Identifier: MIT */
/*
 * spank_vgpu.so: --vgpu of srun, sbatch and salloc, and the environment of tasks.
 *
 * In the commands it checks the words before anything is submitted; job_submit_vgpu.so does the
 * rest. In slurmstepd it reads what the prolog has written, once, as root, and gives each task the
 * variables of its card. It talks to nobody, because a daemon that forks and launches must not
 * wait; but it asks slurmctld to start a job again that was started without its prolog.
 */
#include <errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/request/request.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/slurm_api.h"

SPANK_PLUGIN(vgpu, 1)

/* The job's file; empty: it has no slice here. */
static char job_text[JOB_FILE_MAX];

/* sbatch and salloc leave the option to the job's steps in this variable. */
#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_vgpu_vgpu"

/* A step of a job has the job's slices; it cannot ask for others. */
static bool asks_in_job(const char *text)
{
    const char *inherited = getenv(INHERITED);

    return spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID") &&
           (!inherited || strcmp(inherited, text));
}

static int take_option(int value, const char *text, int remote)
{
    FleetRequest request;
    char error[FLEET_ERROR_MAX];

    (void)value;
    if (remote)
        return 0;
    if (asks_in_job(text)) {
        slurm_error(
            "--vgpu: this step runs in job %s, whose slices are fixed: give --vgpu to sbatch or "
            "salloc",
            getenv("SLURM_JOB_ID"));
        return -1;
    }
    if (fleet_request_parse(text, &request, error))
        return 0;
    slurm_error("%s", error);
    return -1;
}

static struct spank_option option = {
    .name = "vgpu",
    .arginfo = "[MODEL:]SIZE[,KEY=VALUE...]",
    .usage =
        "a part of a GPU for each task: a SIZE of its memory such as 8G, 30%, half or full; keys: "
        "share, cap, class, door, spread, resident, oversubscribe, engines, priority",
    .has_arg = 1,
    .cb = take_option,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/*
 * Seen of Slurm 24.11: slurmctld was killed, has a job in its queue that ran, and starts it here
 * again, but slurmd runs no prolog, because it has run one. Put back by slurmctld, the job has one.
 */
static void put_back(uint32_t job)
{
    if (slurm_requeue(job, 0))
        slurm_error("vgpu: cannot put job %u back into the queue: %s", job, slurm_strerror(errno));
}

/* Of a running job's step, before its tasks are forked: the only time when it is root. */
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
    uint32_t job = 0;

    (void)argc;
    (void)argv;
    job_text[0] = 0;
    if (!spank_remote(spank) || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    if (!job_file_read(job, job_text)) {
        if (!strcmp(job_text, JOB_FILE_LOST))
            put_back(job);
        return 0;
    }
    job_text[0] = 0;
    if (errno == ENOENT)
        return 0;
    slurm_error("vgpu: cannot read the slices of job %u: %s", job, strerror(errno));
    return -1;
}

/* Of a task's own list. */
#define PATHS_MAX 32768

/* Lists of paths, and what separates them. */
static const struct {
    const char *name;
    char separator;
} lists[] = {
    {"LD_LIBRARY_PATH", ':'},
    {"APPTAINERENV_LD_LIBRARY_PATH", ':'},
    {"APPTAINER_BINDPATH", ','},
};

/*
 * What the user has there stays, behind ours: it may have libraries that the program needs. A step
 * has ours from its batch script already.
 */
static bool set_list(spank_t spank, const char *name, char separator, const char *ours)
{
    static char rest[PATHS_MAX], all[2 * PATHS_MAX];
    spank_err_t got = spank_getenv(spank, name, rest, sizeof(rest));
    size_t length = strlen(ours);

    if (got != ESPANK_SUCCESS && got != ESPANK_ENV_NOEXIST)
        return false;
    if (got == ESPANK_SUCCESS && !strncmp(rest, ours, length) &&
        (!rest[length] || rest[length] == separator))
        return true;
    if (got != ESPANK_SUCCESS || !rest[0])
        return spank_setenv(spank, name, ours, 1) == ESPANK_SUCCESS;
    return (size_t)snprintf(all, sizeof(all), "%s%c%s", ours, separator, rest) < sizeof(all) &&
           spank_setenv(spank, name, all, 1) == ESPANK_SUCCESS;
}

static bool set_variable(const char *name, const char *value, void *data)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (!strcmp(name, lists[i].name))
            return set_list(data, name, lists[i].separator, value);
    return spank_setenv(data, name, value, 1) == ESPANK_SUCCESS;
}

/* The task's card if Slurm names exactly one, else -1. */
static int card_of(spank_t spank)
{
    char cards[64], *end;
    long card;

    if (spank_getenv(spank, "SLURM_STEP_GPUS", cards, sizeof(cards)) != ESPANK_SUCCESS)
        return -1;
    card = strtol(cards, &end, 10);
    return end > cards && !*end ? (int)card : -1;
}

/* In the task's own process, as the user, before it is replaced by the program. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
    const char *refused = job_file_refused(job_text);
    int local = 0;

    (void)argc;
    (void)argv;
    if (!job_text[0])
        return 0;
    if (refused) {
        slurm_error("vgpu: this job gets no slice on this node: %.*s", (int)strcspn(refused, "\n"),
                    refused);
        return -1;
    }
    if (!strcmp(job_text, JOB_FILE_LOST)) {
        slurm_error("vgpu: this job was started without its prolog and has no slice on this node; "
                    "it goes back to the queue");
        return -1;
    }
    if (spank_get_item(spank, S_TASK_ID, &local) != ESPANK_SUCCESS || local < 0)
        local = 0;
    /* It would turn the governor off, and the program would have no GPU. */
    spank_unsetenv(spank, "VGPU_GOVERNOR_DISABLE");
    if (job_file_task(job_text, card_of(spank), (unsigned)local, set_variable, spank))
        return 0;
    slurm_error("vgpu: task %d has no slice on this node", local);
    return -1;
}
