/* SPDX-License-Identifier: MIT */
/*
 * Memory of the physical GPU's own DRM device in the window: the vGPU of that GPU may show it, a
 * vGPU of another GPU may not. Needs a PCI display function whose driver is virtio-gpu. That driver
 * stays loaded, because it warns by itself when it is unloaded.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm/drm.h>
#include <drm/drm_mode.h>

#include "testbed.h"

#define DRM_CLASS "/sys/class/drm"
#define WIDTH     64
#define SIZE      (16 * PAGE_BYTES)

/* "cardN" whose device is a PCI function, and the function's address. */
static char *find_card(char **gpu)
{
    g_autoptr(GDir) dir = g_dir_open(DRM_CLASS, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename(DRM_CLASS, name, "device", NULL);
        g_autofree char *target = g_file_read_link(link, NULL);

        if (!g_str_has_prefix(name, "card") || strchr(name, '-') || !target)
            continue;
        *gpu = g_path_get_basename(target);
        return g_strdup(name);
    }
    return NULL;
}

static char *require_card(char **gpu)
{
    const char *const argv[] = {"modprobe", "virtio_gpu", NULL};
    char *card = NULL;

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    if (!wait_until((card = find_card(gpu)) != NULL, 5000))
        driver_test_skip("no DRM device of a PCI GPU here (rig up --gpu soft --gpus 1)");
    return card;
}

typedef struct {
    char card[32];
    uint64_t addr;
} DumbCall;

/* A dumb buffer, mapped and filled with the pattern. */
static int call_dumb(EngineCtx *ctx, void *arg)
{
    DumbCall *call = arg;
    g_autofree char *node = g_build_filename("/dev/dri", call->card, NULL);
    struct drm_mode_create_dumb create = {.width = WIDTH, .height = SIZE / WIDTH / 4, .bpp = 32};
    struct drm_mode_map_dumb map = {0};
    int fd = open(node, O_RDWR | O_CLOEXEC);
    uint32_t *words;

    (void)ctx;
    if (fd < 0 || ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &create) < 0)
        return -errno;
    map.handle = create.handle;
    if (ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &map) < 0)
        return -errno;
    words = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)map.offset);
    if (words == MAP_FAILED)
        return -errno;
    for (uint64_t i = 0; i < SIZE / 4; i++)
        words[i] = memory_pattern(i / 1024, i % 1024);
    call->addr = (uintptr_t)words;
    return 0;
}

static uint64_t dumb_buffer(Testbed *tb, const char *card)
{
    DumbCall call = {0};

    g_strlcpy(call.card, card, sizeof(call.card));
    assert_ok(engine_peer_call(tb->engine, call_dumb, &call, sizeof(call)));
    return call.addr;
}

/* Open files of the card, as its driver lists them: a line each, and a heading. */
static unsigned count_clients(const char *card)
{
    g_autofree char *path =
        g_strdup_printf("/sys/kernel/debug/dri/%s/clients", card + strlen("card"));
    g_autofree char *text = NULL;
    unsigned lines = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

static void test_own_gpu(void)
{
    struct vgpu_type_desc type = mdev_type(TESTBED_TYPE, TESTBED_VRAM, TESTBED_WINDOW);
    g_autofree char *gpu = NULL;
    g_autofree char *card = require_card(&gpu);
    unsigned clients;
    Testbed *tb;
    uint64_t addr;

    clients = count_clients(card);
    assert_ok(mdev_gpu_add(gpu, TESTBED_GPU_VRAM, &type, 1));
    tb = testbed_new_on(gpu, TESTBED_TYPE, TESTBED_AT_GUEST);
    testbed_window(tb);
    addr = dumb_buffer(tb, card);
    assert_ok(peer_publish(tb->engine, MIB, SIZE, addr));
    for (uint64_t page = 0; page < SIZE / PAGE_BYTES; page++)
        assert_window_pattern(tb, MIB + page * PAGE_BYTES, page);
    assert_ok(peer_munmap(tb->engine, addr, 8 * PAGE_BYTES));
    assert_window_blank(tb, MIB);
    assert_window_pattern(tb, MIB + 8 * PAGE_BYTES, 8);
    /* Device memory is removed with its engine, at once. */
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    assert_answered_with_error(tb, 1);
    assert_window_blank(tb, MIB + 8 * PAGE_BYTES);
    /* And all that its client of the GPU had, though the guest has not reset the device. */
    g_assert_true(wait_until(count_clients(card) == clients, GUEST_TIMEOUT_MS));
    testbed_free(tb);
    assert_ok(mdev_gpu_remove(gpu));
}

static void test_other_gpu(void)
{
    g_autofree char *gpu = NULL;
    g_autofree char *card = require_card(&gpu);
    Testbed *tb = testbed_new(TESTBED_AT_GUEST);

    assert_fails(peer_publish(tb->engine, 0, SIZE, dumb_buffer(tb, card)), EACCES);
    assert_window_blank(tb, 0);
    testbed_free(tb);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/drm/own-gpu", test_own_gpu);
    driver_test_add("/drm/other-gpu", test_other_gpu);
    return driver_test_run();
}
