// SPDX-License-Identifier: MIT
/*
 * The fake card itself, without a slice: time is divided among processes and streams as on a card,
 * and what waits for something waits. Times are the card's own, by its events.
 */
#include "fake.h"
#include "nvml_abi.h"
#include "waiting.h"

#include <sys/mman.h>

#define MS 1000000u

static const CUstream one = (CUstream)(uintptr_t)0x110, two = (CUstream)(uintptr_t)0x220;

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end);
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at);
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);

static CUevent mark(CUstream stream)
{
    CUevent event;

    ok(cuEventCreate(&event, 0));
    ok(cuEventRecord(event, stream));
    return event;
}

/* Waits for both. */
static double ms_between(CUevent begin, CUevent end)
{
    float ms = 0;

    while (cuEventQuery(begin) == CUDA_ERROR_NOT_READY || cuEventQuery(end) == CUDA_ERROR_NOT_READY)
        g_usleep(100);
    ok(cuEventElapsedTime(&ms, begin, end));
    return (double)ms;
}

#define assert_near(a, b, within) g_assert_cmpfloat(ABS((a) - (b)), <, within)

/* A word of the card's memory, for which streams wait: then they begin at once. */
#define GATE 16

static CUevent mark_begin(CUstream stream)
{
    ok(cuStreamWaitValue32_v2(stream, GATE, 1, 0));
    return mark(stream);
}

static void open_gate(void)
{
    ok(cuStreamWriteValue32_v2((CUstream)(uintptr_t)0x990, GATE, 1, 0));
}

/* Two streams do 1.3 times as much as one. An event costs its stream 3 us. */
static void overlaps(void)
{
    CUevent begin, first, last;

    kit_enter(NULL);
    begin = mark_begin(one);
    mark_begin(two);
    kit_launch(kit_kernel(13 * MS), one);
    kit_launch(kit_kernel(13 * MS), two);
    first = mark(one);
    last = mark(two);
    open_gate();
    assert_near(ms_between(begin, first), 20, 0.3);
    assert_near(ms_between(begin, last), 20, 0.3);
}

static pthread_barrier_t *both;

/*
 * Each has the card for 2.09 ms, and a change takes 0.14: 42.7 ms for both, or less for one that a
 * busy machine has begin some ms later.
 */
static void beside(void)
{
    CUevent begin;
    double ms;

    kit_enter(NULL);
    pthread_barrier_wait(both);
    begin = mark(one);
    kit_launch(kit_kernel(20 * MS), one);
    ms = ms_between(begin, mark(one));
    g_assert_cmpfloat(ms, >, 30);
    g_assert_cmpfloat(ms, <, 60);
}

/* Copies there and back run beside each other and beside a kernel. */
static void copies(void)
{
    CUstream three = (CUstream)(uintptr_t)0x330;
    CUevent begin, ends[3];

    kit_enter(NULL);
    begin = mark_begin(one);
    mark_begin(two);
    mark_begin(three);
    kit_launch(kit_kernel(10 * MS), one);
    ok(cuMemcpyHtoDAsync_v2(0, NULL, 10ul * MS * FAKE_COPIES, two));
    ok(cuMemcpyDtoHAsync_v2(NULL, 0, 10ul * MS * FAKE_COPIES, three));
    ends[0] = mark(one);
    ends[1] = mark(two);
    ends[2] = mark(three);
    open_gate();
    for (unsigned int i = 0; i < 3; i++)
        assert_near(ms_between(begin, ends[i]), 10, 0.3);
}

/* A graph takes as long as what was captured, also by a stream that joined. */
static void graph_of(CUgraph *graph)
{
    CUevent event;

    ok(cuEventCreate(&event, 0));
    ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_launch(kit_kernel(2 * MS), one);
    ok(cuEventRecord(event, one));
    ok(cuStreamWaitEvent(two, event, 0));
    kit_launch(kit_kernel(3 * MS), two);
    ok(cuStreamEndCapture(one, graph));
}

static void graphs(void)
{
    CUgraph graph = NULL;
    CUgraphExec exec;
    CUevent begin, end;

    kit_enter(NULL);
    graph_of(&graph);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    begin = mark_begin(one);
    ok(cuGraphLaunch(exec, one));
    end = mark(one);
    open_gate();
    assert_near(ms_between(begin, end), 5, 0.3);
}

