/* SPDX-License-Identifier: MIT */
/*
 * An engine that an attacker owns: every call with wrong values, memory that no guest may see, by
 * processes that are not the engine, several at once, while the VM goes away. It must not affect
 * more than its own vGPU, and its own memory.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forbidden_memory.h"
#include "testbed.h"

#define SIZE (16 * PAGE_BYTES)

/* Every call of the engine, with a size and a place for wrong flags. */
static const struct {
    const char *name;
    unsigned long request;
    size_t size;
} calls[] = {
    {"info", VGPU_ENGINE_INFO, sizeof(struct vgpu_engine_info)},
    {"ready", VGPU_ENGINE_READY, sizeof(struct vgpu_engine_ready)},
    {"reset-done", VGPU_ENGINE_RESET_DONE, sizeof(struct vgpu_engine_epoch)},
    {"exchange", VGPU_ENGINE_QUEUE_EXCHANGE, sizeof(struct vgpu_queue_exchange)},
    {"pin", VGPU_ENGINE_MEM_PIN, sizeof(struct vgpu_mem_pin)},
    {"unpin", VGPU_ENGINE_MEM_UNPIN, sizeof(struct vgpu_mem_unpin)},
    {"publish", VGPU_ENGINE_WINDOW_PUBLISH, sizeof(struct vgpu_window_range)},
    {"unpublish", VGPU_ENGINE_WINDOW_UNPUBLISH, sizeof(struct vgpu_window_range)},
    {"fail", VGPU_ENGINE_FAIL, sizeof(struct vgpu_engine_fail)},
    {"display", VGPU_ENGINE_DISPLAY, sizeof(struct vgpu_display)},
    {"set-scanout", VGPU_ENGINE_SET_SCANOUT, sizeof(struct vgpu_scanout)},
    {"save", VGPU_ENGINE_STATE_SAVE, sizeof(struct vgpu_engine_state)},
    {"load", VGPU_ENGINE_STATE_LOAD, sizeof(struct vgpu_engine_state)},
};

typedef struct {
    unsigned long request;
    uint64_t pointer; /* 0: the words */
    bool null;
    uint32_t words[128];
} AnyCall;

static int call_any(EngineCtx *ctx, void *arg)
{
    AnyCall *call = arg;
    void *pointer = call->pointer ? (void *)(uintptr_t)call->pointer : call->words;

    return engine_ioctl(ctx, call->request, call->null ? NULL : pointer);
}

static int any_call(Testbed *tb, AnyCall *call)
{
    return engine_peer_call(tb->engine, call_any, call, sizeof(*call));
}

static void assert_refused(Testbed *tb, const char *name, const char *what, AnyCall *call,
                           int error)
{
    int ret = any_call(tb, call);

    if (ret != -error)
        g_error("%s with %s: %s, not %s", name, what, ret ? g_strerror(-ret) : "success",
                g_strerror(error));
}

/* argsz, flags and pointers of every call. */
static void test_arguments(void)
{
    static const uint64_t pointers[] = {1, 0xfffffffffffff000, 0xffff888000000000,
                                        0x00007ffffffff000, 0x8000000000000000};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        AnyCall call = {.request = calls[i].request};

        for (uint32_t argsz = 0; argsz < calls[i].size; argsz += 4) {
            call.words[0] = argsz;
            assert_refused(tb, calls[i].name, "argsz too small", &call, EINVAL);
        }
        call.words[0] = (uint32_t)calls[i].size;
        /* An exchange has three flags, no other call has more than two. */
        for (uint32_t flag = calls[i].request == VGPU_ENGINE_QUEUE_EXCHANGE ? 8 : 4; flag;
             flag <<= 1) {
            call.words[1] = flag;
            assert_refused(tb, calls[i].name, "an unknown flag", &call, EINVAL);
        }
        call.null = true;
        assert_refused(tb, calls[i].name, "no argument", &call, EFAULT);
        call.null = false;
        for (size_t p = 0; p < G_N_ELEMENTS(pointers); p++) {
            call.pointer = pointers[p];
            assert_refused(tb, calls[i].name, "a wild pointer", &call, EFAULT);
        }
    }
    assert_round_trip(tb, 1);
}

