/* SPDX-License-Identifier: MIT */
/* Arguments of the driver's own ioctls, as any program with the node could give them. */
#include "input.h"
#include "uapi_check.h"

#define MAX_TYPES   4
#define MAX_ENTRIES 8
#define TASK_SIZE   0x7ffffffff000ull

typedef unsigned __int128 u128;

/* Numbers near the borders, where sums go wrong. */
static u64 take_number(struct input *in)
{
    u8 kind = take8(in);
    u64 small = take16(in);

    switch (kind % 6) {
    case 0:
        return small;
    case 1:
        return small * VGPU_PAGE_SIZE;
    case 2:
        return 1ull << (small % 64);
    case 3:
        return (u64)0 - small * VGPU_PAGE_SIZE;
    case 4:
        return TASK_SIZE - small * VGPU_PAGE_SIZE;
    default:
        return (u64)take16(in) << 48 | (u64)take16(in) << 32 | (u64)take16(in) << 16 | small;
    }
}

static bool ends_within(const char *text, size_t size)
{
    return memchr(text, 0, size);
}

static void check_range(struct input *in)
{
    struct vgpu_window_range range = {
        .offset = take_number(in), .size = take_number(in), .addr = take_number(in)};
    u64 window = 1ull << (20 + take8(in) % 17);
    bool inside =
        (u128)range.offset + range.size <= window && (u128)range.addr + range.size <= TASK_SIZE;
    bool aligned = !((range.offset | range.size | range.addr) % VGPU_PAGE_SIZE);

    INVARIANT(!vgpu_check_window_range(&range, window, TASK_SIZE) ==
              (inside && aligned && range.size));
}

static void check_entries(struct input *in)
{
    struct vgpu_mem_entry entry[MAX_ENTRIES];
    u32 n = take8(in) % (MAX_ENTRIES + 1);
    bool aligned = n, inside = true;
    u64 pages = 0;
    u128 sum = 0;
    int ret;

    for (u32 i = 0; i < n; i++) {
        entry[i] = (struct vgpu_mem_entry){take_number(in), take_number(in)};
        aligned &= entry[i].size && !((entry[i].iova | entry[i].size) % VGPU_PAGE_SIZE);
        inside &= (u128)entry[i].iova + entry[i].size < (u128)1 << 64;
        sum += entry[i].size / VGPU_PAGE_SIZE;
    }
    ret = vgpu_check_mem_entries(entry, n, &pages);
    INVARIANT(ret == 0 || ret == -EINVAL || ret == -ENOMEM);
    INVARIANT(!ret == (aligned && inside && sum <= VGPU_MEM_MAX_PAGES));
    INVARIANT(ret || pages == sum);
}

/* Of the very size, so that ASan sees one byte more. */
static void check_types(struct input *in)
{
    u32 n = 1 + take8(in) % MAX_TYPES;
    struct vgpu_type_desc *descs = calloc(n, sizeof(*descs));
    bool good = true;

    if (!descs)
        return;
    for (u32 i = 0; i < n; i++) {
        struct vgpu_type_desc *d = &descs[i];
        u8 how = take8(in);

        *d = (struct vgpu_type_desc){.name = {(char)('a' + i)},
                                     .vram_bytes = take_number(in),
                                     .window_bytes =
                                         how & 16 ? take_number(in) : 1ull << (20 + how / 32),
                                     .weight = take16(in),
                                     .cap = take8(in) % 110,
                                     .priority = take8(in) % 20};
        if (how & 1)
            take_bytes(in, (u8 *)d->name, 1 + take8(in) % sizeof(d->name));
        if (how & 2)
            take_bytes(in, (u8 *)d->description, 1 + take8(in) % sizeof(d->description));
        if (how & 4)
            d->reserved[take8(in) % 6] = take8(in);
        d->scanouts = how / 8 % 4;
        d->cuda = how / 64;
    }
    for (u32 i = 0; i < n; i++) {
        const struct vgpu_type_desc *d = &descs[i];

        good &= ends_within(d->name, sizeof(d->name)) && d->name[0] && d->name[0] != '.' &&
                !strpbrk(d->name, "/%") && ends_within(d->description, sizeof(d->description)) &&
                d->vram_bytes && d->window_bytes >= 1ull << 20 && d->weight && d->cap <= 100 &&
                d->scanouts <= 1 && d->cuda <= 1;
        for (u32 j = 0; good && j < i; j++)
            good &= strcmp(d->name, descs[j].name) != 0;
    }
    /* What is accepted is good; not all that is good here is accepted. */
    INVARIANT(good || vgpu_check_types(descs, n) == -EINVAL);
    free(descs);
}

