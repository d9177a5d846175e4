// SPDX-License-Identifier: MIT
/*
 * GPU time: what slices are charged for their work, and how few of the card's events that takes.
 * That they keep to their shares is in test-shares.c.
 */
#include "fake.h"
#include "kit.h"

#include <pthread.h>

#define MS       1000000u
#define LAUNCHES 200
#define SHORT_NS 20000

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

static void run_measured(void (*program)(void))
{
    kit_open_two("[slice]\ncap=50\nhard=true\n", "[slice]\n");
    kit_run(program);
    kit_close();
}

/* An event costs more than a launch: there are two for many launches. */
static void gathered(void)
{
    unsigned int before;

    kit_enter_measured("a");
    before = kit_calls("cuEventRecord");
    for (unsigned int i = 0; i < LAUNCHES; i++)
        kit_launch(kit_kernel(SHORT_NS), NULL);
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, >, 2);
    g_assert_cmpuint(kit_calls("cuEventRecord") - before, <, LAUNCHES / 2);
}

/* Any call of ours would be recorded, or end the capture. */
static void capturing(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110;
    unsigned int before;
    CUgraph graph = NULL;

    kit_enter_measured("a");
    before = kit_calls("cuEventRecord");
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned int i = 0; i < LAUNCHES; i++)
        kit_launch(kit_kernel(4 * MS), stream);
    g_assert_cmpuint(kit_calls("cuEventRecord"), ==, before);
    ok(cuStreamEndCapture(stream, &graph));
}

/* So that it is not the capture's thread that waits. */
static void *synchronize(void *context)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

    ok(cuCtxSetCurrent(context));
    ok(cuThreadExchangeStreamCaptureMode(&relaxed));
    ok(cuCtxSynchronize());
    return NULL;
}

/* A batch was open when its stream began to capture: its end is not a part of the graph. */
static void captured_with_a_batch(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110;
    CUgraph graph = NULL;
    CUcontext context;
    size_t count = 0;

    kit_enter_measured("a");
    ok(cuCtxGetCurrent(&context));
    for (unsigned int i = 0; i < 20; i++) {
        kit_launch(kit_kernel(SHORT_NS), stream);
        ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        kit_launch(kit_kernel(SHORT_NS), stream);
        g_thread_join(g_thread_new("waits", synchronize, context));
        ok(cuStreamEndCapture(stream, &graph));
        ok(cuGraphGetNodes(graph, NULL, &count));
        g_assert_cmpuint(count, ==, 1);
    }
}

/* The driver ends a context's events with it, and the rest of the work is charged. */
static void context_ends(void)
{
    kit_enter_measured("a");
    for (unsigned int i = 0; i < 20; i++) {
        CUcontext context = NULL;

        ok(cuCtxCreate_v2(&context, 0, 0));
        kit_launch(kit_kernel(2 * MS), NULL);
        kit_launch(kit_kernel(SHORT_NS), (CUstream)(uintptr_t)0x10);
        ok(cuCtxDestroy_v2(context));
    }
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx of);

static void green_context_ends(void)
{
    kit_enter_measured("a");
    for (unsigned int i = 0; i < 20; i++) {
        CUgreenCtx green = NULL;
        CUcontext context = NULL;

        ok(cuGreenCtxCreate(&green, NULL, 0, 0));
        ok(cuCtxFromGreenCtx(&context, green));
        ok(cuCtxSetCurrent(context));
        kit_launch(kit_kernel(2 * MS), NULL);
        kit_launch(kit_kernel(SHORT_NS), (CUstream)(uintptr_t)0x10);
        ok(cuGreenCtxDestroy(green));
        g_usleep(3000);
    }
}

/* A stream waits for what a later launch of another stream would bring. */
static void waits(void)
{
    CUstream waiting = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;

    kit_enter_measured("a");
    ok(cuStreamWaitValue32_v2(waiting, 0, 1, 0));
    for (unsigned int i = 0; i < 4; i++)
        kit_launch(kit_kernel(MS), waiting);
    for (unsigned int i = 0; i < 20; i++)
        kit_launch(kit_kernel(MS), other);
    ok(cuStreamSynchronize(other));
}

