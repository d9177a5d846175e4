// SPDX-License-Identifier: MIT
/*
 * A slice is charged what the card did for it, however it launches: with streams that overlap, with
 * pauses, with waits inside of what it launches, and with kernels that take longer than they did.
 * The slice has a hard cap that it does not reach, so it is always measured.
 */
#include "fake.h"
#include "kit.h"

#include <sys/mman.h>

#define MS 1000000u

static const CUstream one = (CUstream)(uintptr_t)0x110, two = (CUstream)(uintptr_t)0x220;

static void set_varying(uint64_t ns)
{
    uint64_t *varying_ns = kit_driver("fake_varying_ns");

    *varying_ns = ns;
}

static gint64 charged(void)
{
    return live_status(&kit_live, "a", "gpu_ns");
}

/* What is added to the charge by @program, which ends when the card has done its work. */
static gint64 charge_of(void (*program)(void))
{
    gint64 before, last;

    g_usleep(20000);
    before = last = charged();
    program();
    /* Whatever is not seen at once is charged soon. */
    for (unsigned int still = 0; still < 3; still++) {
        g_usleep(20000);
        if (charged() != last)
            still = 0;
        last = charged();
    }
    g_test_message("charged %.2f ms", (double)(last - before) / MS);
    return last - before;
}

/* From then on the kernel is known as a short one. */
static void learn_short(void)
{
    set_varying(10000);
    for (unsigned int i = 0; i < 20; i++) {
        kit_launch(FAKE_VARIES, NULL);
        ok(cuStreamSynchronize(NULL));
    }
}

#define GRAPHS 3

static CUgraphExec graph;

/* One graph of ten kernels of 10 ms each. */
static void make_graph(void)
{
    CUgraph captured = NULL;

    ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned int i = 0; i < 10; i++)
        kit_launch(kit_kernel(10 * MS), one);
    ok(cuStreamEndCapture(one, &captured));
    ok(cuGraphInstantiateWithFlags(&graph, captured, 0));
}

/* Ends of another stream come all the time while a graph runs. */
static void beside_graphs(void (*launch)(void))
{
    for (unsigned int i = 0; i < GRAPHS; i++) {
        ok(cuGraphLaunch(graph, one));
        while (cuStreamQuery(one) == CUDA_ERROR_NOT_READY) {
            launch();
            ok(cuStreamSynchronize(two));
            g_usleep(500);
        }
    }
}

static void launch_kernel(void)
{
    kit_launch(kit_kernel(20000), two);
}

static void launch_copy(void)
{
    ok(cuMemcpyHtoDAsync_v2(0, NULL, 2 * MIB, two));
}

static void kernels_beside(void)
{
    beside_graphs(launch_kernel);
}

static void copies_beside(void)
{
    beside_graphs(launch_copy);
}

/* The card worked for 100 ms for each graph, and a little longer where others overlapped. */
static void overlap(void)
{
    kit_enter_measured("a");
    make_graph();
    g_assert_cmpint(charge_of(kernels_beside), >, GRAPHS * 95 * (gint64)MS);
    g_assert_cmpint(charge_of(copies_beside), >, GRAPHS * 95 * (gint64)MS);
}

#define WAITING 40

/* The same beside many streams that wait, with a kernel behind. */
static void beside_waiting(void)
{
    kit_enter_measured("a");
    make_graph();
    learn_short();
    for (unsigned int i = 0; i < WAITING; i++) {
        CUstream stream = (CUstream)(uintptr_t)(0x10000 + 0x40 * i);

        ok(cuStreamWaitValue32_v2(stream, 16, 1, 0));
        kit_launch(FAKE_VARIES, stream);
    }
    g_usleep(50000);
    g_assert_cmpint(charge_of(kernels_beside), >, GRAPHS * 95 * (gint64)MS);
}

/* A stream of the same process is charged once for the time that both have. */
static void two_streams(void)
{
    kit_launch(kit_kernel(13 * MS), one);
    kit_launch(kit_kernel(13 * MS), two);
    ok(cuStreamSynchronize(one));
    ok(cuStreamSynchronize(two));
}

static void once(void)
{
    gint64 charge;

    kit_enter_measured("a");
    charge = charge_of(two_streams);
    g_assert_cmpint(charge, >, 19 * (gint64)MS);
    g_assert_cmpint(charge, <, 28 * (gint64)MS);
}

