// SPDX-License-Identifier: MIT
/*
 * Memory that moves, in one process: by orders of the test's. What the program sees of its memory
 * is the same before, after and meanwhile.
 */
#include "fake.h"
#include "kit.h"
#include "orders.h"

#include <stdlib.h>
#include <string.h>

#define BIG (3 * MIB)

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr at);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr at);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

static void enter(void)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    g_setenv("FAKE_CUDA_TOTAL", "8589934592", TRUE);
    orders_open();
    kit_context();
}

static CUdeviceptr allocate(size_t bytes, unsigned char value)
{
    CUdeviceptr at;

    ok(cuMemAlloc_v2(&at, bytes));
    ok(cuMemsetD8_v2(at, value, bytes));
    return at;
}

static void check(CUdeviceptr at, size_t bytes, unsigned char value)
{
    unsigned char *copy = malloc(bytes);

    ok(cuMemcpyDtoH_v2(copy, at, bytes));
    for (size_t i = 0; i < bytes; i++)
        g_assert_cmphex(copy[i], ==, value);
    free(copy);
}

static struct orders_said look(void)
{
    struct orders_said said;

    orders_look(&said);
    return said;
}

static void leave(uint64_t bytes)
{
    orders_leave(bytes);
    orders_await_left();
}

static void order_back(uint64_t bytes)
{
    orders_take(bytes);
    orders_await_taken();
}

/* Addresses and what the driver says of them are the same, and the card's memory is others'. */
static void move(void)
{
    uint64_t whole = 4 * MIB;
    CUdeviceptr at, base;
    size_t bytes;
    int device = -1;

    enter();
    at = allocate(BIG, 0x5a);
    g_assert_cmpuint(kit_on_card(), ==, whole);
    leave(whole);
    g_assert_cmpuint(look().gave, ==, whole);
    g_assert_cmpuint(kit_on_card(), ==, 0);
    ok(cuMemGetAddressRange_v2(&base, &bytes, at + 100));
    g_assert_cmphex(base, ==, at);
    g_assert_cmpuint(bytes, ==, BIG);
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at + 5));
    g_assert_cmpint(device, ==, 0);
    order_back(whole);
    g_assert_cmpuint(kit_on_card(), ==, whole);
    check(at, BIG, 0x5a);
    ok(cuMemFree_v2(at));
    g_assert_cmpuint(kit_on_card(), ==, 0);
    g_assert_cmpint(cuMemFree_v2(at), !=, CUDA_SUCCESS);
}

static void *read_first(void *data)
{
    CUdeviceptr at = *(CUdeviceptr *)data;
    unsigned char byte = 0;

    ok(cuMemcpyDtoH_v2(&byte, at, 1));
    return GUINT_TO_POINTER(byte);
}

static CUcontext context;

static void *in_context(void *data)
{
    ok(cuCtxSetCurrent(context));
    return read_first(data);
}

/* A call that needs the memory waits, and says so; all of it is back when it goes on. */
static void come(void)
{
    CUdeviceptr at, other;
    GThread *thread;

    enter();
    ok(cuCtxGetCurrent(&context));
    at = allocate(BIG, 1);
    other = allocate(BIG, 2);
    leave(4 * MIB);
    g_assert_cmpuint(look().displaced, ==, 4 * MIB);
    thread = g_thread_new("reads", in_context, &at);
    orders_await_comes(1);
    order_back(4 * MIB);
    g_assert_cmpuint(GPOINTER_TO_UINT(g_thread_join(thread)), ==, 1);
    check(other, BIG, 2);
}

static void *launch_in_context(void *data)
{
    ok(cuCtxSetCurrent(context));
    kit_launch(kit_kernel(1000), NULL);
    return data;
}

