/* SPDX-License-Identifier: MIT */
/*
 * An engine may take as long as it likes for everything that it is asked, and for its own memory.
 * That must hold up neither its VMM, nor who manages vGPUs; nor may a VMM's memory hold up these.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_mm.h"
#include "test_buffer.h"
#include "testbed.h"

/* On a slow machine, a call that is not blocked takes much less than this. */
#define AT_ONCE_MS 1500
/* Until a call that was to begin when an address space is held waits for that. */
#define IN_CALL_MS 300

/* A call on a thread of its own. */
typedef struct {
    pthread_t thread;
    void (*fn)(Testbed *tb);
    Testbed *tb;
    atomic_int done;
} Task;

static void *task_thread(void *data)
{
    Task *task = data;

    task->fn(task->tb);
    atomic_store(&task->done, 1);
    return NULL;
}

static void task_start(Task *task, void (*fn)(Testbed *tb), Testbed *tb)
{
    task->fn = fn;
    task->tb = tb;
    atomic_store(&task->done, 0);
    g_assert_cmpint(pthread_create(&task->thread, NULL, task_thread, task), ==, 0);
}

static void task_join(Task *task)
{
    g_assert_true(wait_until(atomic_load(&task->done), GUEST_TIMEOUT_MS));
    pthread_join(task->thread, NULL);
}

/* @fn returns at once, though another call may not. */
static void assert_at_once(void (*fn)(Testbed *tb), Testbed *tb)
{
    static Task task;

    task_start(&task, fn, tb);
    g_assert_true(wait_until(atomic_load(&task.done), AT_ONCE_MS));
    pthread_join(task.thread, NULL);
}

static int call_hold_mm(EngineCtx *ctx, void *arg)
{
    pthread_t thread;

    (void)ctx;
    (void)arg;
    if (pthread_create(&thread, NULL, held_mm_thread, NULL))
        return -EAGAIN;
    pthread_detach(thread);
    return 0;
}

/* Returns when it holds it. */
static void engine_holds_its_mm(Testbed *tb)
{
    held_mm_need();
    assert_ok(engine_peer_call(tb->engine, call_hold_mm, NULL, 0));
    held_mm_wait();
}

static void touch_window(Testbed *tb)
{
    assert_window_pattern(tb, 3 * PAGE_BYTES, 3);
}

static void map_and_unmap(Testbed *tb)
{
    void *addr = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)tb;
    g_assert_true(addr != MAP_FAILED);
    munmap(addr, PAGE_BYTES);
}

static void read_own_maps(Testbed *tb)
{
    g_autofree char *maps = NULL;

    (void)tb;
    g_assert_true(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
}

static void read_state(Testbed *tb)
{
    g_autofree char *state = mdev_attr(tb->uuid, "vgpu/state");

    g_assert_nonnull(state);
}

static void look_for_instances(Testbed *tb)
{
    g_assert_cmpint(mdev_type_available(tb->gpu, TESTBED_TYPE), >=, 0);
}

static void read_status(Testbed *tb)
{
    g_assert_cmphex(guest_status(&tb->guest), !=, 0xff);
}

static void write_weight(Testbed *tb)
{
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/weight", "77"));
}

static void assert_all_at_once(Testbed *tb)
{
    assert_at_once(read_state, tb);
    assert_at_once(look_for_instances, tb);
    assert_at_once(read_status, tb);
    assert_at_once(write_weight, tb);
    assert_at_once(look_for_instances, tb);
}

/* One processor waits for the engine's memory; the VMM continues. */
static void window_fault_waits(MemoryKind kind)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;
    Task vcpu;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, kind, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    engine_holds_its_mm(tb);
    task_start(&vcpu, touch_window, tb);
    g_usleep(300000);
    g_assert_false(atomic_load(&vcpu.done));
    assert_at_once(map_and_unmap, tb);
    assert_at_once(read_own_maps, tb);
    assert_all_at_once(tb);
    g_assert_false(atomic_load(&vcpu.done));
    task_join(&vcpu);
    assert_window_pattern(tb, 5 * PAGE_BYTES, 5);
}

static void test_window_of_memfd(void)
{
    window_fault_waits(MEMORY_MEMFD);
}

static void test_window_of_dma_buf(void)
{
    if (access("/dev/udmabuf", F_OK))
        driver_test_skip("this kernel has no /dev/udmabuf");
    window_fault_waits(MEMORY_UDMABUF);
}

#define PATIENCE_MS 1000

static void touch_until_blank(Testbed *tb)
{
    assert_window_blank(tb, 3 * PAGE_BYTES);
}

/*
 * An engine that does not let go of its address space stops a processor of its VM, inside KVM, and
 * so the VMM's next change of the VM's memory. It counts as lost in time, and the guest gets what
 * it gets of a lost engine.
 */