static void test_unknown_calls(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned nr = 0; nr < 256; nr++) {
        AnyCall call = {.request = _IOC(_IOC_READ | _IOC_WRITE, VGPU_IOC_MAGIC, nr, 4)};

        assert_refused(tb, "an unknown call", "", &call, ENOTTY);
        call.request = _IO('V', nr);
        assert_refused(tb, "a call of others", "", &call, ENOTTY);
    }
    assert_round_trip(tb, 1);
}

typedef struct {
    uint64_t offset;
    uint64_t size;
    int32_t prot;
    int32_t flags;
} MmapCall;

static int call_mmap(EngineCtx *ctx, void *arg)
{
    MmapCall *call = arg;
    void *addr = mmap(NULL, call->size, call->prot, call->flags, ctx->fd, (off_t)call->offset);

    return addr == MAP_FAILED ? -errno : 0;
}

/* The engine's file maps its pins, and nothing else: no window, no other vGPU's memory. */
static void test_mmap(void)
{
    static const uint64_t offsets[] = {
        0,
        PAGE_BYTES,
        TESTBED_WINDOW,
        1ull << 40,
        2ull << 40,
        1ull << 43,
        1ull << 44,
        (1ull << 44) - PAGE_BYTES,
        1ull << 62,
        INT64_MAX & ~(PAGE_BYTES - 1),
    };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 4 * MIB, 4 * PAGE_BYTES};
    MmapCall call = {.size = PAGE_BYTES, .prot = PROT_READ, .flags = MAP_SHARED};
    uint64_t offset;

    for (size_t i = 0; i < G_N_ELEMENTS(offsets); i++) {
        call.offset = offsets[i];
        g_assert_cmpint(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)), <, 0);
    }
    assert_ok(peer_pin(tb->engine, &entry, 1, 0, &offset, NULL));
    call.offset = offset + 4 * PAGE_BYTES;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)), EINVAL);
    call.offset = offset + PAGE_BYTES;
    call.size = 4 * PAGE_BYTES;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)), EINVAL);
    call.size = PAGE_BYTES;
    assert_ok(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)));
    call.flags = MAP_PRIVATE;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)), EINVAL);
    call.flags = MAP_SHARED;
    call.prot = PROT_READ | PROT_WRITE;
    assert_fails(engine_peer_call(tb->engine, call_mmap, &call, sizeof(call)), EACCES);
}

/* False if this kernel has no such memory. */
static bool map_forbidden(Testbed *tb, const ForbiddenMemory *kind, uint64_t *addr)
{
    int ret = peer_map_forbidden(tb->engine, kind, SIZE, addr);

    if (ret == -ENOSYS) {
        g_printerr("# this kernel has no %s\n", kind->name);
        return false;
    }
    assert_ok(ret);
    return true;
}

static void test_forbidden(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (const ForbiddenMemory *kind = forbidden_memory; kind->name; kind++) {
        uint64_t addr = 0;
        int ret;

        if (!map_forbidden(tb, kind, &addr))
            continue;
        ret = peer_publish(tb->engine, 0, SIZE, addr);
        if (ret != -EACCES)
            g_error("%s: %s", kind->name, ret ? g_strerror(-ret) : "was published");
    }
    assert_window_blank(tb, 0);
    assert_round_trip(tb, 1);
}

/* The same, in place of published memory, before and after the guest looked. */
static void check_replaced(bool looked)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (const ForbiddenMemory *kind = forbidden_memory; kind->name; kind++) {
        uint64_t addr;

        assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &addr));
        assert_ok(peer_publish(tb->engine, 0, SIZE, addr));
        if (looked)
            assert_window_pattern(tb, 0, 0);
        if (map_forbidden(tb, kind, &addr) && !window_is_blank(tb, 0))
            g_error("%s: the guest sees it", kind->name);
        assert_ok(peer_unpublish(tb->engine, 0, SIZE));
    }
    assert_round_trip(tb, 1);
}

static void test_replaced(void)
{
    check_replaced(true);
}

static void test_replaced_unseen(void)
{
    check_replaced(false);
}

