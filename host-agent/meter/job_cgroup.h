/* SPDX-License-Identifier: MIT */
/*
 * Where a scheduler keeps the processes of a job that has slices. Of Slurm with proctrack/cgroup
 * that is one cgroup for each job of the node, in which sessions of ssh are, too, if
 * pam_slurm_adopt has put them there.
 */
#ifndef METER_JOB_CGROUP_H
#define METER_JOB_CGROUP_H

#include "lib/host_root.h"

/* Whether slices of this owner are of a job whose cgroup may be found. */
gboolean job_cgroup_is_known(const char *owner);

/* The directory of that cgroup; NULL: there is none now, or it is not known. To be freed. */
char *job_cgroup_find(HostRoot *root, const char *owner);

#endif