static _Atomic unsigned int called;

static void count_call(void *data)
{
    /* What is before it has ended. */
    g_assert_cmpint(cuEventQuery(data), ==, CUDA_SUCCESS);
    called++;
}

static void note_callback(CUstream stream, CUresult status, void *data)
{
    g_assert_true(stream == one);
    g_assert_cmpint(status, ==, CUDA_SUCCESS);
    count_call(data);
}

/* A callback comes in its place, and a context waits with all of its streams. */
static void callbacks(void)
{
    CUcontext context;
    CUevent event;

    kit_enter(NULL);
    ok(cuCtxGetCurrent(&context));
    kit_launch(kit_kernel(MS), two);
    ok(cuStreamSynchronize(two));
    kit_launch(kit_kernel(2 * MS), one);
    event = mark(one);
    ok(cuStreamAddCallback(one, note_callback, event, 0));
    g_assert_cmpuint(called, ==, 0);
    ok(cuCtxWaitEvent(context, event));
    g_assert_cmpfloat(ms_between(event, mark(two)), >=, 0);
    ok(cuStreamSynchronize(one));
    g_assert_cmpuint(called, ==, 1);
}

/* Event, values of the card's and of the host's memory, a function of the host. */
static void waits(void)
{
    static _Atomic uint32_t word;
    CUstream three = (CUstream)(uintptr_t)0x330;
    CUevent event, end;

    kit_enter(NULL);
    kit_launch(kit_kernel(2 * MS), one);
    event = mark(one);
    ok(cuStreamWaitEvent(two, event, 0));
    g_assert_cmpfloat(ms_between(event, mark(two)), >=, 0);
    ok(cuStreamWaitValue32_v2(two, 16, 7, 1));
    kit_launch(kit_kernel(2 * MS), one);
    event = mark(one);
    ok(cuStreamWriteValue32_v2(one, 16, 7, 0));
    g_assert_cmpfloat(ms_between(event, mark(two)), >=, 0);
    ok(cuStreamWaitValue32_v2(three, (uintptr_t)&word, 1, 0));
    end = mark(three);
    g_usleep(5000);
    g_assert_cmpint(cuEventQuery(end), ==, CUDA_ERROR_NOT_READY);
    word = 1;
    ok(cuStreamSynchronize(three));
    kit_launch(kit_kernel(2 * MS), three);
    ok(cuLaunchHostFunc(three, count_call, mark(three)));
    g_assert_cmpuint(called, ==, 0);
    ok(cuCtxSynchronize());
    g_assert_cmpuint(called, ==, 1);
}

/* The default stream comes after all others, and they after it, except those that are apart. */
static void default_stream(void)
{
    static _Atomic uint32_t word;
    CUevent other, own, last, end;
    CUstream apart;

    kit_enter(NULL);
    ok(cuStreamCreate(&apart, 1));
    ok(cuStreamWaitValue32_v2(one, (uintptr_t)&word, 1, 0));
    kit_launch(kit_kernel(2 * MS), one);
    other = mark(one);
    kit_launch(kit_kernel(2 * MS), NULL);
    own = mark(NULL);
    last = mark(two);
    end = mark(apart);
    ok(cuEventSynchronize(end));
    g_assert_cmpint(cuEventQuery(own), ==, CUDA_ERROR_NOT_READY);
    word = 1;
    g_assert_cmpfloat(ms_between(other, own), >, 2);
    g_assert_cmpfloat(ms_between(own, last), >=, 0);
}

static CUgraph ended;

/* A call that may wait for the capture ends it, unless its thread says that it knows. */
static void captures(void)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr at;
    CUevent event;

    kit_enter(NULL);
    event = mark(two);
    ok(cuStreamSynchronize(two));
    ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuThreadExchangeStreamCaptureMode(&relaxed));
    ok(cuEventQuery(event));
    ok(cuMemAlloc_v2(&at, 4096));
    ok(cuThreadExchangeStreamCaptureMode(&relaxed));
    kit_launch(kit_kernel(MS), one);
    g_assert_cmpint(cuEventQuery(event), ==, FAKE_CAPTURE_UNSUPPORTED);
    g_assert_cmpint(cuStreamEndCapture(one, &ended), ==, FAKE_CAPTURE_INVALIDATED);
    ok(cuEventQuery(event));
    ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    g_assert_cmpint(cuLaunchKernel(kit_kernel(1), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), ==,
                    FAKE_CAPTURE_IMPLICIT);
    g_assert_cmpint(cuStreamEndCapture(one, &ended), ==, FAKE_CAPTURE_INVALIDATED);
}