/* An engine that is another vGPU's VMM cannot pass that one's window on. */
static void test_other_window(void)
{
    g_autoptr(Testbed) victim = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) tb = testbed_new_on(TESTBED_GPU, TESTBED_TYPE, TESTBED_AT_VGPU);
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);
    struct vgpu_engine_ready ready = {.argsz = sizeof(ready), .num_capsets = 1};
    struct vgpu_window_range range = {.argsz = sizeof(range), .size = PAGE_BYTES};
    EngineState state = {0};
    EngineCtx self = {.state = &state};
    uint64_t addr;

    assert_ok(peer_alloc(victim->engine, MEMORY_MEMFD, PAGE_BYTES, &addr));
    assert_ok(peer_publish(victim->engine, 0, PAGE_BYTES, addr));
    assert_window_pattern(victim, 0, 0);

    self.fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    assert_ok(engine_ioctl(&self, VGPU_ENGINE_ATTACH, NULL));
    assert_ok(engine_ioctl(&self, VGPU_ENGINE_READY, &ready));
    tb->stage = TESTBED_AT_ENGINE;
    testbed_advance(tb, TESTBED_AT_GUEST);
    range.epoch = engine_epoch(&self);
    range.addr = (uintptr_t)testbed_window(victim);
    assert_fails(engine_ioctl(&self, VGPU_ENGINE_WINDOW_PUBLISH, &range), EACCES);
    assert_window_blank(tb, 0);
    close(self.fd);
    testbed_close_vmm(tb);
}

/* In a child of the engine: every call is refused. */
static int child_calls(EngineCtx *ctx)
{
    uint32_t words[128] = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        words[0] = (uint32_t)calls[i].size;
        if (calls[i].request != VGPU_ENGINE_INFO &&
            engine_ioctl(ctx, calls[i].request, words) != -EPERM)
            return 1 + (int)i;
    }
    if (mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, ctx->fd, 1l << 44) != MAP_FAILED ||
        errno != EPERM)
        return 100;
    return engine_ioctl(ctx, VGPU_ENGINE_ATTACH, NULL) == -EBUSY ? 0 : 101;
}

static int call_fork(EngineCtx *ctx, void *arg)
{
    int status = 0;
    pid_t pid = fork();

    (void)arg;
    if (pid == 0)
        _exit(child_calls(ctx));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EPIPE;
}

/* A worker that the engine has forked, and an unrelated process that may open the node. */
static void test_not_owner(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *node = g_build_filename("/dev/vgpu", tb->uuid, NULL);
    uint32_t words[128] = {0};
    int fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    g_assert_cmpint(engine_peer_call(tb->engine, call_fork, NULL, 0), ==, 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ioctl(fd, VGPU_ENGINE_ATTACH), ==, -1);
    g_assert_cmpint(errno, ==, EBUSY);
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (calls[i].request == VGPU_ENGINE_INFO)
            continue;
        words[0] = (uint32_t)calls[i].size;
        g_assert_cmpint(ioctl(fd, calls[i].request, words), ==, -1);
        g_assert_cmpint(errno, ==, ENOTCONN);
    }
    g_assert_cmpint(read(fd, words, sizeof(words)), ==, -1);
    g_assert_true(mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 1l << 44) == MAP_FAILED);
    close(fd);
    assert_round_trip(tb, 1);
}

/* In the engine: one of several threads that do the same, each in its own order. */
typedef struct {
    EngineCtx *ctx;
    uint64_t addr;
    int64_t end;
    unsigned seed;
} Worker;

/* Each VM needs another engine. */
static void replace_engine(EngineCtx *ctx)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct vgpu_engine_epoch none = {.argsz = sizeof(none), .epoch = UINT64_MAX};

    pthread_mutex_lock(&lock);
    /* The other thread may have been faster. */
    if (engine_ioctl(ctx, VGPU_ENGINE_RESET_DONE, &none) == -ENOTCONN)
        engine_replace(ctx);
    pthread_mutex_unlock(&lock);
}