/* What the slice is charged for 20 kernels of one function, each waited for. */
static gint64 charge_of(uint64_t ns, unsigned int pause_us)
{
    uint64_t *varying_ns = kit_driver("fake_varying_ns");
    gint64 before;

    g_usleep(20000);
    before = live_status(&kit_live, "a", "gpu_ns");
    *varying_ns = ns;
    for (unsigned int i = 0; i < 20; i++) {
        kit_launch(FAKE_VARIES, NULL);
        ok(cuStreamSynchronize(NULL));
        g_usleep(pause_us);
    }
    g_usleep(20000);
    return live_status(&kit_live, "a", "gpu_ns") - before;
}

/* It takes longer than it once did, and the program's pauses are not the GPU's work. */
static void changes(void)
{
    gint64 charge;

    kit_enter_measured("a");
    charge = charge_of(50000, 5000);
    g_test_message("%.1f ms for 1 ms", (double)charge / MS);
    g_assert_cmpint(charge, >, MS / 2);
    g_assert_cmpint(charge, <, 10 * MS);
    charge = charge_of(5 * MS, 0);
    g_test_message("%.1f ms for 100 ms", (double)charge / MS);
    g_assert_cmpint(charge, >, 80 * MS);
    g_assert_cmpint(charge, <, 130 * MS);
}

/* The slice has been charged so much since it had been charged @before. */
static void await_charge(gint64 before, gint64 ns)
{
    for (unsigned int i = 0; i < 2000 && live_status(&kit_live, "a", "gpu_ns") < before + ns; i++)
        g_usleep(1000);
    g_assert_cmpint(live_status(&kit_live, "a", "gpu_ns"), >=, before + ns);
}

#define ROUNDS 10

static unsigned int events(void)
{
    return kit_calls("cuEventCreate") - kit_calls("cuEventDestroy_v2");
}

/* As libraries do that don't know whether their thread has a context: others have this one, too. */
static void retain_around(void)
{
    gint64 before = live_status(&kit_live, "a", "gpu_ns");
    unsigned int had = events();
    CUcontext context;

    for (unsigned int i = 0; i < ROUNDS; i++) {
        ok(cuDevicePrimaryCtxRetain(&context, 0));
        kit_launch(kit_kernel(10 * MS), NULL);
        ok(cuDevicePrimaryCtxRelease_v2(0));
        ok(cuStreamSynchronize(NULL));
    }
    /* Each round uses those of others again; two in each would be forgotten. */
    g_assert_cmpuint(events(), <, had + ROUNDS);
    await_charge(before, ROUNDS * 8 * MS);
}

static void primary_stays(void)
{
    CUcontext context;

    kit_enter_measured("a");
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    retain_around();
}

/* By a way that the door does not see, as the runtime can. */
static CUcontext retain_unseen(void)
{
    CUresult (*retain)(CUcontext *, CUdevice) = NULL;
    CUcontext context;

    *(void **)&retain = kit_driver("cuDevicePrimaryCtxRetain");
    ok(retain(&context, 0));
    ok(cuCtxSetCurrent(context));
    return context;
}

static void primary_stays_unseen(void)
{
    kit_enter_measured("a");
    retain_unseen();
    retain_around();
}

/* With its last user it ends, and its events with it, while the work is in flight. */
static void primary_ends(void)
{
    CUcontext context;

    kit_enter_measured("a");
    for (unsigned int i = 0; i < ROUNDS; i++) {
        if (i % 2)
            retain_unseen();
        else
            ok(cuDevicePrimaryCtxRetain(&context, 0));
        if (i % 2 == 0)
            ok(cuCtxSetCurrent(context));
        kit_launch(kit_kernel(2 * MS), NULL);
        kit_launch(kit_kernel(SHORT_NS), (CUstream)(uintptr_t)0x10);
        ok(i % 3 ? cuDevicePrimaryCtxRelease_v2(0) : cuDevicePrimaryCtxReset_v2(0));
        g_usleep(3000);
    }
}

