/* SPDX-License-Identifier: MIT */
/*
 * ledger SEED COUNT NODES: COUNT random acts of a busy cluster, by the public API: jobs of slices
 * and of whole cards, gangs, cancels and requeues; the same for the same seed. About a third more
 * is asked for than there is. It keeps no books itself: the witness does.
 */
#include <signal.h>
#include "fleet/slurm/slurm_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Jobs that may be cancelled or requeued; the oldest is cancelled to make room. */
#define MAX_JOBS 4096

static uint32_t jobs[MAX_JOBS];
static unsigned first, last;
static uint64_t state;
static unsigned submitted, refused, cancelled, requeued;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

/* "TRES" of a task: most are slices of all sizes, some just beyond a half, some whole cards. */
static void draw_tres(char *tres, size_t size)
{
    static const unsigned odd[] = {1, 27306, 27307, 40960, 40961, 81919, 81920};

    switch (draw(10)) {
    case 0:
        snprintf(tres, size, "gres/gpu:1");
        break;
    case 1:
        snprintf(tres, size, "gres/shard:%u", odd[draw(sizeof(odd) / sizeof(odd[0]))]);
        break;
    default:
        snprintf(tres, size, "gres/shard:%u", 1 + draw(draw(3) ? 60000 : 81920));
    }
}

static void submit(unsigned nodes)
{
    char tres[64], script[] = "#!/bin/sh\nexec sleep 600\n";
    char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    submit_response_msg_t *response = NULL;
    job_desc_msg_t job;

    slurm_init_job_desc_msg(&job);
    draw_tres(tres, sizeof(tres));
    job.name = "ledger";
    job.user_id = job.group_id = 1000;
    job.num_tasks = draw(4) ? 1 : 1 + draw(draw(8) ? 8 : nodes * 4);
    job.min_nodes = 1;
    job.partition = draw(3) ? "batch" : "online";
    job.time_limit = 1 + draw(60);
    job.work_dir = "/tmp";
    job.script = script;
    job.std_out = job.std_err = "/dev/null";
    job.environment = environment;
    job.env_size = 1;
    job.requeue = 1;
    job.tres_per_task = tres;
    if (!draw(3))
        job.bitflags |= GRES_ONE_TASK_PER_SHARING;
    if (slurm_submit_batch_job(&job, &response)) {
        refused++;
        return;
    }
    if (last - first == MAX_JOBS)
        slurm_kill_job(jobs[first++ % MAX_JOBS], SIGKILL, 0);
    jobs[last++ % MAX_JOBS] = slurm_id_of(response);
    slurm_free_submit_response_response_msg(response);
    submitted++;
}

static void cancel(void)
{
    unsigned at = first + draw(last - first);

    slurm_kill_job(jobs[at % MAX_JOBS], SIGKILL, 0);
    jobs[at % MAX_JOBS] = jobs[first % MAX_JOBS];
    first++;
    cancelled++;
}

static void requeue(void)
{
    /* A job that waits still cannot be requeued, and that is no fault. */
    if (!slurm_requeue(jobs[(first + draw(last - first)) % MAX_JOBS], 0))
        requeued++;
}

int main(int argc, char **argv)
{
    unsigned count = argc == 4 ? (unsigned)atoi(argv[2]) : 0,
             nodes = argc == 4 ? (unsigned)atoi(argv[3]) : 0;

    if (!count || !nodes)
        return 2;
    slurm_init(NULL);
    state = strtoull(argv[1], NULL, 10);
    for (unsigned i = 0; i < count; i++) {
        /* So many that the cluster is full and some wait. */
        unsigned act = last - first < nodes * 8 ? draw(12) : 6 + draw(6);

        if (act < 7 || last == first)
            submit(nodes);
        else if (act < 11)
            cancel();
        else
            requeue();
    }
    printf("submitted %u\nrefused %u\ncancelled %u\nrequeued %u\n", submitted, refused, cancelled,
           requeued);
    return submitted > count / 4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
