/* SPDX-License-Identifier: MIT */
/* A saved vGPU as bytes: what is written is read again, and what no guest can have done is refused.
 */
#include <glib.h>
#include <string.h>

#include "regs.h"
#include "migration_data.h"

#define WINDOW (1ull << 28)

static const struct vgpu_state_identity here = {
    .window_bytes = WINDOW,
    .vram_bytes = 1ull << 30,
    .features = OFFERED,
    .renderer = 0x1122334455667788,
    .num_scanouts = 1,
    .num_capsets = 2,
};

typedef struct {
    struct vgpu_pci pci;
    struct vgpu_regs regs;
} Device;

static void power_on(Device *device)
{
    memset(device, 0, sizeof(*device));
    vgpu_pci_init(&device->pci, WINDOW, 0x1100);
    vgpu_regs_init(&device->regs, 0, 2);
}

/* A guest whose driver is up, with @next chains taken. */
static void bring_up(Device *device, u16 next)
{
    static const u8 command[2] = {6, 0};

    power_on(device);
    vgpu_pci_write(&device->pci, 4, command, sizeof(command));
    regs_negotiate(&device->regs, OFFERED);
    for (u16 q = 0; q < 2; q++) {
        regs_wr(&device->regs, R_QUEUE_SELECT, q, 2);
        regs_wr(&device->regs, R_QUEUE_VECTOR, q + 1, 2);
        g_assert_cmpuint(regs_enable_queue(&device->regs, q, 64, 0x100000 * (q + 1u)), ==, 1);
    }
    regs_wr(&device->regs, R_CONFIG_VECTOR, 0, 2);
    regs_wr(&device->regs, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK, 1);
    device->regs.vq[0].next_avail = device->regs.vq[0].avail_idx = next;
    device->regs.vq[0].next_used = (u16)(next - 1);
}

static void test_header(void)
{
    struct vgpu_state_identity other = here;
    u8 header[VGPU_STATE_HEADER_SIZE];

    vgpu_state_put_header(header, &here);
    g_assert_null(vgpu_state_check_header(header, &here));
    other.vram_bytes *= 2;
    g_assert_null(vgpu_state_check_header(header, &other));
    other.vram_bytes = here.vram_bytes - 1;
    g_assert_cmpstr(vgpu_state_check_header(header, &other), ==, "it has more memory");
    other = here;
    other.window_bytes *= 2;
    g_assert_cmpstr(vgpu_state_check_header(header, &other), ==, "its window has another size");
    other = here;
    other.renderer++;
    g_assert_nonnull(vgpu_state_check_header(header, &other));
    other = here;
    other.num_scanouts = 0;
    g_assert_nonnull(vgpu_state_check_header(header, &other));
    other = here;
    other.num_capsets++;
    g_assert_nonnull(vgpu_state_check_header(header, &other));
    other = here;
    other.features ^= 1;
    g_assert_nonnull(vgpu_state_check_header(header, &other));
    for (unsigned i = 0; i < 16; i++) {
        header[i] ^= 1;
        g_assert_nonnull(vgpu_state_check_header(header, &here));
        header[i] ^= 1;
    }
}

static void test_device(void)
{
    u8 state[VGPU_STATE_DEVICE_SIZE], again[VGPU_STATE_DEVICE_SIZE];
    Device from, to;
    bool lost = true;

    bring_up(&from, 0xfffe);
    vgpu_regs_raise(&from.regs, true);
    vgpu_state_put_device(state, &from.pci, &from.regs, false);
    power_on(&to);
    g_assert_true(vgpu_state_get_device(state, &to.pci, &to.regs, &lost));
    g_assert_false(lost);
    g_assert_cmpmem(&to.pci, sizeof(to.pci), &from.pci, sizeof(from.pci));
    g_assert_cmpmem(&to.regs, sizeof(to.regs), &from.regs, sizeof(from.regs));
    vgpu_state_put_device(again, &to.pci, &to.regs, true);
    power_on(&to);
    g_assert_true(vgpu_state_get_device(again, &to.pci, &to.regs, &lost));
    g_assert_true(lost);
}

/* The bytes' places, as migration_data.c has them. */
static void check_changed_byte(unsigned offset, u8 value, bool good)
{
    u8 state[VGPU_STATE_DEVICE_SIZE];
    Device from, to;
    bool lost;

    bring_up(&from, 3);
    vgpu_state_put_device(state, &from.pci, &from.regs, false);
    state[offset] = value;
    power_on(&to);
    g_assert_cmpint(vgpu_state_get_device(state, &to.pci, &to.regs, &lost), ==, good);
}

