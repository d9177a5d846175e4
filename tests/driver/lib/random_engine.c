/* SPDX-License-Identifier: MIT */
/* An engine's possible actions: its work, the same with wrong values, and dying. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random_world.h"

#define AREAS     8
#define AREA_SIZE (64 * PAGE_BYTES)
#define PINS      8
#define TOKENS    16

/* In the engine's process. */
static struct {
    uint64_t area[AREAS];
    uint64_t pin[PINS];
    uint64_t pin_addr[PINS];
    uint64_t pin_size[PINS];
    uint32_t token[TOKENS];
} own;

/* The numbers that a call needs are drawn in the test's process, so that a seed is reproducible. */
typedef struct {
    uint64_t number[4];
    uint32_t choice[8];
    struct vgpu_mem_entry entry[16];
    uint8_t bytes[512];
} Draw;

static void run_in_engine(World *w, EngineCall call)
{
    Draw draw;

    if (!w->engine)
        return;
    for (unsigned i = 0; i < G_N_ELEMENTS(draw.number); i++)
        draw.number[i] = odd_number(w);
    for (unsigned i = 0; i < G_N_ELEMENTS(draw.choice); i++)
        draw.choice[i] = g_rand_int(w->rand);
    for (unsigned i = 0; i < G_N_ELEMENTS(draw.entry); i++)
        draw.entry[i] = (struct vgpu_mem_entry){odd_iova(w), (1 + below(w, 32)) * PAGE_BYTES};
    random_bytes(w, draw.bytes, sizeof(draw.bytes));
    if (engine_peer_call(w->engine, call, &draw, sizeof(draw)) == -EPIPE)
        g_error("the engine died by itself");
}

static uint64_t draw_epoch(EngineCtx *ctx, const Draw *draw)
{
    return draw->choice[7] % 16 ? engine_epoch(ctx) : draw->number[3];
}

static int call_exchange(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    struct vgpu_queue_answer answers[2] = {
        {
            .queue = draw->choice[2] % 16 ? draw->choice[2] & 1 : draw->choice[2],
            .token = draw->choice[3] % 8 ? own.token[draw->choice[3] % TOKENS] : draw->choice[3],
            .buf = (uintptr_t)(draw->choice[4] % 8 ? ctx->response : NULL),
            .size = draw->choice[5] % 4 ? draw->choice[5] % 2048 : (uint32_t)draw->number[1],
        },
        {.token = own.token[draw->choice[4] % TOKENS]},
    };
    struct vgpu_queue_request requests[4];
    struct vgpu_queue_exchange x = {
        .argsz = draw->choice[0] % 16 ? sizeof(x) : (uint32_t)draw->number[0],
        .flags = draw->choice[1] % 16 ? draw->choice[1] >> 8 & 3 : draw->choice[1],
        .epoch = draw_epoch(ctx, draw),
        .answers = (uintptr_t)(draw->choice[3] % 16 ? answers : NULL),
        .requests = (uintptr_t)(draw->choice[4] % 16 ? requests : NULL),
        .buf = (uintptr_t)(draw->choice[5] % 8 ? ctx->request : NULL),
        .buf_size = draw->choice[4] % 4 ? 4096 : draw->number[1],
        .nanswers = draw->choice[6] % 3,
        .nrequests = draw->choice[6] % 5,
        .queues = draw->choice[2] % 16 ? draw->choice[6] & 3 : draw->choice[2],
        .poll_us = draw->choice[0] % 4 ? 0 : draw->choice[6] % 1024,
    };

    /* A size beyond the buffer would make the driver overwrite our own memory. */
    if (x.buf && x.buf_size > MIB)
        x.buf_size = MIB;
    if (!engine_ioctl(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, &x) && x.nrequests)
        own.token[draw->choice[5] % TOKENS] = requests[0].token;
    return 0;
}

static int new_area(const Draw *draw, void **addr)
{
    bool shared = draw->choice[0] % 8, anonymous = draw->choice[1] % 8 == 0;
    int prot = draw->choice[2] % 8 ? PROT_READ | PROT_WRITE : PROT_READ;
    int fd = anonymous ? -1 : memfd_create("random", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, AREA_SIZE) < 0)
        return -errno;
    *addr = mmap(NULL, AREA_SIZE, prot,
                 (shared ? MAP_SHARED : MAP_PRIVATE) | (anonymous ? MAP_ANONYMOUS : 0), fd, 0);
    if (fd >= 0)
        close(fd);
    return *addr == MAP_FAILED ? -errno : 0;
}