/* Whoever waits for a turn of time, which does not come meanwhile, says so, too. */
static void turn(void)
{
    GThread *thread;

    enter();
    ok(cuCtxGetCurrent(&context));
    allocate(BIG, 1);
    kit_launch(kit_kernel(1000), NULL);
    ok(cuCtxSynchronize());
    for (unsigned int i = 0; i < 3; i++) {
        leave(4 * MIB);
        orders_hold_turns(true);
        thread = g_thread_new("launches", launch_in_context, NULL);
        orders_await_comes(i + 1);
        order_back(4 * MIB);
        orders_hold_turns(false);
        g_thread_join(thread);
    }
}

/* What is displaced is freed where it is, and the last of it lets all go on. */
static void free_away(void)
{
    CUdeviceptr first, second;

    enter();
    first = allocate(BIG, 1);
    second = allocate(BIG, 2);
    leave(8 * MIB);
    g_assert_cmpuint(look().displaced, ==, 8 * MIB);
    ok(cuMemFree_v2(first));
    ok(cuMemFreeAsync(second, NULL));
    /* Nothing is displaced any more. */
    first = allocate(BIG, 3);
    check(first, BIG, 3);
    g_assert_cmpuint(look().displaced, ==, 0);
    orders_await_held(4 * MIB);
    g_assert_cmpuint(look().comes, ==, 0);
}

/* With its context all of it ends, on the card and elsewhere. */
static void context_ends(void)
{
    enter();
    ok(cuCtxGetCurrent(&context));
    allocate(BIG, 1);
    allocate(BIG, 2);
    leave(4 * MIB);
    ok(cuCtxDestroy_v2(context));
    g_assert_cmpuint(kit_on_card(), ==, 0);
    kit_context();
    check(allocate(BIG, 4), BIG, 4);
    orders_await_held(4 * MIB);
    g_assert_cmpuint(look().displaced, ==, 0);
}

/* Small memory and what the driver has in pools stays; that is said. */
static void stays(void)
{
    CUdeviceptr small, large;

    enter();
    small = allocate(MIB, 1);
    large = allocate(BIG, 2);
    leave(64 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    g_assert_cmpuint(look().stuck, ==, 1);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_FLOOR);
    g_assert_cmpuint(look().unmovable, ==, MIB);
    order_back(4 * MIB);
    check(small, MIB, 1);
    check(large, BIG, 2);
}

/* While a stream captures nothing moves, and the capture goes on. */
static void captures(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110;
    CUgraph graph;
    CUdeviceptr at;

    enter();
    at = allocate(BIG, 1);
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 0);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_CAPTURE);
    kit_launch(kit_kernel(1000), stream);
    ok(cuStreamEndCapture(stream, &graph));
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    order_back(4 * MIB);
    check(at, BIG, 1);
}

/* A kernel that does not end keeps its memory; the process goes on as before. */
static void long_kernel(void)
{
    CUdeviceptr at;

    enter();
    at = allocate(BIG, 1);
    kit_launch(FAKE_SPIN, (CUstream)(uintptr_t)0x110);
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 0);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_WORK);
    kit_launch(kit_kernel(1000), (CUstream)(uintptr_t)0x330);
    kit_launch(FAKE_RELEASE, (CUstream)(uintptr_t)0x220);
    ok(cuCtxSynchronize());
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    order_back(4 * MIB);
    check(at, BIG, 1);
}

/* No host memory: what is not copied stays, and what was comes back. */
static void no_vault(void)
{
    CUdeviceptr first, second;

    enter();
    orders_limit_pieces(1);
    first = allocate(BIG, 1);
    second = allocate(BIG, 2);
    leave(8 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_VAULT);
    order_back(4 * MIB);
    check(first, BIG, 1);
    check(second, BIG, 2);
    /* The piece is kept, and given back if its place is needed for another size. */
    allocate(16 * MIB, 3);
    leave(16 * MIB);
    g_assert_cmpuint(look().gave, ==, 20 * MIB);
    g_assert_cmpuint(look().pieces, ==, 1);
}