static void *call_driver(void *data)
{
    Worker *worker = data;
    GRand *rand = g_rand_new_with_seed(worker->seed);
    uint64_t iova = TESTBED_RAM_IOVA + 4 * MIB;

    while (now_ms() < worker->end) {
        uint64_t epoch = engine_epoch(worker->ctx);
        struct vgpu_window_range range = {
            .argsz = sizeof(range),
            .epoch = epoch,
            .offset = g_rand_int(rand) % 32 * PAGE_BYTES,
            .size = (1 + g_rand_int(rand) % 16) * PAGE_BYTES,
            .addr = worker->addr,
        };
        struct vgpu_mem_entry entry = {iova + g_rand_int(rand) % 16 * PAGE_BYTES, PAGE_BYTES};
        struct vgpu_mem_pin pin = {
            .argsz = sizeof(pin), .epoch = epoch, .entries = (uintptr_t)&entry, .nentries = 1};
        struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = epoch};
        struct vgpu_engine_epoch done = {.argsz = sizeof(done), .epoch = epoch - 1};

        engine_ioctl(worker->ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
        if (!engine_ioctl(worker->ctx, VGPU_ENGINE_MEM_PIN, &pin)) {
            unpin.offset = pin.offset;
            engine_ioctl(worker->ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
        }
        range.addr = 0;
        engine_ioctl(worker->ctx, VGPU_ENGINE_WINDOW_UNPUBLISH, &range);
        /* Answers a reset before any thread has read which epoch it ends. */
        if (engine_ioctl(worker->ctx, VGPU_ENGINE_RESET_DONE, &done) == -ENOTCONN)
            replace_engine(worker->ctx);
    }
    g_rand_free(rand);
    return NULL;
}

typedef struct {
    uint64_t addr;
    uint64_t ms;
} CrowdCall;

static int call_crowd(EngineCtx *ctx, void *arg)
{
    CrowdCall *call = arg;
    pthread_t thread[2];
    Worker worker[2];

    for (unsigned i = 0; i < 2; i++) {
        worker[i] = (Worker){ctx, call->addr, now_ms() + (int64_t)call->ms, i};
        if (pthread_create(&thread[i], NULL, call_driver, &worker[i]))
            return -EAGAIN;
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

/* The same while the guest looks on. Each page is the engine's, or blank. */
static void test_two_at_once(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    volatile uint32_t *window = (volatile uint32_t *)testbed_window(tb);
    CrowdCall call = {.ms = 4000};
    int status = 0;
    pid_t pid;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &call.addr));
    pid = fork();
    if (pid == 0)
        _exit(engine_peer_call(tb->engine, call_crowd, &call, sizeof(call)) ? 1 : 0);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        for (unsigned page = 0; page < 48; page++) {
            uint32_t word = window[page * (PAGE_BYTES / 4) + 2];
            bool own = word == VGPU_WINDOW_BLANK;

            for (uint64_t i = 0; i < SIZE / PAGE_BYTES; i++)
                own |= word == memory_pattern(i, 2);
            if (!own)
                g_error("the window shows 0x%08x, which nobody has published", word);
        }
    }
    g_assert_cmpint(status, ==, 0);
    guest_reset(&tb->guest);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
}

/* ... while the VM goes away and comes back. */
static void test_vm_goes_away(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    CrowdCall call = {.ms = 6000};
    unsigned rounds = 0;
    int status = 0, ready[2];
    char byte;
    pid_t pid;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, SIZE, &call.addr));
    g_assert_cmpint(pipe(ready), ==, 0);
    pid = fork();
    if (pid == 0) {
        close(tb->dev.fd);
        close(tb->dev.group);
        close(tb->container.fd);
        close(ready[0]);
        close(ready[1]);
        _exit(engine_peer_call(tb->engine, call_crowd, &call, sizeof(call)) ? 1 : 0);
    }
    /* It must not hold the device open any more. */
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 0);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        testbed_close_vmm(tb);
        testbed_advance(tb, TESTBED_AT_GUEST);
        g_usleep(20000);
        rounds++;
    }
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpuint(rounds, >, 2);
    assert_round_trip(tb, 1);
    testbed_close_vmm(tb);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes"), ==, 0);
}

/* The ranges at one address: each of their notifiers runs when that address changes. */
#define SAME_PLACE 256

typedef struct {
    uint64_t addr;
    uint64_t ms;
} PinOverCall;

typedef struct {
    EngineCtx *ctx;
    uint64_t offset;
    int64_t end;
} Mapper;

