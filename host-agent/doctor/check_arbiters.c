/* SPDX-License-Identifier: MIT */
/* Whether arbiters enforce the vGPUs' shares. */
#include "host-agent/doctor/findings.h"
#include "lib/gpu.h"

#define GOVERNOR "/run/vgpu/governor/"
#define LAYER    "share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json"

static void check_arbiter(Examination *exam, const char *gpu)
{
    g_autofree char *socket = g_strconcat(GOVERNOR, gpu, "/status.sock", NULL);

    if (host_has(exam, socket))
        finding_ok(exam, "arbiter", "the shares of GPU %s have an arbiter", gpu);
    else
        finding_add(exam, FINDING_WARNING, "arbiter",
                    g_strdup_printf("GPU %s is shared and has no arbiter: its vGPUs' memory and "
                                    "shares are not enforced",
                                    gpu),
                    g_strdup_printf("systemctl start vgpud, which starts vgpu-arbiter@%s; if it "
                                    "does not, that unit's journal has the reason",
                                    gpu));
}

void check_arbiters(Examination *exam)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);
    gboolean any = FALSE;

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu->mode != GPU_MODE_SHARED)
            continue;
        check_arbiter(exam, gpu->pci->address);
        any = TRUE;
    }
    if (any && !host_has(exam, "/usr/" LAYER) && !host_has(exam, "/usr/local/" LAYER))
        finding_add(exam, FINDING_WARNING, "arbiter",
                    g_strdup("the governor's Vulkan layer is not installed: engines do not follow "
                             "the arbiter"),
                    g_strdup("reinstall mdev-vgpu's governor (/usr/" LAYER ")"));
}