static void faults(CUfunction function, CUresult error)
{
    CUdeviceptr at;

    kit_enter(NULL);
    kit_launch(function, one);
    g_assert_cmpint(cuStreamSynchronize(one), ==, error);
    g_assert_cmpint(cuLaunchKernel(kit_kernel(1), 1, 1, 1, 1, 1, 1, 0, two, NULL, NULL), ==, error);
    g_assert_cmpint(cuMemAlloc_v2(&at, 4096), ==, error);
}

static void illegal_address(void)
{
    faults(FAKE_FAULTS, FAKE_ILLEGAL_ADDRESS);
}

static void launch_failed(void)
{
    faults(FAKE_ASSERTS, FAKE_LAUNCH_FAILED);
}

/* Memory is free when the stream has come to that. */
static void frees(void)
{
    CUdeviceptr at;

    kit_enter(NULL);
    ok(cuMemAlloc_v2(&at, 64 * MIB));
    ok(cuStreamWaitValue32_v2(one, 16, 7, 1));
    ok(cuMemFreeAsync(at, one));
    g_assert_cmpuint(kit_on_card(), ==, 64 * MIB);
    ok(cuStreamWriteValue32_v2(two, 16, 7, 0));
    ok(cuStreamSynchronize(one));
    g_assert_cmpuint(kit_on_card(), ==, 0);
}

/* One call waits for a value and writes others, in order; and a stream waits as each flag says. */
static void batches(void)
{
    static _Atomic uint64_t word;
    struct memory_operation first[] = {{.operation = WAIT_32, .at = 32, .value = 3, .flags = 1},
                                       {.operation = WRITE_64, .at = 40, .value = 1ull << 40},
                                       {.operation = WRITE_64, .at = (uintptr_t)&word, .value = 9}};
    struct memory_operation second = {.operation = WAIT_64, .at = 40, .value = 1ull << 40};
    struct memory_operation wrong[] = {{.operation = WRITE_32, .at = 48, .value = 1},
                                       {.operation = 77}};
    CUevent event;

    kit_enter(NULL);
    ok(cuStreamBatchMemOp_v2(one, 3, (void *)first, 0));
    ok(cuStreamBatchMemOp(two, 1, (void *)&second, 0));
    event = mark(two);
    g_assert_cmpint(cuStreamBatchMemOp_v2(one, 2, (void *)wrong, 0), ==, CUDA_ERROR_INVALID_VALUE);
    ok(cuStreamWriteValue32_v2((CUstream)(uintptr_t)0x330, 32, 2, 0));
    g_assert_cmpint(cuEventQuery(event), ==, CUDA_ERROR_NOT_READY);
    ok(cuStreamWriteValue32_v2((CUstream)(uintptr_t)0x330, 32, 3, 0));
    ok(cuStreamSynchronize(two));
    ok(cuStreamSynchronize(one));
    g_assert_cmpuint(word, ==, 9);
    /* Nothing of a wrong list is done: the value is still 0. */
    ok(cuStreamWaitValue32_v2(one, 48, 0, 1));
    ok(cuStreamSynchronize(one));
    /* AND, and NOR, which passes while any bit is in neither. */
    ok(cuStreamWriteValue32_v2(one, 48, 6, 0));
    ok(cuStreamWaitValue32_v2(one, 48, 2, 2));
    ok(cuStreamWaitValue32_v2(one, 48, 2, 3));
    ok(cuStreamSynchronize(one));
    ok(cuStreamWaitValue32_v2(one, 48, ~6u, 3));
    event = mark(one);
    g_usleep(2000);
    g_assert_cmpint(cuEventQuery(event), ==, CUDA_ERROR_NOT_READY);
    ok(cuStreamWriteValue32_v2(two, 48, 4, 0));
    ok(cuStreamSynchronize(one));
}