static void test_window_of_stuck_engine(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    g_autofree char *failure = NULL;
    uint64_t addr;
    int64_t start;
    Task vcpu;

    testbed_window(tb);
    assert_ok(mdev_set_reset_timeout_ms(PATIENCE_MS));
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    engine_holds_its_mm(tb);
    start = now_ms();
    task_start(&vcpu, touch_until_blank, tb);
    task_join(&vcpu);
    g_assert_cmpint(now_ms() - start, >=, PATIENCE_MS);
    g_assert_cmpint(now_ms() - start, <, HELD_MM_MS - 500);
    failure = mdev_attr(tb->uuid, "vgpu/failure");
    g_assert_nonnull(strstr(failure, "could not be looked up"));
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/engine_losses"), ==, 1);
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
}

/* A GPU may be busy for longer than an engine may be stuck: its memory is waited for. */
static void test_window_of_busy_gpu(void)
{
    g_autoptr(Testbed) tb = NULL;
    uint64_t addr;
    int64_t start;
    Task vcpu;

    test_buffer_faults(0, 0);
    tb = testbed_new(TESTBED_AT_GUEST);
    testbed_window(tb);
    assert_ok(mdev_set_reset_timeout_ms(PATIENCE_MS));
    assert_ok(peer_alloc(tb->engine, MEMORY_TEST_BUFFER, 4 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 3 * PAGE_BYTES, PAGE_BYTES, addr + 3 * PAGE_BYTES));
    test_buffer_faults(0, 3 * PATIENCE_MS);
    start = now_ms();
    task_start(&vcpu, touch_window, tb);
    g_usleep(300000);
    assert_at_once(map_and_unmap, tb);
    assert_at_once(read_own_maps, tb);
    task_join(&vcpu);
    g_assert_cmpint(now_ms() - start, >=, 3 * PATIENCE_MS);
    test_buffer_faults(0, 0);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/engine_losses"), ==, 0);
}

/* Nor does a look-up that lasts hold up who closes the device, or removes the vGPU. */
static void test_window_closed_meanwhile(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint64_t addr;
    int64_t start;
    pid_t vcpu;

    testbed_window(tb);
    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, 16 * PAGE_BYTES, &addr));
    assert_ok(peer_publish(tb->engine, 0, 16 * PAGE_BYTES, addr));
    engine_holds_its_mm(tb);
    start = now_ms();
    vcpu = fork();
    if (vcpu == 0) {
        /* A child has no copy of the mapping. */
        tb->window = NULL;
        touch_window(tb);
        _exit(0);
    }
    g_usleep(300000);
    kill(vcpu, SIGKILL);
    g_assert_cmpint(waitpid(vcpu, NULL, 0), ==, vcpu);
    testbed_close_vmm(tb);
    g_assert_cmpint(now_ms() - start, <, HELD_MM_MS - 1000);
}

/* Memory of the engine that is never filled: each access waits for ever. */
static void *endless_page(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register reg = {.range.len = 2 * PAGE_BYTES,
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    void *addr =
        mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    reg.range.start = (uintptr_t)addr;
    if (addr == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
        ioctl(fd, UFFDIO_REGISTER, &reg))
        abort();
    return addr;
}

typedef struct {
    EngineCtx *ctx;
    unsigned long request;
    void *arg;
    bool when_held;
} CallThread;

static void *call_thread(void *data)
{
    CallThread *call = data;

    if (call->when_held)
        held_mm_wait();
    engine_ioctl(call->ctx, call->request, call->arg);
    return NULL;
}

/* On a thread of the engine, which is never joined. @when_held: not before an address space is
 * held. */
static int start_call(EngineCtx *ctx, unsigned long request, void *arg, bool when_held)
{
    CallThread *call = g_new(CallThread, 1);
    pthread_t thread;

    *call = (CallThread){ctx, request, arg, when_held};
    return pthread_create(&thread, NULL, call_thread, call) ? -EAGAIN : 0;
}

/* The argument itself is not readable. */
static int call_endless_argument(EngineCtx *ctx, void *arg)
{
    return start_call(ctx, *(unsigned long *)arg, endless_page(), false);
}

/* An exchange on a thread of the engine that takes a request into @buf. */
static int start_pop(EngineCtx *ctx, void *buf, bool when_held)
{
    struct vgpu_queue_exchange x =
        exchange_for_pop(VGPU_QUEUE_CONTROL, engine_epoch(ctx), buf, PAGE_BYTES,
                         g_new0(struct vgpu_queue_request, 1));

    return start_call(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, g_memdup2(&x, sizeof(x)), when_held);
}

static int call_endless_pop(EngineCtx *ctx, void *arg)
{
    (void)arg;
    return start_pop(ctx, endless_page(), false);
}

static int call_endless_push(EngineCtx *ctx, void *arg)
{
    struct vgpu_queue_answer answer = {.token = 1, .buf = (uintptr_t)endless_page(), .size = 24};
    struct vgpu_queue_exchange x =
        exchange_for_push(engine_epoch(ctx), g_memdup2(&answer, sizeof(answer)));

    (void)arg;
    return start_call(ctx, VGPU_ENGINE_QUEUE_EXCHANGE, g_memdup2(&x, sizeof(x)), false);
}

/* Each call of an engine, with memory that makes the driver wait for ever. */
static void test_engine_memory(void)
{
    static const unsigned long calls[] = {
        VGPU_ENGINE_INFO,           VGPU_ENGINE_READY,       VGPU_ENGINE_RESET_DONE,
        VGPU_ENGINE_QUEUE_EXCHANGE, VGPU_ENGINE_MEM_PIN,     VGPU_ENGINE_MEM_UNPIN,
        VGPU_ENGINE_WINDOW_PUBLISH, VGPU_ENGINE_FAIL,        VGPU_ENGINE_WINDOW_UNPUBLISH,
        VGPU_ENGINE_DISPLAY,        VGPU_ENGINE_SET_SCANOUT, VGPU_ENGINE_STATE_SAVE,
        VGPU_ENGINE_STATE_LOAD,
    };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);

    for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++) {
        unsigned long request = calls[i];

        assert_ok(engine_peer_call(tb->engine, call_endless_argument, &request, sizeof(request)));
        g_usleep(30000);
        assert_all_at_once(tb);
    }
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
}