/* The card has less than was granted: the gate stays closed until it has. */
static void no_room(void)
{
    _Atomic unsigned int *creates_left = kit_driver("fake_creates_left");
    CUdeviceptr first, second;
    GThread *thread;

    enter();
    ok(cuCtxGetCurrent(&context));
    first = allocate(BIG, 1);
    second = allocate(BIG, 2);
    leave(8 * MIB);
    thread = g_thread_new("reads", in_context, &first);
    orders_await_comes(1);
    *creates_left = 1;
    order_back(8 * MIB);
    g_assert_cmpuint(look().took, ==, 4 * MIB);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_CARD);
    order_back(4 * MIB);
    g_assert_cmpuint(GPOINTER_TO_UINT(g_thread_join(thread)), ==, 1);
    check(first, BIG, 1);
    check(second, BIG, 2);
}

static unsigned int copied_out(void)
{
    return kit_calls("cuMemcpyDtoHAsync_v2");
}

/* What was copied while nobody worked leaves without a copy, and comes back as it was. */
static void clean(void)
{
    CUdeviceptr first, second;
    unsigned int before;

    enter();
    first = allocate(BIG, 1);
    second = allocate(BIG, 2);
    orders_copy();
    orders_await_cleans(1);
    g_assert_cmpuint(kit_on_card(), ==, 8 * MIB);
    before = copied_out();
    leave(8 * MIB);
    g_assert_cmpuint(copied_out(), ==, before);
    g_assert_cmpuint(look().uncopied, ==, 8 * MIB);
    g_assert_cmpuint(kit_on_card(), ==, 0);
    order_back(8 * MIB);
    /* Nobody has had it in between. */
    leave(8 * MIB);
    g_assert_cmpuint(copied_out(), ==, before);
    order_back(8 * MIB);
    check(first, BIG, 1);
    check(second, BIG, 2);
}

/* What was written after its copy is copied again. */
static void written(void)
{
    CUdeviceptr at;
    GThread *thread;

    enter();
    ok(cuCtxGetCurrent(&context));
    at = allocate(BIG, 1);
    for (unsigned char value = 2; value < 10; value++) {
        orders_copy();
        orders_await_cleans(value - 1u);
        ok(cuMemsetD8_v2(at, value, BIG));
        leave(4 * MIB);
        g_assert_cmpuint(look().uncopied, ==, 0);
        thread = g_thread_new("reads", in_context, &at);
        order_back(4 * MIB);
        g_assert_cmpuint(GPOINTER_TO_UINT(g_thread_join(thread)), ==, value);
        check(at, BIG, value);
    }
}

/* What is promised does not leave, and is not copied. */
static void copies_some(void)
{
    unsigned int before;

    enter();
    allocate(BIG, 1);
    allocate(BIG, 2);
    orders_copy_some(4 * MIB);
    orders_await_cleans(1);
    g_assert_cmpuint(look().pieces, ==, 1);
    before = copied_out();
    leave(4 * MIB);
    g_assert_cmpuint(copied_out(), ==, before);
    g_assert_cmpuint(look().uncopied, ==, 4 * MIB);
    order_back(4 * MIB);
}

/* The next arbiter's first order is not the last one's. */
static void copies_again(void)
{
    enter();
    allocate(BIG, 1);
    orders_copy();
    orders_await_cleans(1);
    orders_begin_again();
    orders_copy();
    orders_await_cleans(2);
}

/* Others of the slice need the host's memory: what is on the card keeps none. */
static void returns_pieces(void)
{
    CUdeviceptr first, second;

    enter();
    first = allocate(BIG, 1);
    second = allocate(BIG, 2);
    orders_copy();
    orders_await_cleans(1);
    g_assert_cmpuint(look().pieces, ==, 2);
    orders_return_pieces();
    orders_await_pieces(0);
    leave(4 * MIB);
    g_assert_cmpuint(look().uncopied, ==, 0);
    g_assert_cmpuint(look().pieces, ==, 1);
    order_back(4 * MIB);
    check(first, BIG, 1);
    check(second, BIG, 2);
}