/* A new area in place of an old one, while a guest may still have it mapped. */
static int call_area(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    uint64_t *slot = &own.area[draw->choice[3] % AREAS];
    void *addr;

    (void)ctx;
    if (new_area(draw, &addr))
        return 0;
    if (*slot && draw->choice[4] % 2)
        addr = mremap(addr, AREA_SIZE, AREA_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
                      (void *)(uintptr_t)*slot);
    else if (*slot)
        munmap((void *)(uintptr_t)*slot, AREA_SIZE);
    *slot = addr == MAP_FAILED ? 0 : (uintptr_t)addr;
    return 0;
}

static int call_disturb_area(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    uint64_t addr = own.area[draw->choice[0] % AREAS];
    void *page =
        (void *)(uintptr_t)(addr + draw->choice[1] % (AREA_SIZE / PAGE_BYTES) * PAGE_BYTES);

    (void)ctx;
    if (!addr)
        return 0;
    switch (draw->choice[2] % 5) {
    case 0:
        madvise(page, PAGE_BYTES, MADV_REMOVE);
        break;
    case 1:
        madvise(page, PAGE_BYTES, MADV_DONTNEED);
        break;
    case 2:
        mprotect(page, PAGE_BYTES, PROT_READ);
        break;
    case 3:
        mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
        break;
    default:
        madvise(page, PAGE_BYTES, MADV_PAGEOUT);
    }
    return 0;
}

static int call_publish(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    struct vgpu_window_range range = {
        .argsz = draw->choice[0] % 16 ? sizeof(range) : (uint32_t)draw->number[0],
        .flags = draw->choice[1] % 16 ? 0 : draw->choice[1],
        .epoch = draw_epoch(ctx, draw),
        .offset = draw->choice[2] % 8 ? draw->choice[2] % 16 * AREA_SIZE : draw->number[1],
        .size = draw->choice[3] % 8 ? AREA_SIZE : draw->number[2],
        .addr = draw->choice[4] % 8 ? own.area[draw->choice[4] % AREAS] : draw->number[0],
    };

    engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
    return 0;
}

static int call_unpublish(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    struct vgpu_window_range range = {
        .argsz = sizeof(range),
        .epoch = draw_epoch(ctx, draw),
        .offset = draw->choice[2] % 8 ? draw->choice[2] % 16 * AREA_SIZE : draw->number[1],
        .size = draw->choice[3] % 8 ? AREA_SIZE : draw->number[2],
        .addr = draw->choice[4] % 16 ? 0 : draw->number[0],
    };

    engine_ioctl(ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, &range);
    return 0;
}

static void unpin_slot(EngineCtx *ctx, const Draw *draw, unsigned slot)
{
    struct vgpu_mem_unpin unpin = {
        .argsz = sizeof(unpin),
        .epoch = draw_epoch(ctx, draw),
        .offset = draw->choice[6] % 8 ? own.pin[slot] : draw->number[2],
    };

    engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
    if (own.pin_addr[slot] && draw->choice[5] % 2) {
        munmap((void *)(uintptr_t)own.pin_addr[slot], own.pin_size[slot]);
        own.pin_addr[slot] = 0;
    }
}

static int call_pin(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    unsigned slot = draw->choice[0] % PINS;
    struct vgpu_mem_pin pin = {
        .argsz = sizeof(pin),
        .flags = draw->choice[1] % 16 ? draw->choice[1] >> 8 & VGPU_MEM_WRITE : draw->choice[1],
        .epoch = draw_epoch(ctx, draw),
        .entries = (uintptr_t)draw->entry,
        .nentries = draw->choice[2] % 16 ? 1 + draw->choice[2] % 4 : (uint32_t)draw->number[0],
    };
    void *addr;
    int prot = draw->choice[3] % 4 ? PROT_READ | PROT_WRITE : PROT_READ;

    if (own.pin_addr[slot])
        unpin_slot(ctx, draw, slot);
    if (own.pin_addr[slot] || engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &pin))
        return 0;
    own.pin[slot] = pin.offset;
    own.pin_size[slot] = pin.size;
    addr = mmap(NULL, pin.size, prot, MAP_SHARED, ctx->fd, (off_t)pin.offset);
    if (addr == MAP_FAILED)
        return 0;
    own.pin_addr[slot] = (uintptr_t)addr;
    for (uint64_t at = 0; at < pin.size; at += PAGE_BYTES) {
        volatile uint64_t *page = (volatile uint64_t *)((uint8_t *)addr + at);

        (void)*page;
        if (prot & PROT_WRITE)
            page[100] = at;
    }
    return 0;
}

/* Its pins may be gone; touching them must be harmless nevertheless. */
static int call_touch_pin(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    unsigned slot = draw->choice[0] % PINS;

    (void)ctx;
    if (own.pin_addr[slot])
        (void)*(volatile uint8_t *)(uintptr_t)(own.pin_addr[slot] +
                                               draw->choice[1] % own.pin_size[slot]);
    return 0;
}

