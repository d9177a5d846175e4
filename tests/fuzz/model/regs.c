/* SPDX-License-Identifier: MIT */
/* A guest that reads and writes the registers of BAR 0 anywhere and in any order. */
#include "input.h"
#include "virtio_regs.h"

#define NO_VECTOR 0xffff

static bool vector_valid(u16 vector)
{
    return vector < 3 || vector == NO_VECTOR;
}

static void check_state(const struct vgpu_regs *r)
{
    bool features_ok = r->status & 8;

    INVARIANT(vector_valid(r->config_vector));
    if (features_ok) {
        INVARIANT((r->status & 3) == 3);
        INVARIANT(!(r->driver_features & ~r->device_features));
        INVARIANT((r->driver_features >> 32) == 3);
    }
    if (vgpu_regs_driver_ok(r))
        INVARIANT(features_ok);
    for (unsigned q = 0; q < VGPU_REGS_NUM_QUEUES; q++) {
        const struct vgpu_vq *vq = &r->vq[q];

        INVARIANT(vector_valid(vq->vector));
        if (vq->enabled)
            INVARIANT(features_ok && vgpu_vq_valid(vq));
        INVARIANT(!vq->broken && !vq->next_avail && !vq->next_used);
    }
}

static void check_effects(const struct vgpu_regs *r, const struct vgpu_regs *before, u32 effects)
{
    for (unsigned q = 0; q < VGPU_REGS_NUM_QUEUES; q++) {
        if (effects & VGPU_EFFECT_KICK(q))
            INVARIANT(vgpu_regs_driver_ok(r) && r->vq[q].enabled);
        /* What runs stays as it is. */
        if (before->vq[q].enabled)
            INVARIANT(r->vq[q].enabled && r->vq[q].desc == before->vq[q].desc &&
                      r->vq[q].avail == before->vq[q].avail &&
                      r->vq[q].used == before->vq[q].used && r->vq[q].size == before->vq[q].size);
    }
    if (before->status & 8)
        INVARIANT(r->driver_features == before->driver_features);
    INVARIANT(!(before->status & ~r->status));
    INVARIANT(!(effects & VGPU_EFFECT_DRIVER_OK) ==
              (vgpu_regs_driver_ok(r) == vgpu_regs_driver_ok(before)));
    INVARIANT(!(effects & ~(VGPU_EFFECT_RESET | VGPU_EFFECT_DRIVER_OK | VGPU_EFFECT_KICK(0) |
                            VGPU_EFFECT_KICK(1))));
}

/* Two bits for the section, six for the place in it; or, seldom, anything. */
static u64 take_offset(struct input *in)
{
    u8 place = take8(in);

    if (place == 0xff)
        return (u64)take16(in) << 48 | take16(in);
    return (u64)(place >> 6) * VGPU_REGS_SECTION + (place & 0x3f);
}

static void write_register(struct vgpu_regs *r, struct input *in, size_t len)
{
    struct vgpu_regs before = *r;
    u64 offset = take_offset(in);
    u8 buf[16];
    u32 effects;

    take_bytes(in, buf, len);
    effects = vgpu_regs_write(r, offset, buf, len);
    check_effects(r, &before, effects);
    if (effects & VGPU_EFFECT_RESET) {
        INVARIANT(!memcmp(r, &before, sizeof(before)));
        vgpu_regs_reset(r);
        INVARIANT(!r->status);
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    static const u8 widths[] = {1, 2, 4, 8, 0, 3, 9, 16};
    struct input in = {data, size};
    struct vgpu_regs r;
    u8 buf[16];

    memset(&r, 0, sizeof(r)); /* padding too, for the comparison */
    vgpu_regs_init(&r, take8(&in), take8(&in));
    while (in.left) {
        u8 op = take8(&in);
        size_t len = widths[op >> 5];

        if (op % 8 == 7)
            vgpu_regs_needs_reset(&r);
        else if (op % 8 == 6)
            vgpu_regs_raise(&r, op & 8);
        else if (op % 8 == 5)
            vgpu_regs_read(&r, take_offset(&in), buf, len);
        else
            write_register(&r, &in, len);
        check_state(&r);
    }
    return 0;
}
