/* SPDX-License-Identifier: MIT */
#include "host-agent/meter/job_cgroup.h"

#include <string.h>

#define SLURM "slurm:"

/* The number of "slurm:CLUSTER:4711", within @owner; NULL: it is none of Slurm's. */
static const char *job_number_of(const char *owner)
{
    const char *number = g_str_has_prefix(owner, SLURM) ? strrchr(owner, ':') + 1 : NULL;

    if (!number || number == owner + strlen(SLURM) || !*number)
        return NULL;
    return number[strspn(number, "0123456789")] ? NULL : number;
}

gboolean job_cgroup_is_known(const char *owner)
{
    return job_number_of(owner) != NULL;
}

/* cgroup v2, with slurmd's own slice, and with the node's name if a host runs several; and v1. */
char *job_cgroup_find(HostRoot *root, const char *owner)
{
    static const char *const places[] = {"/sys/fs/cgroup/*.slice/*slurmstepd.scope/job_",
                                         "/sys/fs/cgroup/freezer/slurm*/uid_*/job_"};
    const char *number = job_number_of(owner);

    for (guint i = 0; number && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *pattern = g_strconcat(places[i], number, NULL);
        g_auto(GStrv) found = root_glob(root, pattern);

        if (found[0])
            return g_strdup(found[0]);
    }
    return NULL;
}