/* A timeline's value is reached; a binary one lets one wait pass for each signal. */
static void semaphores(void)
{
    int fds[2] = {memfd_create("timeline", 0), memfd_create("binary", 0)};
    CUexternalSemaphore timeline, binary;
    CUevent event, again;

    kit_enter(NULL);
    g_assert_cmpint(ftruncate(fds[0], 8) | ftruncate(fds[1], 8), ==, 0);
    timeline = import_semaphore(fds[0], TIMELINE);
    binary = import_semaphore(fds[1], BINARY);
    wait_for_semaphore(timeline, 5, two);
    event = mark(two);
    kit_launch(kit_kernel(MS), one);
    signal_semaphore(timeline, 4, one);
    ok(cuStreamSynchronize(one));
    g_assert_cmpint(cuEventQuery(event), ==, CUDA_ERROR_NOT_READY);
    kit_launch(kit_kernel(MS), one);
    again = mark(one);
    signal_semaphore(timeline, 6, one);
    ok(cuStreamSynchronize(two));
    g_assert_cmpfloat(ms_between(again, event), >=, 0);
    wait_for_semaphore(binary, 0, two);
    event = mark(two);
    wait_for_semaphore(binary, 0, two);
    again = mark(two);
    signal_semaphore(binary, 0, one);
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
        g_usleep(100);
    g_assert_cmpint(cuEventQuery(again), ==, CUDA_ERROR_NOT_READY);
    signal_semaphore(binary, 0, one);
    ok(cuStreamSynchronize(two));
}

static void take_a_while(void *data)
{
    (void)data;
    g_usleep(20000);
    called++;
}

/* Nodes of a graph come one after the other, whatever they are, each time that it runs. */
static void graph_waits(void)
{
    struct memory_operation wait = {.operation = WAIT_32, .at = 64, .value = 1};
    const struct {
        CUcontext context;
        unsigned int count;
        const void *list;
        unsigned int flags;
    } parameters = {.count = 1, .list = &wait};
    CUevent middle, begin, end;
    CUgraphExec exec;
    CUgraphNode node;
    CUgraph graph;

    kit_enter(NULL);
    ok(cuEventCreate(&middle, 0));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &parameters));
    add_kernel(graph, MS);
    add_host(graph, take_a_while, NULL);
    ok(cuGraphAddEventRecordNode(&node, graph, NULL, 0, middle));
    add_kernel(graph, 2 * MS);
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    begin = mark(one);
    ok(cuGraphLaunch(exec, one));
    end = mark(one);
    g_usleep(3000);
    g_assert_cmpint(cuEventQuery(end), ==, CUDA_ERROR_NOT_READY);
    g_assert_cmpuint(called, ==, 0);
    ok(cuStreamWriteValue32_v2(two, 64, 1, 0));
    g_assert_cmpfloat(ms_between(begin, middle), >, 21);
    g_assert_cmpuint(called, ==, 1);
    g_assert_cmpfloat(ms_between(middle, end), >, 1.9);
    ok(cuGraphLaunch(exec, one));
    ok(cuGraphLaunch(exec, one));
    ok(cuStreamSynchronize(one));
    g_assert_cmpuint(called, ==, 3);
}

static struct {
    pthread_barrier_t barrier;
    ipc_event handle;
} *between;

static void record_for_another(void)
{
    CUevent event;

    kit_enter(NULL);
    ok(cuEventCreate(&event, FOR_OTHERS));
    g_assert_cmpint(cuEventCreate(&event, 4), ==, CUDA_ERROR_INVALID_VALUE);
    ok(cuEventCreate(&event, 0));
    g_assert_cmpint(cuIpcGetEventHandle(&between->handle, event), ==, CUDA_ERROR_INVALID_HANDLE);
    ok(cuEventCreate(&event, FOR_OTHERS));
    ok(cuIpcGetEventHandle(&between->handle, event));
    ok(cuStreamWaitValue32_v2(one, GATE, 1, 0));
    ok(cuEventRecord(event, one));
    pthread_barrier_wait(&between->barrier);
    /* The other's stream waits. */
    pthread_barrier_wait(&between->barrier);
    open_gate();
    pthread_barrier_wait(&between->barrier);
}