/* Whoever maps or unmaps a file waits until nobody looks for its mappings. */
static void *map_and_unmap(void *data)
{
    Mapper *mapper = data;

    while (now_ms() < mapper->end) {
        void *addr =
            mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, mapper->ctx->fd, (off_t)mapper->offset);

        if (addr == MAP_FAILED || munmap(addr, PAGE_BYTES))
            return GINT_TO_POINTER(errno);
    }
    return NULL;
}

static int pin_page(EngineCtx *ctx, uint64_t epoch, uint64_t *offset)
{
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 4 * MIB, PAGE_BYTES};
    struct vgpu_mem_pin pin = {
        .argsz = sizeof(pin), .epoch = epoch, .entries = (uintptr_t)&entry, .nentries = 1};
    int ret = engine_ioctl(ctx, VGPU_ENGINE_MEM_PIN, &pin);

    *offset = pin.offset;
    return ret;
}

static int pin_over_and_unpin(EngineCtx *ctx, uint64_t epoch, uint64_t at)
{
    struct vgpu_mem_unpin unpin = {.argsz = sizeof(unpin), .epoch = epoch};
    uint64_t offset;
    int ret = pin_page(ctx, epoch, &offset);
    void *addr;

    if (ret)
        return ret;
    unpin.offset = offset;
    addr = mmap((void *)(uintptr_t)at, PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, ctx->fd,
                (off_t)offset);
    if (addr == MAP_FAILED)
        return -errno;
    *(volatile uint8_t *)addr;
    return engine_ioctl(ctx, VGPU_ENGINE_MEM_UNPIN, &unpin);
}

static int call_pin_over(EngineCtx *ctx, void *arg)
{
    const PinOverCall *call = arg;
    Mapper mapper = {.ctx = ctx, .end = now_ms() + (int64_t)call->ms};
    uint64_t epoch = engine_epoch(ctx);
    void *error = NULL;
    pthread_t thread;
    int ret = pin_page(ctx, epoch, &mapper.offset);

    for (unsigned i = 0; !ret && i < SAME_PLACE; i++) {
        struct vgpu_window_range range = {
            .argsz = sizeof(range),
            .epoch = epoch,
            .offset = i * PAGE_BYTES,
            .size = PAGE_BYTES,
            .addr = call->addr,
        };

        ret = engine_ioctl(ctx, VGPU_ENGINE_WINDOW_PUBLISH, &range);
    }
    if (ret)
        return ret;
    if (pthread_create(&thread, NULL, map_and_unmap, &mapper))
        return -EAGAIN;
    while (!ret && now_ms() < mapper.end)
        ret = pin_over_and_unpin(ctx, epoch, call->addr);
    pthread_join(thread, &error);
    return ret ?: -GPOINTER_TO_INT(error);
}

/*
 * Guest memory that is taken out of the engine, at an address that is published too: the driver
 * then looks for the mappings of two things, one within the other, while another thread wants to
 * change them. Once that stopped both for ever.
 */
static void test_pin_over_published(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    PinOverCall call = {.ms = 4000};

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, PAGE_BYTES, &call.addr));
    assert_ok(engine_peer_call(tb->engine, call_pin_over, &call, sizeof(call)));
    assert_window_blank(tb, 0);
    assert_round_trip(tb, 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/hostile-engine/arguments", test_arguments);
    driver_test_add("/hostile-engine/unknown-calls", test_unknown_calls);
    driver_test_add("/hostile-engine/mmap", test_mmap);
    driver_test_add("/hostile-engine/forbidden", test_forbidden);
    driver_test_add("/hostile-engine/replaced", test_replaced);
    driver_test_add("/hostile-engine/replaced-unseen", test_replaced_unseen);
    driver_test_add("/hostile-engine/other-window", test_other_window);
    driver_test_add("/hostile-engine/not-owner", test_not_owner);
    driver_test_add("/hostile-engine/two-at-once", test_two_at_once);
    driver_test_add("/hostile-engine/vm-goes-away", test_vm_goes_away);
    driver_test_add_limit("/hostile-engine/pin-over-published", test_pin_over_published, 60);
    return driver_test_run();
}
