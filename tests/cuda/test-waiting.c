// SPDX-License-Identifier: MIT
/*
 * A slice is charged for what the card did, not for what its streams wait for, by whichever means:
 * and for all of what comes behind the wait. The slice has a hard cap that it does not reach, so it
 * is always measured.
 */
#include "fake.h"
#include "waiting.h"

#include <sys/mman.h>

#define MS 1000000

static const CUstream one = (CUstream)(uintptr_t)0x110;

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
    for (unsigned int still = 0; still < 3; still++) {
        g_usleep(20000);
        if (charged() != last)
            still = 0;
        last = charged();
    }
    g_test_message("charged %.2f ms", (double)(last - before) / MS);
    return last - before;
}

#define ROUNDS  4
#define WAIT_MS 15

/* What is shared with whoever ends the wait. */
static struct words {
    _Atomic uint64_t batch;
    _Atomic uint64_t host;
    pthread_barrier_t barrier;
    ipc_event handle;
} *words;

/* How a stream waits, and how the round's wait is ended, by another thread. */
struct way {
    void (*wait)(unsigned int round);
    void (*end)(unsigned int round);
};

static const struct way *way;

static void *end_later(void *round)
{
    g_usleep(WAIT_MS * 1000);
    way->end(GPOINTER_TO_UINT(round));
    return NULL;
}

/* A kernel of 0.1 ms, a wait of 15 ms, and a kernel of 2 ms. */
static void rounds(void)
{
    for (unsigned int i = 1; i <= ROUNDS; i++) {
        GThread *thread = g_thread_new("ends", end_later, GUINT_TO_POINTER(i));

        kit_launch(kit_kernel(MS / 10), one);
        way->wait(i);
        kit_launch(kit_kernel(2 * MS), one);
        ok(cuStreamSynchronize(one));
        g_thread_join(thread);
    }
}

static void measure(const struct way *of)
{
    gint64 charge;

    way = of;
    /* Both kernels are known from then on. */
    for (unsigned int i = 0; i < 5; i++) {
        kit_launch(kit_kernel(MS / 10), one);
        ok(cuStreamSynchronize(one));
        kit_launch(kit_kernel(2 * MS), one);
        ok(cuStreamSynchronize(one));
    }
    charge = charge_of(rounds);
    g_assert_cmpint(charge, >, ROUNDS * 2 * MS);
    g_assert_cmpint(charge, <, ROUNDS * 4 * MS);
}

static void wait_by_batch(unsigned int round)
{
    struct memory_operation list[] = {
        {.operation = WRITE_64, .at = 32, .value = round},
        {.operation = WAIT_64, .at = (uintptr_t)&words->batch, .value = round}};

    ok(cuStreamBatchMemOp_v2(one, 2, (void *)list, 0));
}

static void end_by_word(unsigned int round)
{
    words->batch = round;
}

static void batch(void)
{
    kit_enter_measured("a");
    measure(&(const struct way){wait_by_batch, end_by_word});
}

static CUevent own_event;

/* All of the context waits for what another of its streams waits for. */
static void wait_by_context(unsigned int round)
{
    CUstream apart = (CUstream)(uintptr_t)0x220;
    CUcontext context;

    ok(cuCtxGetCurrent(&context));
    ok(cuStreamWaitValue64_v2(apart, (uintptr_t)&words->batch, round, 0));
    ok(cuEventRecord(own_event, apart));
    ok(cuCtxWaitEvent(context, own_event));
}

static void context(void)
{
    kit_enter_measured("a");
    ok(cuEventCreate(&own_event, 0));
    measure(&(const struct way){wait_by_context, end_by_word});
}

static CUexternalSemaphore semaphore;
static _Atomic uint64_t *semaphore_state;

static void wait_by_timeline(unsigned int round)
{
    wait_for_semaphore(semaphore, round, one);
}

static void end_by_timeline(unsigned int round)
{
    *semaphore_state = round;
}

