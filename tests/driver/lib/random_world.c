/* SPDX-License-Identifier: MIT */
/* The world that t-random disturbs: its numbers, its threads, its beginning and end. */
#include "random_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

uint64_t odd_number(World *w)
{
    static const uint64_t borders[] = {
        0,        1,        0xff,       0x100,      0xfff,      0x1000,     0xffff,     0x10000,
        0x3fffff, MIB * 32, UINT32_MAX, 1ull << 32, 1ull << 44, 1ull << 63, UINT64_MAX,
    };
    uint64_t border = borders[below(w, G_N_ELEMENTS(borders))];

    switch (below(w, 4)) {
    case 0:
        return below(w, 4096);
    case 1:
        return (uint64_t)g_rand_int(w->rand) << 32 | g_rand_int(w->rand);
    default:
        return border + below(w, 5) - 2;
    }
}

uint64_t odd_iova(World *w)
{
    if (one_in(w, 8))
        return odd_number(w) & ~(PAGE_BYTES - 1);
    return WORLD_RAM_IOVA + below(w, WORLD_RAM_SIZE / PAGE_BYTES + 4) * PAGE_BYTES;
}

void random_bytes(World *w, void *buf, size_t size)
{
    uint8_t *bytes = buf;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)g_rand_int(w->rand);
}

/* Not the world's numbers, because threads do not share them. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *mutate_ram(void *data)
{
    World *w = data;
    uint32_t state = 1;

    while (!atomic_load(&w->stop)) {
        for (unsigned i = 0; atomic_load(&w->mutate) && i < 64; i++) {
            volatile uint16_t *at =
                (volatile uint16_t *)(w->ram.mem + (next_random(&state) % WORLD_RINGS_SIZE & ~1u));

            /* Small numbers make chains that are nearly right. */
            *at = (uint16_t)(next_random(&state) % 4 ? next_random(&state) % 64
                                                     : next_random(&state));
        }
        g_usleep(200);
    }
    return NULL;
}

static void *touch_window(void *data)
{
    World *w = data;
    uint32_t state = 2;

    while (!atomic_load(&w->stop)) {
        pthread_mutex_lock(&w->touch);
        for (unsigned i = 0; w->mapping[0].addr && i < 16; i++) {
            volatile uint32_t *at =
                (volatile uint32_t *)((uint8_t *)w->mapping[0].addr +
                                      next_random(&state) % (w->mapping[0].size / PAGE_BYTES) *
                                          PAGE_BYTES);

            if (next_random(&state) % 2)
                *at = state;
            else
                (void)*at;
        }
        pthread_mutex_unlock(&w->touch);
        g_usleep(500);
    }
    return NULL;
}

World *world_new(uint32_t seed)
{
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    World *w = g_new0(World, 1);

    w->rand = g_rand_new_with_seed(seed);
    type.scanouts = below(w, 2);
    w->uuid = mdev_uuid_new();
    w->state_fd = -1;
    w->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_ok(mdev_gpu_add(TESTBED_GPU, TESTBED_GPU_VRAM, &type, 1));
    assert_ok(mdev_create(TESTBED_GPU, TESTBED_TYPE, w->uuid));
    assert_ok(vmm_ram_new(&w->ram, WORLD_RAM_SIZE, WORLD_RAM_IOVA));
    pthread_mutex_init(&w->touch, NULL);
    pthread_create(&w->mutator, NULL, mutate_ram, w);
    pthread_create(&w->toucher, NULL, touch_window, w);
    return w;
}

void world_free(World *w)
{
    atomic_store(&w->stop, true);
    pthread_join(w->mutator, NULL);
    pthread_join(w->toucher, NULL);
    if (w->vmm_open)
        world_close_vmm(w);
    if (w->engine)
        engine_peer_stop(w->engine);
    vmm_ram_free(&w->ram);
    close(w->eventfd);
    close(w->state_fd);
    g_rand_free(w->rand);
    g_free(w->uuid);
    g_free(w);
}