#define ROUNDS 10

/* The program works for a while between a launch and the wait for it. */
static void with_pauses(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        kit_launch(FAKE_VARIES, NULL);
        g_usleep(400);
        ok(cuStreamSynchronize(NULL));
    }
}

/* 10 kernels of 5 ms that were known as kernels of 10 us. */
static void sparse(void)
{
    gint64 charge;

    kit_enter_measured("a");
    learn_short();
    set_varying(5 * MS);
    charge = charge_of(with_pauses);
    g_assert_cmpint(charge, >, 40 * (gint64)MS);
    g_assert_cmpint(charge, <, 60 * (gint64)MS);
}

/* The program's own time is not the card's, however it is spread. */
static void pauses(void)
{
    for (unsigned int i = 0; i < 4 * ROUNDS; i++) {
        kit_launch(FAKE_VARIES, NULL);
        g_usleep(1500);
        kit_launch(FAKE_VARIES, NULL);
        ok(cuStreamSynchronize(NULL));
    }
}

static void sparse_is_not_more(void)
{
    kit_enter_measured("a");
    learn_short();
    /* They are 60 ms. */
    g_assert_cmpint(charge_of(pauses), <, 16 * (gint64)MS);
}

/* The program makes no call until the kernel has said by a flag that it has ended. */
static void silently(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        kit_launch(FAKE_VARIES, NULL);
        g_usleep(15000);
    }
}

static void stale(void)
{
    gint64 charge;

    kit_enter_measured("a");
    learn_short();
    set_varying(5 * MS);
    charge = charge_of(silently);
    g_assert_cmpint(charge, >, 35 * (gint64)MS);
    g_assert_cmpint(charge, <, 75 * (gint64)MS);
}