static void wait_by_binary(unsigned int round)
{
    (void)round;
    wait_for_semaphore(semaphore, 0, one);
}

static void end_by_binary(unsigned int round)
{
    (void)round;
    *semaphore_state = 1;
}

/* Of another driver, which signals it without CUDA. */
static void share_semaphore(unsigned int type)
{
    int fd = memfd_create("semaphore", 0);

    g_assert_cmpint(ftruncate(fd, 8), ==, 0);
    semaphore_state = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    semaphore = import_semaphore(fd, type);
}

static void timeline(void)
{
    kit_enter_measured("a");
    share_semaphore(TIMELINE);
    measure(&(const struct way){wait_by_timeline, end_by_timeline});
}

static void binary(void)
{
    kit_enter_measured("a");
    share_semaphore(BINARY);
    measure(&(const struct way){wait_by_binary, end_by_binary});
}

static CUevent theirs;

/* The other's stream waits for the same word; its event is behind that. */
static void wait_for_other(unsigned int round)
{
    (void)round;
    pthread_barrier_wait(&words->barrier);
    pthread_barrier_wait(&words->barrier);
    ok(cuStreamWaitEvent(one, theirs, 0));
}

static void end_by_host(unsigned int round)
{
    words->host = round;
}

static void other_process(void)
{
    CUevent event;

    kit_enter("b");
    ok(cuEventCreate(&event, FOR_OTHERS));
    ok(cuIpcGetEventHandle(&words->handle, event));
    pthread_barrier_wait(&words->barrier);
    for (unsigned int i = 1; i <= ROUNDS; i++) {
        pthread_barrier_wait(&words->barrier);
        ok(cuStreamWaitValue64_v2(one, (uintptr_t)&words->host, i, 0));
        ok(cuEventRecord(event, one));
        pthread_barrier_wait(&words->barrier);
        ok(cuStreamSynchronize(one));
    }
}

static void event_of_another(void)
{
    kit_enter_measured("a");
    pthread_barrier_wait(&words->barrier);
    ok(cuIpcOpenEventHandle(&theirs, words->handle));
    measure(&(const struct way){wait_for_other, end_by_host});
}

static CUgraphExec exec;

static void take_a_while(void *data)
{
    (void)data;
    g_usleep(10000);
}

static void launch_graphs(void)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        ok(cuGraphLaunch(exec, one));
        ok(cuStreamSynchronize(one));
    }
}

/*
 * A graph is measured as a whole: two kernels of 2 ms, and a function of the host of 10 ms between
 * them. All of the work is charged, and at most the time from its begin to its end.
 */
static void graph_with_host(void)
{
    CUgraph graph;
    gint64 charge;

    kit_enter_measured("a");
    ok(cuGraphCreate(&graph, 0));
    add_kernel(graph, 2 * MS);
    add_host(graph, take_a_while, NULL);
    add_kernel(graph, 2 * MS);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    charge = charge_of(launch_graphs);
    g_assert_cmpint(charge, >, ROUNDS * 4 * MS);
    g_assert_cmpint(charge, <, ROUNDS * 40 * (gint64)MS);
}

static void open_words(void)
{
    pthread_barrierattr_t shared;

    words = mmap(NULL, sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&words->barrier, &shared, 2);
    kit_open_two("[slice]\ncap=99\nhard=true\n", "[slice]\n");
}

static void run(const void *program)
{
    open_words();
    kit_run(program);
    kit_close();
}

static void test_event_of_another(void)
{
    unsigned int number;

    open_words();
    number = kit_start(other_process);
    kit_run(event_of_another);
    kit_await(number);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/waiting/batch", batch, run);
    g_test_add_data_func("/waiting/context", context, run);
    g_test_add_data_func("/waiting/timeline", timeline, run);
    g_test_add_data_func("/waiting/binary", binary, run);
    g_test_add_func("/waiting/event-of-another", test_event_of_another);
    g_test_add_data_func("/waiting/graph-with-host", graph_with_host, run);
    return g_test_run();
}
