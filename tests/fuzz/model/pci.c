/* SPDX-License-Identifier: MIT */
/* A guest that reads and writes configuration space anywhere. */
#include "input.h"
#include "pci_config.h"

/* Bits that no guest may ever change, from the space as it is at power-on. */
static void check_read_only(const struct vgpu_pci *pci, const struct vgpu_pci *fresh)
{
    INVARIANT(!memcmp(pci->wmask, fresh->wmask, sizeof(pci->wmask)));
    INVARIANT(pci->window_bytes == fresh->window_bytes);
    for (size_t i = 0; i < VGPU_PCI_CONFIG_SIZE; i++)
        INVARIANT(!((pci->config[i] ^ fresh->config[i]) & ~fresh->wmask[i]));
}

static u64 take_offset(struct input *in)
{
    u8 kind = take8(in);

    if (kind < 0xf0)
        return take8(in);
    return kind < 0xf8 ? take16(in) : (u64)0 - take8(in);
}

static void check_read(const struct vgpu_pci *pci, u64 offset, size_t len)
{
    u8 *buf = malloc(len); /* of the very size, so that ASan sees one byte more */

    if (!buf)
        return;
    memset(buf, 0x5a, len);
    vgpu_pci_read(pci, offset, buf, len);
    for (size_t i = 0; i < len; i++) {
        bool inside = offset < VGPU_PCI_CONFIG_SIZE && offset + i < VGPU_PCI_CONFIG_SIZE;

        INVARIANT(buf[i] == (inside ? pci->config[offset + i] : 0xff));
    }
    free(buf);
}

/* What is taken for an access to a BAR has its data in config space, in bytes that the guest may
 * change. */
static void check_cfg_access(struct vgpu_pci *pci, const struct vgpu_pci *fresh, u64 offset,
                             size_t len)
{
    struct vgpu_pci_cfg_access access;

    if (!vgpu_pci_cfg_access(pci, offset, len, &access))
        return;
    INVARIANT(access.len == 1 || access.len == 2 || access.len == 4);
    INVARIANT(access.offset % access.len == 0);
    INVARIANT(access.data >= pci->config);
    INVARIANT(access.data + access.len <= pci->config + sizeof(pci->config));
    memset(access.data, 0x5a, access.len);
    check_read_only(pci, fresh);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = {data, size};
    struct vgpu_pci pci, fresh;
    u8 buf[32];

    vgpu_pci_init(&pci, 1ULL << (20 + take8(&in) % 17), take16(&in));
    fresh = pci;
    while (in.left) {
        u8 op = take8(&in);
        u64 offset = take_offset(&in);
        size_t len = 1 + op / 4 % sizeof(buf);

        if (op % 4 == 3) {
            vgpu_pci_reset(&pci);
            INVARIANT(!memcmp(&pci, &fresh, sizeof(pci)));
        } else if (op % 4) {
            take_bytes(&in, buf, len);
            vgpu_pci_write(&pci, offset, buf, len);
            check_read_only(&pci, &fresh);
            INVARIANT(vgpu_pci_bus_master(&pci) == !!(pci.config[4] & 4));
        } else {
            check_read(&pci, offset, len);
        }
        if (op % 4 != 3)
            check_cfg_access(&pci, &fresh, offset, len);
    }
    return 0;
}
