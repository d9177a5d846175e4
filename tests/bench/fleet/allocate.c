/* SPDX-License-Identifier: MIT */
/*
 * allocate COUNT - gets COUNT slices as allocations without steps, one after the other, and gives
 * each back when it has it.
 */
#include <signal.h>
#include "fleet/slurm/slurm_api.h"
#include <stdio.h>
#include <stdlib.h>

static uint32_t allocate_cores(void)
{
    resource_allocation_response_msg_t *granted;
    char tres[] = "gres/shard:1000", dir[] = "/";
    job_desc_msg_t job;
    uint32_t id;

    slurm_init_job_desc_msg(&job);
    job.user_id = job.group_id = 0;
    job.num_tasks = 1;
    job.min_nodes = 1;
    job.tres_per_task = tres;
    job.time_limit = 10;
    job.work_dir = dir;
    granted = slurm_allocate_or_wait(&job, 60);
    if (!granted)
        return 0;
    id = slurm_id_of(granted);
    slurm_free_resource_allocation_response_msg(granted);
    return id;
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 0, granted = 0;

    slurm_init(NULL);
    for (int i = 0; i < count; i++) {
        uint32_t id = allocate_cores();

        granted += id != 0;
        if (id)
            slurm_kill_job(id, SIGKILL, 0);
    }
    printf("granted %d\n", granted);
    return count && granted == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
