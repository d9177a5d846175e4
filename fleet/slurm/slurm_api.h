/* SPDX-License-Identifier: MIT */
/*
 * Slurm's public API, the same for 24.11 and 26.05. The newer one knows a job by a structure
 * instead of a number; its header still takes numbers if it is asked to, but for these.
 */
#ifndef FLEET_SLURM_SLURM_API_H
#define FLEET_SLURM_SLURM_API_H

#define SLURM_BACKWARD_COMPAT
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
/* Of a job's information, description or allocation. */
#define slurm_id_of(record) ((record)->step_id.job_id)
#define slurm_allocate_or_wait(job, seconds)                                                       \
    slurm_allocate_resources_blocking(job, seconds, NULL, -1)
#define slurm_free_loaded_conf(conf) slurm_free_conf(conf)
/* What slurm_create_reservation() returns; a variable. */
extern void slurm_xfree(void **item);
#define slurm_free_name(name) slurm_xfree((void **)&(name))
#else
#define slurm_id_of(record)                  ((record)->job_id)
#define slurm_allocate_or_wait(job, seconds) slurm_allocate_resources_blocking(job, seconds, NULL)
#define slurm_free_loaded_conf(conf)         slurm_free_ctl_conf(conf)
#define slurm_free_name(name)                free(name)
#endif

#endif
