/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/partitioner.h"

static const Partitioner *const all[] = {&partitioner_mig, &partitioner_sriov};

const Partitioner *partitioner_of(const char *root, const Gpu *gpu)
{
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i]->can(root, gpu))
            return all[i];
    return NULL;
}

GStrv partitioner_list(const char *root, const Gpu *gpu)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_auto(GStrv) some = all[i]->list(root, gpu);

        g_strv_builder_addv(names, (const char **)some);
    }
    return g_strv_builder_end(names);
}
