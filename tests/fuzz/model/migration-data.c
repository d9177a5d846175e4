/* SPDX-License-Identifier: MIT */
/* A saved vGPU that somebody has made up. What is accepted, a guest could have done; and it is read
 * as it was written. */
#include "input.h"
#include "migration_data.h"

static void check_regs(const struct vgpu_regs *r)
{
    if (vgpu_regs_driver_ok(r))
        INVARIANT((r->status & 11) == 11 && !(r->driver_features & ~r->device_features));
    for (unsigned q = 0; q < VGPU_REGS_NUM_QUEUES; q++)
        INVARIANT(!r->vq[q].enabled || vgpu_vq_valid(&r->vq[q]));
}

static void take_chains(struct input *in, struct vgpu_regs *regs)
{
    struct vgpu_state_chain chain;
    u8 again[4096];
    size_t size;

    while ((size = vgpu_state_get_chain(in->data, in->left, regs, &chain))) {
        INVARIANT(size <= in->left && chain.queue < VGPU_REGS_NUM_QUEUES);
        INVARIANT(chain.chain.head < regs->vq[chain.queue].size);
        INVARIANT(chain.response_len <= chain.chain.response_size);
        INVARIANT(chain.chain.response_size <= UINT32_MAX);
        if (size <= sizeof(again)) {
            INVARIANT(vgpu_state_chain_size(&chain.chain, chain.response_len) == size);
            vgpu_state_put_chain(again, chain.queue, &chain.chain, chain.answered, chain.response,
                                 chain.response_len);
            INVARIANT(again[0] == chain.queue);
        }
        in->data += size;
        in->left -= size;
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    /* A guest whose driver is up; the input changes bytes of it. */
    static const u8 up[32] = {0x19, 0, 0, 0x30, 3, [20] = 0xff, 0xff, [24] = 15};
    struct vgpu_state_identity here = {.window_bytes = 1 << 20};
    u8 header[VGPU_STATE_HEADER_SIZE], device[VGPU_STATE_DEVICE_SIZE] = {0},
                                       again[VGPU_STATE_DEVICE_SIZE];
    struct input in = {data, size};
    struct vgpu_regs regs;
    struct vgpu_pci pci;
    bool lost;

    if (take8(&in) & 1) {
        take_bytes(&in, header, sizeof(header));
        INVARIANT(vgpu_state_check_header(header, &here) || !memcmp(header, "vgpu-st", 8));
        return 0;
    }
    memcpy(device, up, sizeof(up));
    for (unsigned q = 0; q < VGPU_REGS_NUM_QUEUES; q++)
        memcpy(device + 32 + VGPU_PCI_CONFIG_SIZE + 32 * q + 24, (u8[]){64, 0x80, 0xff, 0xff}, 4);
    for (u8 n = take8(&in) % 16; n; n--) {
        u16 at = take16(&in) % sizeof(device);

        device[at] = take8(&in);
    }
    vgpu_pci_init(&pci, here.window_bytes, 0x1100);
    vgpu_regs_init(&regs, 0, 1);
    if (!vgpu_state_get_device(device, &pci, &regs, &lost))
        return 0;
    check_regs(&regs);
    vgpu_state_put_device(again, &pci, &regs, lost);
    INVARIANT(!memcmp(again, device, 20) &&
              !memcmp(again + 32 + VGPU_PCI_CONFIG_SIZE, device + 32 + VGPU_PCI_CONFIG_SIZE, 64));
    take_chains(&in, &regs);
    return 0;
}