/* The same on the thread's own default stream, where nobody else can record an event. */
static void silently_own(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        ok(cuLaunchKernel_ptsz(FAKE_VARIES, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        g_usleep(15000);
    }
}

/* Once it was seen to be silent, each launch has its end. */
static void stale_own(void)
{
    gint64 charge;

    kit_enter_measured("a");
    learn_short();
    set_varying(5 * MS);
    charge = charge_of(silently_own);
    g_assert_cmpint(charge, >, 35 * (gint64)MS);
    g_assert_cmpint(charge, <, 75 * (gint64)MS);
}

#define POLLS 400

static uint64_t kernel_us;

/* The same again and again: the program looks at the flag, and launches the next one. */
static void poll_and_launch(void)
{
    for (unsigned int i = 0; i < POLLS; i++) {
        gint64 until = g_get_monotonic_time() + (gint64)kernel_us + 10;

        kit_launch(FAKE_VARIES, NULL);
        while (g_get_monotonic_time() < until)
            ;
    }
    ok(cuStreamSynchronize(NULL));
}

/*
 * Kernels that were known as shorter ones. When the door looks cannot be foreseen, so it finds some
 * of them running, and learns from them; shorter ones than that are charged twice their estimate.
 */
static void polls(void)
{
    static const unsigned int us[] = {80, 150, 250, 400};

    kit_enter_measured("a");
    for (unsigned int i = 0; i < G_N_ELEMENTS(us); i++) {
        learn_short();
        kernel_us = us[i];
        set_varying(us[i] * 1000);
        g_test_message("%u us: %.1f ms of work", us[i], us[i] * POLLS / 1e3);
        g_assert_cmpint(charge_of(poll_and_launch), >, us[i] * 1000 * POLLS / 4);
    }
}

static _Atomic uint32_t word;

/* As another process would do, or a network card. */
static void *write_later(void *data)
{
    g_usleep(20000);
    word = GPOINTER_TO_UINT(data);
    return NULL;
}

/* Two short kernels with a wait of 20 ms between them, in one stream. */
static void wait_inside(void)
{
    for (unsigned int i = 1; i <= ROUNDS; i++) {
        GThread *writer = g_thread_new("writer", write_later, GUINT_TO_POINTER(i));

        kit_launch(FAKE_VARIES, one);
        ok(cuStreamWaitValue32_v2(one, (uintptr_t)&word, i, 0));
        kit_launch(FAKE_VARIES, one);
        ok(cuStreamSynchronize(one));
        g_thread_join(writer);
    }
}

/* 20 kernels of 10 us. */
static void waits(void)
{
    kit_enter_measured("a");
    learn_short();
    g_assert_cmpint(charge_of(wait_inside), <, 20 * (gint64)MS);
    /* Nor is the kernel taken for a long one from then on. */
    g_assert_cmpint(charge_of(with_pauses), <, 2 * (gint64)MS);
}

static uint64_t waiting_ms(void)
{
    uint64_t (*waiting_ns)(unsigned int) = NULL;

    *(void **)&waiting_ns = kit_driver("fake_waiting_ns");
    return waiting_ns(0) / MS;
}

/*
 * While one stream waits for long, the others do not queue more than before: a lease of some ms,
 * not all that the thread can launch meanwhile.
 */
static void stuck(void)
{
    uint64_t most = 0, waits_there;

    kit_enter_measured("a");
    for (unsigned int i = 0; i < 5; i++) {
        kit_launch(kit_kernel(10 * MS), two);
        ok(cuStreamSynchronize(two));
    }
    ok(cuStreamWaitValue32_v2(one, (uintptr_t)&word, 1, 0));
    kit_launch(kit_kernel(MS), one);
    g_usleep(60000);
    waits_there = waiting_ms();
    for (unsigned int i = 0; i < 40; i++) {
        kit_launch(kit_kernel(10 * MS), two);
        most = MAX(most, waiting_ms() - waits_there);
    }
    word = 1;
    ok(cuCtxSynchronize());
    g_test_message("%u ms queued", (unsigned int)most);
    g_assert_cmpuint(most, <, 60);
}

static _Atomic bool is_on_its_way, may_go, refuses, is_refused;
static _Thread_local bool is_other;
static CUcontext context;

/*
 * The other thread's launch is held on its way to the driver; one may be refused meanwhile. They
 * are together in a batch if no more than some 100 us pass between them, as in most rounds.
 */
static CUresult hold_launch(CUfunction function, CUstream stream)
{
    (void)function;
    (void)stream;
    if (!is_other && refuses) {
        is_refused = true;
        while (!is_on_its_way)
            g_usleep(100);
        return CUDA_ERROR_INVALID_VALUE;
    }
    is_on_its_way |= is_other;
    while (is_other && !may_go)
        g_usleep(100);
    return CUDA_SUCCESS;
}

static void *launch_other(void *data)
{
    ok(cuCtxSetCurrent(context));
    if (data)
        kit_launch(FAKE_VARIES, one);
    is_other = true;
    kit_launch(FAKE_VARIES, one);
    return NULL;
}

/* Returns when a launch of another thread is on its way to the driver, which holds it. */
static GThread *begin_launch(GThreadFunc launch, void *data)
{
    GThread *thread;

    is_on_its_way = may_go = false;
    thread = g_thread_new("launches", launch, data);
    while (!is_on_its_way)
        g_usleep(100);
    return thread;
}

/* Its batch ends meanwhile, because this thread waits for the stream. */
static void close_meanwhile(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        GThread *thread = begin_launch(launch_other, context);
        ok(cuStreamSynchronize(one));
        set_varying(5 * MS);
        may_go = true;
        g_thread_join(thread);
        ok(cuStreamSynchronize(one));
        set_varying(10000);
    }
}

static void enter_and_hold(void)
{
    CUresult (**before)(CUfunction, CUstream) = NULL;
    unsigned int records;

    kit_enter_measured("a");
    learn_short();
    /* Until two of them are a batch. */
    do {
        records = kit_calls("cuEventRecord");
        kit_launch(FAKE_VARIES, NULL);
        kit_launch(FAKE_VARIES, NULL);
        ok(cuStreamSynchronize(NULL));
    } while (kit_calls("cuEventRecord") > records + 2);
    ok(cuCtxGetCurrent(&context));
    before = kit_driver("fake_before_launch");
    *before = hold_launch;
}

/* 10 kernels of 5 ms, each of which came to the driver behind the end of its batch. */
static void closed_meanwhile(void)
{
    gint64 charge;

    enter_and_hold();
    charge = charge_of(close_meanwhile);
    g_assert_cmpint(charge, >, 45 * (gint64)MS);
    g_assert_cmpint(charge, <, 200 * (gint64)MS);
}

