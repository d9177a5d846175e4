/* SPDX-License-Identifier: MIT */
/* submit_cost PLUGIN: what job_submit costs of slurmctld's time: processor time of 20,000 calls. */
#include <dlfcn.h>
#include "fleet/slurm/slurm_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS 20000

typedef int (*JobSubmit)(job_desc_msg_t *job, uint32_t uid, char **message);

extern void slurm_xfree(void **item);

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static int measure(JobSubmit submit, const char *what, char *option)
{
    static double times[CALLS];

    for (unsigned i = 0; i < CALLS; i++) {
        job_desc_msg_t job;
        char *message = NULL;
        double began;

        slurm_init_job_desc_msg(&job);
        job.spank_job_env = &option;
        job.spank_job_env_size = option ? 1 : 0;
        began = now();
        if (submit(&job, 1000, &message))
            return EXIT_FAILURE;
        times[i] = now() - began;
        if (option && (!job.extra || !job.tres_per_task))
            return EXIT_FAILURE;
        slurm_xfree((void **)&job.extra);
        slurm_xfree((void **)&job.tres_per_task);
    }
    qsort(times, CALLS, sizeof(times[0]), compare);
    printf("job_submit, %s: median %.1f us, 99 %% %.1f us (bar of F-3: 20 us)\n", what,
           times[CALLS / 2], times[CALLS / 100 * 99]);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    char option[] = "_SLURM_SPANK_OPTION_vgpu_vgpu=a100-80g:8G,share=30,cap=50,class=guaranteed";
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    JobSubmit submit = plugin ? (JobSubmit)dlsym(plugin, "job_submit") : NULL;

    if (!submit) {
        fprintf(stderr, "submit_cost: %s\n", dlerror());
        return EXIT_FAILURE;
    }
    slurm_init(NULL);
    return measure(submit, "without a slice", NULL) || measure(submit, "with a slice", option);
}