/* A kernel that still works writes: nothing is copied beside it. */
static void copies_later(void)
{
    enter();
    allocate(BIG, 1);
    kit_launch(FAKE_SPIN, (CUstream)(uintptr_t)0x110);
    orders_copy();
    leave(4 * MIB);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_WORK);
    g_assert_cmpuint(look().cleans, ==, 0);
    kit_launch(FAKE_RELEASE, (CUstream)(uintptr_t)0x220);
    ok(cuCtxSynchronize());
    orders_copy();
    orders_await_cleans(1);
}

/* Nothing moves, and no copy is made ahead, while a kernel works in @other. */
static void await_work_in(CUcontext other)
{
    allocate(BIG, 1);
    ok(cuCtxGetCurrent(&context));
    ok(cuCtxSetCurrent(other));
    kit_launch(FAKE_SPIN, (CUstream)(uintptr_t)0x110);
    ok(cuCtxSetCurrent(context));
    orders_copy();
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 0);
    g_assert_cmpint(look().reason, ==, GOVERNOR_STUCK_WORK);
    g_assert_cmpuint(look().cleans, ==, 0);
    ok(cuCtxSetCurrent(other));
    kit_launch(FAKE_RELEASE, (CUstream)(uintptr_t)0x220);
    ok(cuCtxSynchronize());
    orders_copy();
    orders_await_cleans(1);
}

/* One without memory that moves. */
static void other_context(void)
{
    CUcontext other, first;

    enter();
    ok(cuCtxGetCurrent(&first));
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuCtxSetCurrent(first));
    await_work_in(other);
}

/* The runtime has it from the driver by a way of its own. */
static void unseen_primary(void)
{
    __typeof__(cuDevicePrimaryCtxRetain) *retain = kit_driver("cuDevicePrimaryCtxRetain");
    CUcontext primary;

    enter();
    ok(retain(&primary, 0));
    await_work_in(primary);
}

/* A GPU without a slice: it may write to this one's memory. */
static void ungoverned_primary(void)
{
    CUcontext primary;

    g_setenv("FAKE_CUDA_DEVICES", "2", TRUE);
    enter();
    ok(cuDevicePrimaryCtxRetain(&primary, 1));
    await_work_in(primary);
    ok(cuDevicePrimaryCtxRelease_v2(1));
}

static void ungoverned_context(void)
{
    CUcontext other, first;

    g_setenv("FAKE_CUDA_DEVICES", "2", TRUE);
    enter();
    ok(cuCtxGetCurrent(&first));
    ok(cuCtxCreate_v2(&other, 0, 1));
    ok(cuCtxSetCurrent(first));
    await_work_in(other);
    ok(cuCtxDestroy_v2(other));
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
}

/* Whether it has ended is not known, so no copy is believed. */
static void detached(void)
{
    unsigned int before;
    CUcontext other, first;

    enter();
    allocate(BIG, 1);
    ok(cuCtxGetCurrent(&first));
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuCtxSetCurrent(first));
    orders_copy();
    orders_await_cleans(1);
    ok(cuCtxDetach(other));
    before = copied_out();
    leave(4 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    g_assert_cmpuint(copied_out(), ==, before + 1);
}

/* Handles for other processes are not made of it, and are made of the driver's own. */
static void shares(void)
{
    CUipcMemHandle handle;

    enter();
    g_assert_cmpint(cuIpcGetMemHandle(&handle, allocate(BIG, 1)), ==, CUDA_ERROR_NOT_SUPPORTED);
    ok(cuIpcGetMemHandle(&handle, allocate(MIB, 1)));
}