static void wait_for_another(void)
{
    CUevent event, end;

    kit_enter(NULL);
    pthread_barrier_wait(&between->barrier);
    ok(cuIpcOpenEventHandle(&event, between->handle));
    g_assert_cmpint(cuEventQuery(event), ==, CUDA_ERROR_NOT_READY);
    ok(cuStreamWaitEvent(one, event, 0));
    end = mark(one);
    g_usleep(3000);
    g_assert_cmpint(cuEventQuery(end), ==, CUDA_ERROR_NOT_READY);
    pthread_barrier_wait(&between->barrier);
    ok(cuEventSynchronize(end));
    ok(cuEventQuery(event));
    /* It records it, too; and what has gone with its process nobody waits for. */
    ok(cuEventRecord(event, one));
    ok(cuEventSynchronize(event));
    pthread_barrier_wait(&between->barrier);
    ok(cuStreamWaitEvent(two, event, 0));
    ok(cuStreamSynchronize(two));
}

static void test_ipc_events(void)
{
    pthread_barrierattr_t attributes;
    unsigned int number;

    between =
        mmap(NULL, sizeof(*between), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&between->barrier, &attributes, 2);
    kit_open(0);
    number = kit_start(record_for_another);
    kit_run(wait_for_another);
    kit_await(number);
    kit_close();
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice device);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *active);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed);

/* Each device has its own time, and they wait for each other; each reaches the others' memory. */
static void devices(void)
{
    CUcontext contexts[3], again;
    CUstream streams[3];
    CUevent begin[3], end[3];
    CUdeviceptr to, from;
    int count, can;

    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    g_assert_cmpint(count, ==, 3);
    for (int i = 0; i < 3; i++) {
        ok(cuDevicePrimaryCtxRetain(&contexts[i], i));
        ok(cuCtxSetCurrent(contexts[i]));
        ok(cuStreamCreate(&streams[i], 1));
        ok(cuStreamWaitValue32_v2(streams[i], GATE, 1, 0));
        begin[i] = mark(streams[i]);
        kit_launch(kit_kernel(10 * MS), streams[i]);
        end[i] = mark(streams[i]);
        ok(cuDeviceCanAccessPeer(&can, i, (i + 1) % 3));
        g_assert_true(can);
    }
    open_gate();
    for (int i = 0; i < 3; i++)
        assert_near(ms_between(begin[i], end[i]), 10, 0.3);
    /* What one device does the other one waits for. */
    ok(cuMemAlloc_v2(&from, 12 * MIB));
    ok(cuCtxSetCurrent(contexts[1]));
    ok(cuMemAlloc_v2(&to, 12 * MIB));
    ok(cuMemcpyPeerAsync(to, contexts[1], from, contexts[2], 12 * MIB, streams[1]));
    begin[1] = mark(streams[1]);
    ok(cuCtxSetCurrent(contexts[2]));
    ok(cuStreamWaitEvent(streams[2], begin[1], 0));
    end[2] = mark(streams[2]);
    g_assert_cmpfloat(ms_between(end[1], begin[1]), >, 0.9);
    g_assert_cmpfloat(ms_between(begin[1], end[2]), >=, 0);
    ok(cuCtxEnablePeerAccess(contexts[1], 0));
    g_assert_cmpint(cuCtxEnablePeerAccess(contexts[1], 0), ==, 704);
    g_assert_cmpint(cuCtxEnablePeerAccess(contexts[2], 0), ==, 217);
    ok(cuCtxDisablePeerAccess(contexts[1]));
    g_assert_cmpint(cuCtxDisablePeerAccess(contexts[1]), ==, 705);
    ok(cuDevicePrimaryCtxRetain(&again, 1));
    g_assert_true(again == contexts[1]);
}

/* NVML knows the same devices, and which links are between them. */
static void links(void)
{
    char address[16];
    nvmlDevice_t device;
    nvmlPciInfo_t info;
    unsigned int count, active, found = 0, fan;

    g_assert_cmpint(nvmlInitWithFlags(0), ==, 0);
    g_assert_cmpint(nvmlDeviceGetCount_v2(&count), ==, 0);
    g_assert_cmpuint(count, ==, 3);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(1, &device), ==, 0);
    ok(cuInit(0));
    ok(cuDeviceGetPCIBusId(address, sizeof(address), 1));
    while (nvmlDeviceGetNvLinkState(device, found, &active) == 0 && active) {
        g_assert_cmpint(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, found, &info), ==, 0);
        g_assert_cmpstr(info.busId + 4, !=, address);
        found++;
    }
    g_assert_cmpuint(found, ==, 4);
    g_assert_cmpint(nvmlDeviceGetFanSpeed(device, &fan), ==, NVML_ERROR_NOT_SUPPORTED);
}

