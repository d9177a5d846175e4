/* SPDX-License-Identifier: MIT */
/* The state of the existing vGPUs. */
#include "host-agent/doctor/findings.h"
#include "lib/mdev.h"
#include "lib/sysfs.h"

static void check_engine(Examination *exam, const char *uuid)
{
    g_autofree char *device = mdev_path(uuid);
    g_autofree char *failure = sysfs_read(exam->root, device, "vgpu/failure");

    if (failure && *failure)
        finding_add(exam, FINDING_PROBLEM, "engine",
                    g_strdup_printf("the engine of vGPU %s gave up: %s", uuid, failure),
                    g_strdup_printf("journalctl -u vgpu-engine@%s has details; after the repair: "
                                    "systemctl restart vgpu-engine@%s",
                                    uuid, uuid));
    else if (failure)
        finding_ok(exam, "engine", "vGPU %s has no complaint", uuid);
}

void check_engines(Examination *exam)
{
    g_auto(GStrv) uuids = mdev_list(exam->root);

    for (guint i = 0; uuids[i]; i++)
        check_engine(exam, uuids[i]);
}