/* What other devices may reach stays, and the arbiter knows at once. */
static void reached_by_others(void)
{
    unsigned int on = 1;
    CUdeviceptr at;

    enter();
    at = allocate(BIG, 1);
    allocate(BIG, 2);
    ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
    orders_await_unmovable(4 * MIB);
    leave(8 * MIB);
    g_assert_cmpuint(look().gave, ==, 4 * MIB);
    order_back(4 * MIB);
    check(at, BIG, 1);
}

/* A slice whose memory does not move has the driver's own. */
static void does_not_move(void)
{
    orders_do_not_move();
    enter();
    allocate(BIG, 1);
    g_assert_cmpuint(kit_calls("cuMemCreate"), ==, 0);
    g_assert_cmpuint(look().movable, ==, 0);
}

/* It is freed while a stream captures, and its memory when none does any more. */
static void free_in_capture(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream stream = (CUstream)(uintptr_t)0x110;
    CUdeviceptr at;
    CUgraph graph;

    enter();
    at = allocate(BIG, 1);
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuMemFree_v2(at));
    g_assert_cmpint(cuMemFree_v2(at), !=, CUDA_SUCCESS);
    kit_launch(kit_kernel(1000), stream);
    ok(cuStreamEndCapture(stream, &graph));
    allocate(BIG, 2);
    g_assert_cmpuint(kit_on_card(), ==, 4 * MIB);
}

static _Atomic bool ends;

#define THREADS 16
/* With -m slow; else some. */
#define MOVES      1000
#define MOVES_SOME 60
#define KEPT       4

struct kept {
    CUdeviceptr at;
    size_t bytes;
    unsigned char value;
};

/* In a stream of the thread's: others capture, and the legacy stream waits for all. */
static void check_kept(const struct kept *kept, CUstream stream)
{
    unsigned char *copy = malloc(kept->bytes);

    ok(cuMemcpyDtoHAsync_v2(copy, kept->at, kept->bytes, stream));
    ok(cuStreamSynchronize(stream));
    for (size_t i = 0; i < kept->bytes; i++)
        g_assert_cmphex(copy[i], ==, kept->value);
    free(copy);
}

static void use_kept(struct kept *kept, unsigned int *seed, CUstream stream)
{
    if (kept->at) {
        check_kept(kept, stream);
        if (rand_r(seed) % 2)
            ok(cuMemFree_v2(kept->at));
        else
            ok(cuMemFreeAsync(kept->at, stream));
    }
    kept->bytes = (size_t)(rand_r(seed) % 48 + 1) * 64 * 1024;
    kept->value = (unsigned char)rand_r(seed);
    ok(cuMemAlloc_v2(&kept->at, kept->bytes));
    ok(cuMemsetD8Async(kept->at, kept->value, kept->bytes, stream));
}

static void capture_some(CUstream stream)
{
    CUgraphExec exec;
    CUgraph graph;

    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    kit_launch(kit_kernel(1000), stream);
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphLaunch(exec, stream));
    ok(cuGraphExecDestroy(exec));
}