/* Nobody waits for the stream: the batch is quiet for so long that the door ends it. */
static void leave_behind(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        GThread *thread;

        is_on_its_way = may_go = false;
        thread = g_thread_new("launches", launch_other, context);
        while (!is_on_its_way)
            g_usleep(100);
        g_usleep(10000);
        set_varying(5 * MS);
        may_go = true;
        g_thread_join(thread);
        ok(cuStreamSynchronize(one));
        set_varying(10000);
    }
}

/*
 * The same, by a thread that the program holds up for long. On a busy machine it is held up for
 * longer in some rounds, which are charged by the estimates (end_meanwhile()). If all were, it
 * would be 2 ms.
 */
static void left_behind(void)
{
    gint64 charge;

    enter_and_hold();
    charge = charge_of(leave_behind);
    g_assert_cmpint(charge, >, 20 * (gint64)MS);
    g_assert_cmpint(charge, <, 75 * (gint64)MS);
}

static void *refuse_one(void *data)
{
    (void)data;
    ok(cuCtxSetCurrent(context));
    g_assert_cmpint(cuLaunchKernel(FAKE_VARIES, 1, 1, 1, 32, 1, 1, 0, one, NULL, NULL), ==,
                    CUDA_ERROR_INVALID_VALUE);
    return NULL;
}

/* It ends by itself meanwhile: what is on its way for so long is charged by the estimates. */
static void end_meanwhile(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        GThread *thread = begin_launch(launch_other, context);
        g_usleep(20000);
        may_go = true;
        g_thread_join(thread);
        ok(cuStreamSynchronize(one));
    }
}

/* 20 kernels of 300 us, and pauses of 200 ms. */
static void ended_meanwhile(void)
{
    gint64 charge;

    enter_and_hold();
    set_varying(300000);
    for (unsigned int i = 0; i < 40; i++) {
        kit_launch(FAKE_VARIES, NULL);
        ok(cuStreamSynchronize(NULL));
    }
    charge = charge_of(end_meanwhile);
    g_assert_cmpint(charge, >, 5 * (gint64)MS);
    g_assert_cmpint(charge, <, 40 * (gint64)MS);
}

/* The first launch of a batch fails while another one is on its way. */
static void fail_meanwhile(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        GThread *first, *second;

        is_on_its_way = may_go = is_refused = false;
        refuses = true;
        first = g_thread_new("fails", refuse_one, NULL);
        while (!is_refused)
            g_usleep(100);
        second = g_thread_new("launches", launch_other, NULL);
        g_thread_join(first);
        refuses = false;
        set_varying(5 * MS);
        may_go = true;
        g_thread_join(second);
        ok(cuStreamSynchronize(one));
        set_varying(10000);
    }
}

static void failed_meanwhile(void)
{
    gint64 charge;

    enter_and_hold();
    charge = charge_of(fail_meanwhile);
    g_assert_cmpint(charge, >, 45 * (gint64)MS);
    g_assert_cmpint(charge, <, 200 * (gint64)MS);
}

static void run(const void *program)
{
    kit_open_two("[slice]\ncap=99\nhard=true\n", "[slice]\n");
    kit_run(program);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/charge/overlap", overlap, run);
    g_test_add_data_func("/charge/beside-waiting", beside_waiting, run);
    g_test_add_data_func("/charge/once", once, run);
    g_test_add_data_func("/charge/sparse", sparse, run);
    g_test_add_data_func("/charge/sparse-is-not-more", sparse_is_not_more, run);
    g_test_add_data_func("/charge/stale", stale, run);
    g_test_add_data_func("/charge/stale-own", stale_own, run);
    g_test_add_data_func("/charge/polls", polls, run);
    g_test_add_data_func("/charge/waits", waits, run);
    g_test_add_data_func("/charge/stuck", stuck, run);
    g_test_add_data_func("/charge/closed-meanwhile", closed_meanwhile, run);
    g_test_add_data_func("/charge/ended-meanwhile", ended_meanwhile, run);
    g_test_add_data_func("/charge/left-behind", left_behind, run);
    g_test_add_data_func("/charge/failed-meanwhile", failed_meanwhile, run);
    return g_test_run();
}