static int call_unpin(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;

    unpin_slot(ctx, draw, draw->choice[0] % PINS);
    return 0;
}

static int call_mmap(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    uint64_t offset = draw->choice[0] % 2 ? own.pin[draw->choice[1] % PINS] : draw->number[0];
    size_t size = (1 + draw->choice[2] % 64) * PAGE_BYTES;
    void *addr =
        mmap(NULL, size, (int)(draw->choice[3] & 7), draw->choice[4] % 4 ? MAP_SHARED : MAP_PRIVATE,
             ctx->fd, (off_t)(offset & ~(PAGE_BYTES - 1)));

    if (addr == MAP_FAILED)
        return 0;
    if (draw->choice[3] & 1)
        (void)*(volatile uint8_t *)addr;
    munmap(addr, size);
    return 0;
}

/* Half of them are valid. Without a display all are refused. */
static int call_scanout(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    struct vgpu_scanout scanout = {
        .argsz = sizeof(scanout),
        .epoch = draw->choice[0] % 16 ? engine_epoch(ctx) : draw->number[0],
        .width = draw->choice[1] % (VGPU_PICTURE_MAX_WIDTH + 16),
        .height = draw->choice[2] % (VGPU_PICTURE_MAX_HEIGHT + 16),
        .drm_format = 0x34325258,
    };
    struct vgpu_display display = {.argsz = sizeof(display)};

    scanout.stride = 4 * scanout.width;
    if (draw->choice[3] % 4 == 0)
        scanout.stride = (uint32_t)draw->number[1];
    else if (draw->choice[3] % 4 == 1)
        scanout = (struct vgpu_scanout){.argsz = sizeof(scanout), .epoch = scanout.epoch};
    engine_ioctl(ctx, VGPU_ENGINE_SET_SCANOUT, &scanout);
    engine_ioctl(ctx, VGPU_ENGINE_DISPLAY, &display);
    return 0;
}

/* Paints somewhere in the picture, while it has one. */
static int call_paint(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    uint64_t offset = draw->choice[0] % 8 ? 0 : draw->number[0] & ~(PAGE_BYTES - 1);
    size_t size = draw->choice[1] % 4 ? VGPU_PICTURE_SIZE : (1 + draw->choice[1] % 64) * PAGE_BYTES;
    uint8_t *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->fd,
                         (off_t)(VGPU_PICTURE_OFFSET + offset));

    if (addr == MAP_FAILED)
        return 0;
    for (unsigned i = 0; i < 8; i++)
        *(volatile uint32_t *)(addr + draw->choice[i] % (size / 4) * 4) = draw->choice[i];
    munmap(addr, size);
    return 0;
}

/* What it is asked to save, and what was loaded for it; or unasked. */
static int call_state(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    struct vgpu_engine_state state = {
        .argsz = draw->choice[0] % 16 ? sizeof(state) : (uint32_t)draw->number[0],
        .epoch = draw_epoch(ctx, draw),
        .buf = (uintptr_t)(draw->choice[1] % 8 ? draw->bytes : NULL),
        .size = draw->choice[2] % 4 ? draw->choice[2] % sizeof(draw->bytes) : draw->number[1],
    };
    bool save = draw->choice[3] % 2;

    /* A load of more than the buffer has would overwrite our own memory. */
    if (!save)
        state.size = draw->choice[2] % sizeof(draw->bytes);
    engine_ioctl(ctx, save ? VGPU_ENGINE_STATE_SAVE : VGPU_ENGINE_STATE_LOAD, &state);
    return 0;
}

/* Any number, any argument, including RESET_DONE and FAIL. */
static int call_any(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;
    uint32_t *words = (uint32_t *)draw->bytes;
    unsigned size = draw->choice[0] % 8 ? 0 : draw->choice[0] >> 8 & 0x1ff;
    unsigned long request = _IOC(draw->choice[1] & 3, VGPU_IOC_MAGIC, draw->choice[2] % 0x40, size);
    static const unsigned long known[] = {
        VGPU_ENGINE_INFO,       VGPU_ENGINE_ATTACH,   VGPU_ENGINE_READY,
        VGPU_ENGINE_RESET_DONE, VGPU_ENGINE_MEM_PIN,  VGPU_ENGINE_MEM_UNPIN,
        VGPU_ENGINE_FAIL,       VGPU_CONTROL_ADD_GPU, VGPU_ENGINE_WINDOW_PUBLISH,
    };

    if (draw->choice[3] % 4)
        request = known[draw->choice[4] % G_N_ELEMENTS(known)];
    words[0] = draw->choice[5] % 4 ? sizeof(draw->bytes) : (uint32_t)draw->number[0];
    words[1] = draw->choice[5] % 3 ? 0 : words[1];
    /* Its buffers would be any of our addresses. */
    if (_IOC_NR(request) == _IOC_NR(VGPU_ENGINE_QUEUE_EXCHANGE))
        return 0;
    ioctl(ctx->fd, request, draw->choice[6] % 16 ? draw->bytes : NULL);
    return 0;
}