static void run_on_three(const void *program)
{
    kit_open(0);
    g_setenv("FAKE_CUDA_DEVICES", "3", TRUE);
    kit_run(program);
    kit_close();
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device);
CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device);
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size);
CUresult cuGetErrorName(CUresult error, const char **text);
CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name);

/* What a program asks for is written, whoever wrote the function; and nothing says yes for ever. */
static void answers(void)
{
    static const char id[16];
    unsigned char uuid[16] = {0};
    const char *text = NULL;
    const void *table = id;
    CUdeviceptr at = 7;
    size_t offset, bytes = 7;
    unsigned int mask = 7, asked = 0;
    char luid[8] = "abcdefg";
    int major = -1, minor = -1, value = -1;

    kit_enter(NULL);
    for (int i = 1; i <= 132; i++, asked += value >= 0)
        ok(cuDeviceGetAttribute(&value, i, 0));
    g_assert_cmpuint(asked, ==, 132);
    ok(cuDeviceGetAttribute(&value, 8, 0));
    g_assert_cmpint(value, ==, 49152);
    g_assert_cmpint(cuDeviceGetAttribute(&value, 9999, 0), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuDeviceGetAttribute(&value, 8, 7), ==, CUDA_ERROR_INVALID_DEVICE);
    ok(cuDeviceComputeCapability(&major, &minor, 0));
    g_assert_cmpint(major * 10 + minor, ==, 100);
    ok(cuDeviceGetUuid_v2(uuid, 0));
    g_assert_cmpint(uuid[0], ==, 0x3b);
    ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    g_assert_cmpstr(text, ==, "CUDA_ERROR_OUT_OF_MEMORY");
    g_assert_cmpint(cuGetErrorName((CUresult)12345, &text), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuFuncGetParamInfo(kit_kernel(1), 0, &offset, &bytes), !=, CUDA_SUCCESS);
    g_assert_cmpint(cuGetExportTable(&table, id), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_null(table);
    /* These only remember what they were given. */
    ok(cuDeviceGetLuid(luid, &mask, 0));
    g_assert_cmpmem(luid, 8, id, 8);
    g_assert_cmpuint(mask, ==, 0);
    ok(cuModuleGetGlobal_v2(&at, &bytes, NULL, "x"));
    g_assert_cmpuint(at + bytes, ==, 0);
}

#define CHUNK (2 * MIB)

static CUmemGenericAllocationHandle map_chunk(CUdeviceptr at)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;

    ok(cuMemCreate(&handle, CHUNK, &property, 0));
    ok(cuMemMap(at, CHUNK, 0, handle, 0));
    return handle;
}

static void allow(CUdeviceptr at, size_t bytes)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    ok(cuMemSetAccess(at, bytes, &access, 1));
}

/* Memory is the handle's, wherever it is mapped, and a copy goes over several. */
static void mapped(void)
{
    CUmemGenericAllocationHandle first, second;
    unsigned int words[2] = {0};
    CUdeviceptr at, base;
    size_t bytes;

    kit_enter(NULL);
    ok(cuMemAddressReserve(&at, 2 * CHUNK, 0, 0, 0));
    first = map_chunk(at);
    second = map_chunk(at + CHUNK);
    allow(at, 2 * CHUNK);
    ok(cuMemsetD32_v2(at, 1, CHUNK / 4));
    ok(cuMemsetD32_v2(at + CHUNK, 2, CHUNK / 4));
    ok(cuMemcpyDtoH_v2(words, at + CHUNK - 4, sizeof(words)));
    g_assert_cmpuint(words[0], ==, 1);
    g_assert_cmpuint(words[1], ==, 2);
    ok(cuMemGetAddressRange_v2(&base, &bytes, at + CHUNK + 5));
    g_assert_cmphex(base, ==, at + CHUNK);
    ok(cuMemUnmap(at, 2 * CHUNK));
    g_assert_cmpint(cuMemGetAddressRange_v2(&base, &bytes, at), !=, CUDA_SUCCESS);
    ok(cuMemMap(at, CHUNK, 0, second, 0));
    allow(at, CHUNK);
    ok(cuMemcpyDtoH_v2(words, at, 4));
    g_assert_cmpuint(words[0], ==, 2);
    g_assert_cmpint(cuMemAddressFree(at, 2 * CHUNK), !=, CUDA_SUCCESS);
    ok(cuMemUnmap(at, CHUNK));
    ok(cuMemRelease(first));
    ok(cuMemRelease(second));
    ok(cuMemAddressFree(at, 2 * CHUNK));
    g_assert_cmpuint(kit_on_card(), ==, 0);
}