static void check_gpu(struct input *in)
{
    struct vgpu_control_gpu arg = {.argsz = sizeof(arg),
                                   .ntypes = take8(in),
                                   .type_size = sizeof(struct vgpu_type_desc),
                                   .vram_bytes = take_number(in)};
    struct vgpu_control_remove remove = {.argsz = sizeof(remove)};
    struct vgpu_control_drain drain = {.argsz = sizeof(drain), .flags = take8(in) % 4};
    u8 wrong = take8(in);
    bool good;

    take_bytes(in, (u8 *)arg.gpu, 1 + take8(in) % sizeof(arg.gpu));
    if (take8(in) % 4 == 0)
        memcpy(arg.gpu, VGPU_SOFT_PREFIX, strlen(VGPU_SOFT_PREFIX));
    memcpy(remove.gpu, arg.gpu, sizeof(remove.gpu));
    good = ends_within(arg.gpu, sizeof(arg.gpu));
    INVARIANT(!vgpu_check_remove(&remove) == good);
    memcpy(drain.gpu, arg.gpu, sizeof(drain.gpu));
    INVARIANT(!vgpu_check_drain(&drain) == (good && drain.flags <= VGPU_DRAIN_ON));
    /* Three bits, so that most are right. */
    arg.argsz -= wrong % 8 == 1;
    arg.flags = wrong % 8 == 2;
    arg.reserved[wrong / 8 % 4] = wrong % 8 == 3;
    arg.type_size += wrong % 8 == 4;
    good = good && (wrong % 8 == 0 || wrong % 8 > 4) && arg.gpu[0] && arg.ntypes &&
           arg.ntypes <= VGPU_MAX_TYPES && arg.vram_bytes;
    if (!vgpu_check_gpu(&arg)) {
        INVARIANT(good);
        /* It becomes a directory's name. */
        INVARIANT(strncmp(arg.gpu, VGPU_SOFT_PREFIX, strlen(VGPU_SOFT_PREFIX)) ||
                  (!strchr(arg.gpu, '/') && arg.gpu[strlen(VGPU_SOFT_PREFIX)] != '.'));
    }
}

static void check_scanout(struct input *in)
{
    struct vgpu_scanout scanout = {.argsz = sizeof(scanout)};
    u8 wrong = take8(in);
    u64 end;

    scanout.width = (u32)take_number(in);
    scanout.height = (u32)take_number(in);
    scanout.stride = wrong & 1 ? (u32)take_number(in) : 4 * scanout.width;
    scanout.drm_format = wrong & 2 ? take16(in) : 0x34325258;
    scanout.flags = wrong & 4;
    scanout.reserved[wrong / 16 % 4] = wrong & 8;
    if (vgpu_check_scanout(&scanout))
        return;
    /* What is shown lies in the picture, and what isn't is nothing at all. */
    INVARIANT(!(wrong & 12));
    INVARIANT(!scanout.width == !scanout.height && !scanout.width == !scanout.drm_format);
    end = (u64)scanout.stride * scanout.height;
    INVARIANT(end <= VGPU_PICTURE_SIZE && end == 4ull * scanout.width * scanout.height);
}

static void check_exchange(struct input *in)
{
    struct vgpu_queue_exchange x = {.argsz = sizeof(x) - (take8(in) == 0),
                                    .flags = take8(in) % 16,
                                    .nanswers = take8(in) % 20,
                                    .nrequests = take8(in) % 20,
                                    .queues = take8(in) % 8,
                                    .poll_us = take16(in) % 1100,
                                    .wait_ms = take8(in) % 2,
                                    .wait_fd = take8(in) % 2 - 1};
    struct vgpu_queue_answer answers[VGPU_EXCHANGE_MAX];
    bool good = x.argsz == sizeof(x) && x.flags < 8 && x.queues < 4 && x.poll_us <= 1000 &&
                x.nanswers <= VGPU_EXCHANGE_MAX && x.nrequests <= VGPU_EXCHANGE_MAX &&
                (!x.wait_ms || (x.nrequests && x.flags & VGPU_EXCHANGE_EVENTS)) &&
                (!(x.flags & VGPU_EXCHANGE_CONNECTED) || x.wait_fd >= 0);
    u32 n = x.nanswers % (VGPU_EXCHANGE_MAX + 1);
    u128 sum = 0;

    INVARIANT(!vgpu_check_exchange(&x) == good);
    good = true;
    for (u32 i = 0; i < n; i++) {
        answers[i] =
            (struct vgpu_queue_answer){.queue = take8(in) % 3, .size = (u32)take_number(in)};
        good &= answers[i].queue < VGPU_NUM_QUEUES;
        sum += answers[i].size;
    }
    INVARIANT(!vgpu_check_answers(answers, n) == (good && sum <= VGPU_REQUEST_MAX));
}

static void check_text(struct input *in)
{
    size_t size = 1 + take8(in) % VGPU_REASON_LEN;
    char *text = malloc(size);
    bool good;

    if (!text)
        return;
    take_bytes(in, (u8 *)text, size);
    good = ends_within(text, size);
    for (size_t i = 0; good && text[i]; i++)
        good = text[i] >= 0x20 && text[i] < 0x7f;
    INVARIANT(vgpu_text_ok(text, size) == good);
    free(text);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = {data, size};

    while (in.left) {
        u8 what = take8(&in);

        if (what >= 245 && what < 250) {
            check_exchange(&in);
            continue;
        }
        if (what >= 250) {
            check_scanout(&in);
            continue;
        }
        switch (what % 5) {
        case 0:
            check_range(&in);
            break;
        case 1:
            check_entries(&in);
            break;
        case 2:
            check_types(&in);
            break;
        case 3:
            check_gpu(&in);
            break;
        default:
            check_text(&in);
        }
    }
    return 0;
}