static int call_read(EngineCtx *ctx, void *arg)
{
    Draw *draw = arg;

    if (read(ctx->fd, draw->bytes, draw->choice[0] % sizeof(draw->bytes)) < 0 && errno == ENOTCONN)
        ctx->hung_up = true;
    return 0;
}

static void op_exchange(World *w)
{
    run_in_engine(w, call_exchange);
}
static void op_area(World *w)
{
    run_in_engine(w, call_area);
}
static void op_disturb_area(World *w)
{
    run_in_engine(w, call_disturb_area);
}
static void op_publish(World *w)
{
    run_in_engine(w, call_publish);
}
static void op_unpublish(World *w)
{
    run_in_engine(w, call_unpublish);
}
static void op_pin(World *w)
{
    run_in_engine(w, call_pin);
}
static void op_touch_pin(World *w)
{
    run_in_engine(w, call_touch_pin);
}
static void op_unpin(World *w)
{
    run_in_engine(w, call_unpin);
}
static void op_mmap(World *w)
{
    run_in_engine(w, call_mmap);
}
static void op_scanout(World *w)
{
    run_in_engine(w, call_scanout);
}
static void op_paint(World *w)
{
    run_in_engine(w, call_paint);
}
static void op_engine_state(World *w)
{
    run_in_engine(w, call_state);
}
static void op_any(World *w)
{
    run_in_engine(w, call_any);
}
static void op_read(World *w)
{
    run_in_engine(w, call_read);
}

/* Duties that it neglects from now on. */
static void op_hold(World *w)
{
    if (w->engine)
        atomic_store(&w->engine->state->hold,
                     one_in(w, 4) ? (unsigned)below(w, 32) : below(w, 2) * ENGINE_HOLD_QUEUES);
}

static void op_die(World *w)
{
    if (w->engine && one_in(w, 2))
        engine_peer_kill(w->engine);
    else if (w->engine)
        engine_peer_stop(w->engine);
    w->engine = NULL;
}

/* Beside a living engine it must be refused, unless that one has failed. */
static void op_start(World *w)
{
    EnginePeer *peer;
    int error;

    /* It takes long, and a second run finds little more. */
    if (w->engine && !atomic_load(&w->engine->state->hangups) && !one_in(w, 8))
        return;
    peer = engine_peer_try_start(w->uuid, 0, &error);
    if (!peer && error != -EBUSY)
        g_error("an engine can't start: %s", g_strerror(-error));
    if (!peer)
        return;
    if (w->engine)
        engine_peer_stop(w->engine);
    w->engine = peer;
}

static void op_attribute(World *w)
{
    static const char *const names[] = {"vgpu/vram_bytes", "vgpu/window_bytes", "vgpu/weight",
                                        "vgpu/cap",        "vgpu/priority",     "vgpu/display"};
    g_autofree char *value = g_strdup_printf("%" G_GUINT64_FORMAT, odd_number(w));
    g_autofree char *state = mdev_attr(w->uuid, "vgpu/state");
    g_autofree char *failure = mdev_attr(w->uuid, "vgpu/failure");
    const char *name = names[below(w, G_N_ELEMENTS(names))];

    /* With another size, the operations on the window would miss it. */
    if (!strcmp(name, "vgpu/window_bytes"))
        return;
    mdev_attr_set(w->uuid, name, value);
    if (one_in(w, 2))
        mdev_attr_set(w->uuid, "vgpu/vram_bytes", "67108864");
}

const WorldOp world_engine_ops[] = {
    {"exchange", 48, op_exchange},
    {"area", 8, op_area},
    {"disturb-area", 8, op_disturb_area},
    {"publish", 24, op_publish},
    {"unpublish", 8, op_unpublish},
    {"pin", 12, op_pin},
    {"touch-pin", 12, op_touch_pin},
    {"unpin", 6, op_unpin},
    {"engine-mmap", 6, op_mmap},
    {"scanout", 12, op_scanout},
    {"paint", 8, op_paint},
    {"engine-state", 8, op_engine_state},
    {"engine-ioctl", 16, op_any},
    {"engine-read", 8, op_read},
    {"hold", 8, op_hold},
    {"engine-dies", 3, op_die},
    {"engine-starts", 8, op_start},
    {"attribute", 4, op_attribute},
    {NULL, 0, NULL},
};