static void read_unmapped(void)
{
    CUdeviceptr at;
    unsigned int word;

    kit_enter(NULL);
    ok(cuMemAddressReserve(&at, CHUNK, 0, 0, 0));
    cuMemcpyDtoH_v2(&word, at, sizeof(word));
}

static void read_forbidden(void)
{
    CUdeviceptr at;
    unsigned int word;

    kit_enter(NULL);
    ok(cuMemAddressReserve(&at, CHUNK, 0, 0, 0));
    map_chunk(at);
    cuMemcpyDtoH_v2(&word, at, sizeof(word));
}

/* The call that is said to find no memory finds none, and the next one does. */
static void fails_to_create(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;

    g_setenv("FAKE_CUDA_FAIL_CREATE", "2", TRUE);
    kit_enter(NULL);
    ok(cuMemCreate(&handle, CHUNK, &property, 0));
    full(cuMemCreate(&handle, CHUNK, &property, 0));
    ok(cuMemCreate(&handle, CHUNK, &property, 0));
}

static void run(const void *program)
{
    kit_open(0);
    kit_run(program);
    kit_close();
}

static void run_content(const void *program)
{
    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    run(program);
    g_unsetenv("FAKE_CUDA_CONTENT");
}

/* Who reads where no memory is does not go on. */
static void run_fatal(const void *program)
{
    void (*const fatal)(void) = (void (*)(void))program;

    g_setenv("FAKE_CUDA_CONTENT", "1", TRUE);
    kit_open(0);
    g_assert_cmpint(kit_end_of(kit_start(fatal)), !=, 0);
    kit_close();
    g_unsetenv("FAKE_CUDA_CONTENT");
}

static void test_processes(void)
{
    pthread_barrierattr_t shared;
    unsigned int number;

    both = mmap(NULL, sizeof(*both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(both, &shared, 2);
    kit_open(0);
    number = kit_start(beside);
    kit_run(beside);
    kit_await(number);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fake/processes", test_processes);
    g_test_add_data_func("/fake/overlaps", overlaps, run);
    g_test_add_data_func("/fake/copies", copies, run);
    g_test_add_data_func("/fake/graphs", graphs, run);
    g_test_add_data_func("/fake/waits", waits, run);
    g_test_add_data_func("/fake/callbacks", callbacks, run);
    g_test_add_data_func("/fake/default-stream", default_stream, run);
    g_test_add_data_func("/fake/captures", captures, run);
    g_test_add_data_func("/fake/illegal-address", illegal_address, run);
    g_test_add_data_func("/fake/launch-failed", launch_failed, run);
    g_test_add_data_func("/fake/frees", frees, run);
    g_test_add_data_func("/fake/answers", answers, run);
    g_test_add_data_func("/fake/mapped", mapped, run_content);
    g_test_add_data_func("/fake/unmapped", read_unmapped, run_fatal);
    g_test_add_data_func("/fake/forbidden", read_forbidden, run_fatal);
    g_test_add_data_func("/fake/fails-to-create", fails_to_create, run);
    g_test_add_data_func("/fake/batches", batches, run);
    g_test_add_data_func("/fake/semaphores", semaphores, run);
    g_test_add_data_func("/fake/graph-waits", graph_waits, run);
    g_test_add_func("/fake/ipc-events", test_ipc_events);
    g_test_add_data_func("/fake/devices", devices, run_on_three);
    g_test_add_data_func("/fake/links", links, run_on_three);
    return g_test_run();
}