static void *use_memory(void *data)
{
    unsigned int number = GPOINTER_TO_UINT(data), seed = number;
    CUstream stream = (CUstream)(uintptr_t)(0x100 + 0x10 * number);
    /* What others of its process capture does not forbid it anything. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct kept kept[KEPT] = {0};

    ok(cuCtxSetCurrent(context));
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    for (unsigned int i = 0; !ends; i++) {
        use_kept(&kept[i % KEPT], &seed, stream);
        kit_launch(kit_kernel(1000), stream);
        if (i % 8 == 0)
            capture_some(stream);
        ok(cuStreamSynchronize(stream));
    }
    for (unsigned int i = 0; i < KEPT; i++)
        if (kept[i].at)
            check_kept(&kept[i], stream);
    return NULL;
}

/* Whatever was displaced comes back, in steps. */
static void take_all(void)
{
    uint64_t displaced;

    while ((displaced = look().displaced))
        order_back(displaced);
}

/* Of the process, which has other contexts, too. */
static void *use_primary(void *data)
{
    while (!ends) {
        CUcontext primary;

        ok(cuDevicePrimaryCtxRetain(&primary, 0));
        ok(cuCtxSetCurrent(primary));
        ok(cuMemFree_v2(allocate(BIG, 7)));
        ok(cuDevicePrimaryCtxRelease_v2(0));
    }
    return data;
}

/* The primary context begins and ends while memory of others moves. */
static void primary(void)
{
    GThread *thread;
    CUdeviceptr at;

    enter();
    at = allocate(BIG, 1);
    thread = g_thread_new("primary", use_primary, NULL);
    for (unsigned int i = 0; i < 20; i++) {
        leave(4 * MIB);
        take_all();
    }
    ends = true;
    take_all();
    g_thread_join(thread);
    check(at, BIG, 1);
}

static void storm(void)
{
    unsigned int seed = 1, moves = g_test_slow() ? MOVES : MOVES_SOME;
    GThread *threads[THREADS];

    enter();
    ok(cuCtxGetCurrent(&context));
    for (unsigned int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("uses", use_memory, GUINT_TO_POINTER(i));
    for (unsigned int moved = 0; moved < moves; moved++) {
        if (rand_r(&seed) % 2)
            orders_copy();
        leave((uint64_t)(rand_r(&seed) % 64 + 1) * MIB);
        if (rand_r(&seed) % 4 == 0)
            g_usleep(rand_r(&seed) % 500);
        take_all();
    }
    ends = true;
    take_all();
    for (unsigned int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    g_assert_cmpuint(look().gave, >, moves * MIB);
    g_test_message("%u moves: %lu MiB out, %lu MiB back, %u times stuck", moves,
                   (unsigned long)(look().gave / MIB), (unsigned long)(look().took / MIB),
                   look().stuck);
}

static void run_program(const void *program)
{
    kit_run((void (*)(void))program);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/displace/move", move, run_program);
    g_test_add_data_func("/displace/come", come, run_program);
    g_test_add_data_func("/displace/turn", turn, run_program);
    g_test_add_data_func("/displace/free", free_away, run_program);
    g_test_add_data_func("/displace/context", context_ends, run_program);
    g_test_add_data_func("/displace/stays", stays, run_program);
    g_test_add_data_func("/displace/captures", captures, run_program);
    g_test_add_data_func("/displace/long-kernel", long_kernel, run_program);
    g_test_add_data_func("/displace/no-vault", no_vault, run_program);
    g_test_add_data_func("/displace/no-room", no_room, run_program);
    g_test_add_data_func("/displace/clean", clean, run_program);
    g_test_add_data_func("/displace/written", written, run_program);
    g_test_add_data_func("/displace/copies-some", copies_some, run_program);
    g_test_add_data_func("/displace/copies-again", copies_again, run_program);
    g_test_add_data_func("/displace/returns-pieces", returns_pieces, run_program);
    g_test_add_data_func("/displace/copies-later", copies_later, run_program);
    g_test_add_data_func("/displace/other-context", other_context, run_program);
    g_test_add_data_func("/displace/unseen-primary", unseen_primary, run_program);
    g_test_add_data_func("/displace/ungoverned-primary", ungoverned_primary, run_program);
    g_test_add_data_func("/displace/ungoverned-context", ungoverned_context, run_program);
    g_test_add_data_func("/displace/detached", detached, run_program);
    g_test_add_data_func("/displace/shares", shares, run_program);
    g_test_add_data_func("/displace/reached-by-others", reached_by_others, run_program);
    g_test_add_data_func("/displace/does-not-move", does_not_move, run_program);
    g_test_add_data_func("/displace/free-in-capture", free_in_capture, run_program);
    g_test_add_data_func("/displace/primary", primary, run_program);
    g_test_add_data_func("/displace/storm", storm, run_program);
    return g_test_run();
}