static void test_engine_buffers(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    void *resp;

    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_ok(engine_peer_call(tb->engine, call_endless_pop, NULL, 0));
    g_usleep(100000);
    assert_all_at_once(tb);
    assert_ok(engine_peer_call(tb->engine, call_endless_push, NULL, 0));
    g_usleep(100000);
    assert_all_at_once(tb);
    /* Requests that the engine got half are answered when it dies. */
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_cmpint(guest_queue_wait(&tb->guest.queue[VGPU_QUEUE_CONTROL], NULL, GUEST_TIMEOUT_MS),
                    >=, 0);
}

/* Later, because a thread can't be made while the address space is held. */
static int call_publish_later(EngineCtx *ctx, void *arg)
{
    struct vgpu_window_range *range = g_memdup2(arg, sizeof(*range));

    range->epoch = engine_epoch(ctx);
    /* It is the address space of the thread itself, whose faults would wait for the end of the
     * hold. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
        return -errno;
    return start_call(ctx, VGPU_ENGINE_WINDOW_PUBLISH, range, true);
}

/* Publishing looks up the engine's address space. */
static void test_publish(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_window_range range = {.argsz = sizeof(range), .size = 16 * PAGE_BYTES};
    uint64_t addr;

    assert_ok(peer_alloc(tb->engine, MEMORY_MEMFD, range.size, &addr));
    range.addr = addr;
    assert_ok(engine_peer_call(tb->engine, call_publish_later, &range, sizeof(range)));
    engine_holds_its_mm(tb);
    g_usleep(IN_CALL_MS * 1000);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    assert_all_at_once(tb);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes"), ==, 0);
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/window_published_bytes") == range.size,
                             GUEST_TIMEOUT_MS));
}

static int call_pin_later(EngineCtx *ctx, void *arg)
{
    struct vgpu_mem_entry *entry = g_memdup2(arg, sizeof(*entry));
    struct vgpu_mem_pin *pin = g_new(struct vgpu_mem_pin, 1);

    *pin = (struct vgpu_mem_pin){.argsz = sizeof(*pin),
                                 .epoch = engine_epoch(ctx),
                                 .entries = (uintptr_t)entry,
                                 .nentries = 1};
    return start_call(ctx, VGPU_ENGINE_MEM_PIN, pin, true);
}

/*
 * Pinning waits for the VMM's address space. Its processors do not wait for that. Nothing here may
 * map memory while the address space, which is this process', is held.
 */
static void test_pin(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct vgpu_mem_entry entry = {TESTBED_RAM_IOVA + 8 * MIB, 64 * PAGE_BYTES};
    pthread_t holder;
    int64_t start;

    held_mm_need();
    read_status(tb);
    assert_ok(engine_peer_call(tb->engine, call_pin_later, &entry, sizeof(entry)));
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_long_thread, NULL), ==, 0);
    held_mm_wait();
    g_usleep(IN_CALL_MS * 1000);
    start = now_ms();
    read_status(tb);
    g_assert_cmpint(now_ms() - start, <, AT_ONCE_MS);
    held_mm_let_go();
    pthread_join(holder, NULL);
    g_assert_true(
        wait_until(mdev_attr_u64(tb->uuid, "vgpu/pinned_bytes") >= entry.size, GUEST_TIMEOUT_MS));
}