static void test_impossible(void)
{
    const unsigned queue = 32 + VGPU_PCI_CONFIG_SIZE;

    check_changed_byte(3, 0x80, false);       /* a feature that is not offered */
    check_changed_byte(4, 0, false);          /* without VERSION_1 */
    check_changed_byte(16, 1, true);          /* the display has changed */
    check_changed_byte(16, 2, false);         /* another event */
    check_changed_byte(20, 3, false);         /* a vector that the device does not have */
    check_changed_byte(24, 0x0f, true);       /* DRIVER_OK */
    check_changed_byte(24, 0x07, false);      /* without FEATURES_OK */
    check_changed_byte(24, 0x0e, false);      /* without ACKNOWLEDGE */
    check_changed_byte(24, 0x1f, false);      /* an unknown bit */
    check_changed_byte(25, 4, false);         /* of the ISR */
    check_changed_byte(26, 2, false);         /* features that cannot be */
    check_changed_byte(queue, 1, false);      /* rings that are not aligned */
    check_changed_byte(queue + 24, 3, false); /* a size that is no power of two */
    check_changed_byte(queue + 26, 3, false); /* a vector */
    check_changed_byte(queue + 28, 9, true);
    check_changed_byte(queue + 30, 9, true);
    /* Bits of the configuration that a guest cannot change stay. */
    check_changed_byte(32, 0x99, true);
}

static void test_chains(void)
{
    struct vgpu_vq_chain chain = {
        .head = 5,
        .nwrite = 2,
        .header = {1, 2, 3},
        .response_size = 30,
        .write = {{0x1000, 10}, {0x2000, 20}},
    };
    struct vgpu_state_chain found;
    size_t size = vgpu_state_chain_size(&chain, 4);
    g_autofree u8 *state = g_malloc(size);
    Device device;

    bring_up(&device, 3);
    vgpu_state_put_chain(state, 1, &chain, true, "abcd", 4);
    g_assert_cmpuint(vgpu_state_get_chain(state, size, &device.regs, &found), ==, size);
    g_assert_cmpuint(found.queue, ==, 1);
    g_assert_true(found.answered);
    g_assert_cmpmem(found.response, found.response_len, "abcd", 4);
    g_assert_cmpmem(found.chain.header, 24, chain.header, 24);
    g_assert_cmpuint(found.chain.response_size, ==, 30);
    g_assert_cmpuint(found.chain.write[1].iova, ==, 0x2000);
    g_assert_cmphex(device.regs.vq[1].inflight[0], ==, 1ull << 5);
    /* Twice in flight. */
    g_assert_cmpuint(vgpu_state_get_chain(state, size, &device.regs, &found), ==, 0);

    for (size_t left = 0; left < size; left++) {
        bring_up(&device, 3);
        g_assert_cmpuint(vgpu_state_get_chain(state, left, &device.regs, &found), ==, 0);
    }
}

static void refuses_chain(u32 queue, struct vgpu_vq_chain *chain, size_t response, bool up)
{
    size_t size = vgpu_state_chain_size(chain, response);
    g_autofree u8 *state = g_malloc0(size), *text = g_malloc0(response + 1);
    struct vgpu_state_chain found;
    Device device;

    if (up)
        bring_up(&device, 3);
    else
        power_on(&device);
    vgpu_state_put_chain(state, queue, chain, true, text, response);
    g_assert_cmpuint(vgpu_state_get_chain(state, size, &device.regs, &found), ==, 0);
}

static void test_impossible_chains(void)
{
    struct vgpu_vq_chain chain = {.head = 5, .nwrite = 1, .write = {{0x1000, 10}}};

    refuses_chain(2, &chain, 0, true);
    refuses_chain(0, &chain, 11, true);
    refuses_chain(0, &chain, 0, false);
    chain.head = 64;
    refuses_chain(0, &chain, 0, true);
    chain.head = 5;
    chain.write[0].len = 0;
    refuses_chain(0, &chain, 0, true);
    chain.write[0] = (struct vgpu_vq_seg){~0ull - 3, 10};
    refuses_chain(0, &chain, 0, true);
    /* More than the used ring's length can say. */
    chain.nwrite = 2;
    chain.write[0] = (struct vgpu_vq_seg){0x1000, UINT32_MAX};
    chain.write[1] = (struct vgpu_vq_seg){1ull << 33, 1};
    refuses_chain(0, &chain, 0, true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/migration-data/header", test_header);
    g_test_add_func("/migration-data/device", test_device);
    g_test_add_func("/migration-data/impossible", test_impossible);
    g_test_add_func("/migration-data/chains", test_chains);
    g_test_add_func("/migration-data/impossible-chains", test_impossible_chains);
    return g_test_run();
}
