/* SPDX-License-Identifier: MIT */
/* A VMM that reads and writes the EDID region anywhere. */
#include "edid.h"
#include "input.h"

static u64 take_offset(struct input *in)
{
    u8 kind = take8(in);

    if (kind < 0x80)
        return kind % 32;
    if (kind < 0xf8)
        return take16(in) % (VGPU_EDID_REGION_SIZE + 16);
    return (u64)0 - take8(in);
}

static void check_described(const struct vgpu_edid *edid)
{
    struct vgpu_display display;

    memset(&display, 0xa5, sizeof(display));
    vgpu_edid_describe(edid, &display);
    INVARIANT(display.edid_size <= VGPU_EDID_MAX_SIZE && display.state <= 1);
    INVARIANT(display.max_width * display.max_height * 4ull <= VGPU_PICTURE_SIZE);
    INVARIANT(!memcmp(display.edid, edid->blob, display.edid_size));
    for (u32 i = display.edid_size; i < VGPU_EDID_MAX_SIZE; i++)
        INVARIANT(!display.edid[i]);
}

static void check_read(const struct vgpu_edid *edid, u64 offset, size_t len)
{
    u8 *buf = malloc(len); /* of the very size, so that ASan sees one byte more */

    if (!buf)
        return;
    memset(buf, 0x5a, len);
    vgpu_edid_read(edid, offset, buf, len);
    for (size_t i = 0; i < len; i++)
        if (offset >= VGPU_EDID_REGION_SIZE)
            INVARIANT(!buf[i]);
    free(buf);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = {data, size};
    struct vgpu_edid edid, before;
    u8 buf[32];

    vgpu_edid_init(&edid);
    while (in.left) {
        u8 op = take8(&in);
        u64 offset = take_offset(&in);
        size_t len = 1 + op / 4 % sizeof(buf);

        if (op % 4) {
            bool tell;

            take_bytes(&in, buf, len);
            before = edid;
            tell = vgpu_edid_write(&edid, offset, buf, len);
            /* The guest hears of what it can see, and of nothing while the monitor stays off. */
            INVARIANT(!tell || !before.down || !edid.down);
            INVARIANT(tell || before.down == edid.down);
        } else {
            check_read(&edid, offset, len);
        }
        check_described(&edid);
    }
    return 0;
}