static int call_pop_later(EngineCtx *ctx, void *arg)
{
    (void)arg;
    return start_pop(ctx, g_malloc0(PAGE_BYTES), true);
}

static void read_attributes(Testbed *tb)
{
    static const char *const names[] = {"vgpu/failure",  "vgpu/tenant",
                                        "vgpu/class",    "vgpu/oversubscribe_bytes",
                                        "vgpu/requests", "vgpu/window_bytes"};

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *value = mdev_attr(tb->uuid, names[i]);

        g_assert_nonnull(value);
    }
}

static void write_notes(Testbed *tb)
{
    assert_ok(mdev_attr_set(tb->uuid, "vgpu/tenant", "someone"));
    assert_fails(mdev_attr_set(tb->uuid, "vgpu/display", "1"), EBUSY);
}

/* What vgpud and mdevctl do, in a process of its own, while the request is still being popped. */
static pid_t start_manager(Testbed *tb)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    held_mm_wait();
    g_usleep(IN_CALL_MS * 1000);
    assert_at_once(read_state, tb);
    assert_at_once(read_attributes, tb);
    assert_at_once(write_notes, tb);
    assert_at_once(write_weight, tb);
    assert_at_once(look_for_instances, tb);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/requests"), ==, 0);
    _exit(0);
}

/*
 * A VMM whose memory can't be had holds up its own device. Who manages vGPUs, of all tenants, does
 * not wait for it. Nothing in this process may map memory while the address space is held.
 */
static void test_pop(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q = &tb->guest.queue[VGPU_QUEUE_CONTROL];
    pthread_t holder;
    int status = -1;
    pid_t manager;
    void *resp;
    uint64_t iova;

    held_mm_need();
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    /* In a page that the driver has not pinned. */
    guest_alloc(&tb->guest, PAGE_BYTES, PAGE_BYTES, &iova);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp));
    assert_ok(engine_peer_call(tb->engine, call_pop_later, NULL, 0));
    manager = start_manager(tb);
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_long_thread, NULL), ==, 0);
    g_assert_cmpint(waitpid(manager, &status, 0), ==, manager);
    held_mm_let_go();
    pthread_join(holder, NULL);
    g_assert_cmpint(status, ==, 0);
    g_assert_true(wait_until(mdev_attr_u64(tb->uuid, "vgpu/requests") == 1, GUEST_TIMEOUT_MS));
    engine_peer_kill(tb->engine);
    tb->engine = NULL;
    g_assert_cmpint(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS), >=, 0);
}

static void ring_doorbell(Testbed *tb)
{
    guest_queue_kick_always(&tb->guest.queue[VGPU_QUEUE_CONTROL]);
}

/*
 * A processor that rings does not wait for a request that is being taken from memory which can't be
 * had, and rings all the same. Nothing in this process may map memory meanwhile.
 */
static void test_doorbell(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    uint64_t iova, before;
    pthread_t holder;
    int64_t start;
    void *resp;

    held_mm_need();
    atomic_store(&tb->engine->state->hold, ENGINE_HOLD_QUEUES);
    guest_alloc(&tb->guest, PAGE_BYTES, PAGE_BYTES, &iova);
    assert_ok(guest_submit(&tb->guest, VGPU_QUEUE_CONTROL, &req, sizeof(req), sizeof(req), &resp));
    ring_doorbell(tb);
    before = mdev_attr_u64(tb->uuid, "vgpu/doorbells");
    assert_ok(engine_peer_call(tb->engine, call_pop_later, NULL, 0));
    g_assert_cmpint(pthread_create(&holder, NULL, held_mm_long_thread, NULL), ==, 0);
    held_mm_wait();
    g_usleep(IN_CALL_MS * 1000);
    start = now_ms();
    ring_doorbell(tb);
    g_assert_cmpint(now_ms() - start, <, AT_ONCE_MS);
    held_mm_let_go();
    pthread_join(holder, NULL);
    g_assert_cmpuint(mdev_attr_u64(tb->uuid, "vgpu/doorbells"), ==, before + 1);
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/stall/window-of-memfd", test_window_of_memfd);
    driver_test_add("/stall/window-of-dma-buf", test_window_of_dma_buf);
    driver_test_add("/stall/window-of-stuck-engine", test_window_of_stuck_engine);
    driver_test_add("/stall/window-of-busy-gpu", test_window_of_busy_gpu);
    driver_test_add("/stall/window-closed-meanwhile", test_window_closed_meanwhile);
    driver_test_add_limit("/stall/engine-memory", test_engine_memory, 60);
    driver_test_add_limit("/stall/engine-buffers", test_engine_buffers, 60);
    driver_test_add("/stall/publish", test_publish);
    driver_test_add("/stall/pin", test_pin);
    driver_test_add("/stall/pop", test_pop);
    driver_test_add("/stall/doorbell", test_doorbell);
    return driver_test_run();
}