/* Of the calling thread. */
static _Thread_local unsigned int records;

static void count_record(CUstream stream)
{
    (void)stream;
    records++;
}

static void launch_own(uint64_t ns)
{
    ok(cuLaunchKernel_ptsz(kit_kernel(ns), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

/* Then two of them share a batch. */
static void learn(uint64_t ns)
{
    unsigned int before;

    do {
        before = kit_calls("cuEventRecord");
        kit_launch(kit_kernel(ns), NULL);
        kit_launch(kit_kernel(ns), NULL);
        ok(cuStreamSynchronize(NULL));
    } while (kit_calls("cuEventRecord") > before + 2);
}

static _Atomic unsigned int busy_records;

static void count_busy(CUstream stream)
{
    CUresult (*query)(CUstream) = NULL;

    *(void **)&query = kit_driver("cuStreamQuery");
    busy_records += query(stream) == CUDA_ERROR_NOT_READY;
}

/*
 * While the stream stays busy, a batch begins where the last one ends: one event for each. Whenever
 * the program is late, the stream is not busy.
 */
static void busy(void)
{
    void (**before_record)(CUstream) = NULL;

    kit_enter_measured("a");
    for (unsigned int i = 0; i < 4; i++) {
        kit_launch(kit_kernel(2 * MS), NULL);
        ok(cuStreamSynchronize(NULL));
    }
    before_record = kit_driver("fake_before_record");
    *before_record = count_busy;
    for (unsigned int i = 0; i < 20; i++)
        kit_launch(kit_kernel(2 * MS), NULL);
    ok(cuStreamSynchronize(NULL));
    /* Each is a batch. */
    g_test_message("%u events while it was busy", busy_records);
    g_assert_cmpuint(busy_records, <=, 20);
}

CUresult cuCtxSynchronize_v2(CUcontext context);

/* As kit_enter_measured() does. */
static void await_measured(void)
{
    unsigned int before, ns = 20000;

    do {
        before = kit_calls("cuEventRecord");
        kit_launch(kit_kernel(ns++), NULL);
        ok(cuStreamSynchronize(NULL));
    } while (kit_calls("cuEventRecord") < before + 2);
}

/* A program waits for a context of another GPU, or of this one, that is not its thread's. */
static void waits_elsewhere(void)
{
    void (**before_record)(CUstream) = NULL;
    CUcontext own, other[2];

    own = kit_context();
    ok(cuCtxCreate_v2(&other[0], 0, 0));
    ok(cuCtxCreate_v2(&other[1], 0, 1));
    before_record = kit_driver("fake_before_record");
    *before_record = count_record;
    for (unsigned int i = 0; i < 2; i++) {
        CUcontext now = NULL;

        ok(cuCtxSetCurrent(other[i]));
        await_measured();
        learn(400000);
        /* Unless the door's own thread was sooner. */
        for (unsigned int k = 0; k < 100 && now != own; k++) {
            ok(cuCtxSetCurrent(other[i]));
            kit_launch(kit_kernel(400000), NULL);
            ok(cuCtxSetCurrent(own));
            records = 0;
            ok(cuCtxSynchronize_v2(other[i]));
            if (records == 1)
                ok(cuCtxGetCurrent(&now));
        }
        g_assert_true(now == own);
    }
}

static void test_waits_elsewhere(void)
{
    kit_open_devices("[slice]\ncap=50\nhard=true\n", "[slice]\ncap=50\nhard=true\n");
    kit_run(waits_elsewhere);
    kit_close();
}

#define OWN_NS     100000u
#define OWN_ROUNDS 50

static pthread_barrier_t barrier;

/* A thread whose own stream waits for what comes at last. */
static void *far_behind(void *context)
{
    ok(cuCtxSetCurrent(context));
    ok(cuStreamWaitValue32_v2(CU_STREAM_PER_THREAD, 0, 1, 0));
    for (unsigned int i = 0; i < OWN_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        records = 0;
        launch_own(OWN_NS);
        /* It is of no batch of the other thread's: there is one before it, at least. */
        if (!i)
            g_assert_cmpuint(records, >=, 1);
        for (unsigned int k = 0; k < 3; k++)
            launch_own(OWN_NS);
        pthread_barrier_wait(&barrier);
    }
    /* Of open batches, there is only the other thread's last one. */
    pthread_barrier_wait(&barrier);
    g_assert_cmpint(cuStreamQuery_ptsz(NULL), ==, CUDA_ERROR_NOT_READY);
    ok(cuStreamWriteValue32_v2((CUstream)(uintptr_t)0x330, 0, 1, 0));
    records = 0;
    ok(cuCtxSynchronize());
    g_assert_cmpuint(records, ==, 0);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Each thread has a default stream of its own, of the same name. */
static void own_streams(void)
{
    void (**before_record)(CUstream) = NULL;
    CUcontext context;
    GThread *thread;
    gint64 before;

    kit_enter_measured("a");
    learn(OWN_NS);
    before_record = kit_driver("fake_before_record");
    *before_record = count_record;
    ok(cuCtxGetCurrent(&context));
    pthread_barrier_init(&barrier, NULL, 2);
    thread = g_thread_new("behind", far_behind, context);
    before = live_status(&kit_live, "a", "gpu_ns");
    for (unsigned int i = 0; i < OWN_ROUNDS; i++) {
        launch_own(OWN_NS);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        ok(cuStreamSynchronize_ptsz(NULL));
    }
    launch_own(OWN_NS);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    await_charge(before, OWN_ROUNDS * OWN_NS * 8 / 10);
    g_thread_join(thread);
}

/* However much waits before it: what has ended is seen. */
static void many_wait(void)
{
    CUstream waiting = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;
    gint64 before;

    kit_enter_measured("a");
    ok(cuStreamWaitValue32_v2(waiting, 0, 1, 0));
    for (unsigned int i = 0; i < 80; i++)
        kit_launch(kit_kernel(MS), waiting);
    before = live_status(&kit_live, "a", "gpu_ns");
    for (unsigned int i = 0; i < 20; i++) {
        kit_launch(kit_kernel(MS), other);
        ok(cuStreamSynchronize(other));
    }
    await_charge(before, 16 * MS);
}

static void test_changes(void)
{
    run_measured(changes);
}

static void test_primary_stays(void)
{
    run_measured(primary_stays);
    run_measured(primary_stays_unseen);
}

static void test_primary_ends(void)
{
    run_measured(primary_ends);
}

static void test_own_streams(void)
{
    run_measured(own_streams);
}

static void test_many_wait(void)
{
    run_measured(many_wait);
}

static void test_gathered(void)
{
    run_measured(gathered);
}

static void test_busy(void)
{
    run_measured(busy);
}

static void test_capturing(void)
{
    run_measured(capturing);
}

static void test_captured_with_a_batch(void)
{
    run_measured(captured_with_a_batch);
}

static void test_context_ends(void)
{
    run_measured(context_ends);
}

static void test_green_context_ends(void)
{
    run_measured(green_context_ends);
}

static void test_waits(void)
{
    run_measured(waits);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/time/changes", test_changes);
    g_test_add_func("/time/gathered", test_gathered);
    g_test_add_func("/time/busy", test_busy);
    g_test_add_func("/time/capturing", test_capturing);
    g_test_add_func("/time/captured-with-a-batch", test_captured_with_a_batch);
    g_test_add_func("/time/context-ends", test_context_ends);
    g_test_add_func("/time/green-context-ends", test_green_context_ends);
    g_test_add_func("/time/primary-stays", test_primary_stays);
    g_test_add_func("/time/primary-ends", test_primary_ends);
    g_test_add_func("/time/own-streams", test_own_streams);
    g_test_add_func("/time/waits", test_waits);
    g_test_add_func("/time/many-wait", test_many_wait);
    g_test_add_func("/time/waits-elsewhere", test_waits_elsewhere);
    return g_test_run();
}
