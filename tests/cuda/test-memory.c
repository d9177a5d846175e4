// SPDX-License-Identifier: MIT
/*
 * What each kind of memory costs a slice, to the byte: by the arbiter and by the card. Beyond the
 * limit a call returns CUDA's own error and changes nothing. The driver frees first.
 */
#include "kit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT (64 * MIB)

static void in_slice(uint64_t vram, void (*program)(void))
{
    kit_open(vram);
    kit_run(program);
    kit_close();
}

/* Each has the same in the ledger and on the card. */
static void both(uint64_t bytes)
{
    kit_charged(bytes);
    g_assert_cmpuint(kit_on_card(), ==, bytes);
}

static void alloc(void)
{
    CUdeviceptr small, large, managed, never = 7, pitched;
    size_t pitch;

    kit_context();
    ok(cuMemAlloc_v2(&small, 1000));
    both(1000);
    ok(cuMemAlloc_v2(&large, 3 * MIB));
    both(1000 + 4 * MIB);
    ok(cuMemAllocManaged(&managed, 20 * MIB, 1));
    both(1000 + 24 * MIB);
    ok(cuMemAllocPitch_v2(&pitched, &pitch, 600, 4096, 4));
    g_assert_cmpuint(pitch, ==, 1024);
    both(1000 + 28 * MIB);
    full(cuMemAlloc_v2(&never, 37 * MIB));
    full(cuMemAllocManaged(&never, 37 * MIB, 1));
    full(cuMemAllocPitch_v2(&never, &pitch, 37 * MIB, 1, 4));
    g_assert_cmpuint(never, ==, 7);
    both(1000 + 28 * MIB);
    ok(cuMemFree_v2(large));
    ok(cuMemAlloc_v2(&large, 35 * MIB));
    both(1000 + 60 * MIB);
    ok(cuMemFree_v2(small));
    ok(cuMemFree_v2(large));
    ok(cuMemFree_v2(managed));
    ok(cuMemFree_v2(pitched));
    both(0);
    ok(cuMemFree_v2(0));
    g_assert_cmpint(cuMemFree_v2(12345), ==, CUDA_ERROR_INVALID_VALUE);
    both(0);
}

static void test_alloc(void)
{
    in_slice(LIMIT, alloc);
}

/* A driver that allocates by its own export: more than half of the slice is not asked for twice. */
static void by_itself(void)
{
    CUdeviceptr dptr;
    size_t pitch;

    kit_context();
    ok(cuMemAllocPitch_v2(&dptr, &pitch, 1024, 40 * 1024, 4));
    both(40 * MIB);
    ok(cuMemFree_v2(dptr));
    both(0);
}

static void test_by_itself(void)
{
    in_slice(LIMIT, by_itself);
}

static void old_names(void)
{
    CUdeviceptr_v1 a, b, never;
    unsigned int pitch;
    CUarray array, cube;
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {
        .Width = 1024, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {
        .Width = 256, .Height = 2, .Depth = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

    kit_context();
    ok(cuMemAlloc(&a, 1000));
    ok(cuMemAllocPitch(&b, &pitch, 10, 10, 4));
    full(cuMemAlloc(&never, 65 * MIB));
    ok(cuArrayCreate(&array, &flat));
    ok(cuArray3DCreate(&cube, &deep));
    both(1000 + 10240 + 8192 + 16384);
    ok(cuMemFree(a));
    ok(cuMemFree(b));
    ok(cuArrayDestroy(array));
    ok(cuArrayDestroy(cube));
    both(0);
}

static void test_old_names(void)
{
    in_slice(LIMIT, old_names);
}

/* What the driver refuses is not charged. */
static void refused(void)
{
    CUdeviceptr dptr;

    kit_context();
    g_assert_cmpint(cuMemAlloc_v2(&dptr, 0), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuMemAlloc_v2(NULL, 1000), ==, CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxSetCurrent(NULL));
    g_assert_cmpint(cuMemAlloc_v2(&dptr, 1000), ==, CUDA_ERROR_INVALID_CONTEXT);
    both(0);
}

static void test_refused(void)
{
    in_slice(LIMIT, refused);
}

/* Programs take the one for a lack of memory, and free some. */
static void wrong_at_the_limit(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr all, dptr;
    size_t pitch;

    kit_context();
    ok(cuMemAlloc_v2(&all, LIMIT));
    g_assert_cmpint(cuMemAlloc_v2(&dptr, 0), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuMemAllocManaged(&dptr, MIB, 0), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuMemAllocPitch_v2(&dptr, &pitch, 64, 64, 3), ==, CUDA_ERROR_INVALID_VALUE);
    g_assert_cmpint(cuMemCreate(&handle, 3 * MIB, &property, 0), ==, CUDA_ERROR_INVALID_VALUE);
    full(cuMemAllocManaged(&dptr, MIB, 2));
    full(cuMemAllocPitch_v2(&dptr, &pitch, 64, 64, 16));
    full(cuMemCreate(&handle, 4 * MIB, &property, 0));
    ok(cuCtxSetCurrent(NULL));
    g_assert_cmpint(cuMemAlloc_v2(&dptr, 1000), ==, CUDA_ERROR_INVALID_CONTEXT);
    both(LIMIT);
}

static void test_wrong_at_the_limit(void)
{
    in_slice(LIMIT, wrong_at_the_limit);
}

static uint64_t used_at_free;

static void note_used(void)
{
    used_at_free = (uint64_t)live_status(&kit_live, "a", "vram_used");
}

static void freed(void)
{
    void (**before_free)(void) = kit_driver("fake_before_free");
    CUdeviceptr dptr;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    *before_free = note_used;
    ok(cuMemFree_v2(dptr));
    g_assert_cmpuint(used_at_free, ==, 4 * MIB);
    kit_charged(0);
}

static void test_free_is_the_drivers_first(void)
{
    in_slice(LIMIT, freed);
}

static void arrays(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {.Width = 1000, /* a row is 4,032 bytes in the driver */
                                  .Height = 1024,
                                  .Format = CU_AD_FORMAT_FLOAT,
                                  .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = 256, .Height = 16, .Depth = 16, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2};
    CUmipmappedArray levels;
    CUarray a, b, sparse, never;

    kit_context();
    ok(cuArrayCreate_v2(&a, &flat));
    both(4 * MIB);
    ok(cuArray3DCreate_v2(&b, &deep));
    both(4 * MIB + 256 * 1024);
    deep.Flags = CUDA_ARRAY3D_SPARSE;
    ok(cuArray3DCreate_v2(&sparse, &deep));
    both(4 * MIB + 256 * 1024);
    deep.Flags = 0;
    ok(cuMipmappedArrayCreate(&levels, &deep, 4));
    both(4 * MIB + (512 + 32 + 8 + 2) * 1024);
    flat.Height = 65536;
    full(cuArrayCreate_v2(&never, &flat));
    both(4 * MIB + (512 + 32 + 8 + 2) * 1024);
    ok(cuArrayDestroy(a));
    ok(cuArrayDestroy(b));
    ok(cuArrayDestroy(sparse));
    ok(cuMipmappedArrayDestroy(levels));
    both(0);
}

static void test_arrays(void)
{
    in_slice(LIMIT, arrays);
}

/* Blocks of 4 by 4, planes of fewer colours than light, and formats that are all channels. */
static void formats(void)
{
    static const struct {
        CUarray_format format;
        unsigned int channels;
        uint64_t bytes;
    } of[] = {
        {0x91, 4, 2 * MIB},  /* BC1 */
        {0x97, 1, 2 * MIB},  /* BC4 */
        {0x9d, 4, 4 * MIB},  /* BC7 */
        {0xb0, 3, 6 * MIB},  /* NV12 */
        {0x9f, 3, 12 * MIB}, /* P010 */
        {0xa5, 2, 8 * MIB},  /* YUY2 */
        {0xb2, 3, 12 * MIB}, /* three planes */
        {0xc1, 2, 8 * MIB},  /* UNORM_INT8X2 */
        {0xc5, 4, 32 * MIB}, /* UNORM_INT16X4 */
        {0x50, 4, 16 * MIB}, /* 10, 10, 10, 2 */
        {0x53, 3, 6 * MIB},  /* as NV12 */
        {CU_AD_FORMAT_UNSIGNED_INT32, 2, 32 * MIB},
    };
    CUarray array;

    kit_context();
    for (unsigned int i = 0; i < G_N_ELEMENTS(of); i++) {
        CUDA_ARRAY_DESCRIPTOR flat = {
            .Width = 2048, .Height = 2048, .Format = of[i].format, .NumChannels = of[i].channels};

        ok(cuArrayCreate_v2(&array, &flat));
        both(of[i].bytes);
        ok(cuArrayDestroy(array));
    }
    both(0);
}

static void test_formats(void)
{
    in_slice(LIMIT, formats);
}

/* Of which the GPU keeps much more than is asked for. */
static void thin_arrays(void)
{
    CUDA_ARRAY3D_DESCRIPTOR thin = {.Width = 1,
                                    .Height = 32768,
                                    .Depth = 2048,
                                    .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                    .NumChannels = 1,
                                    .Flags = CUDA_ARRAY3D_LAYERED};
    CUmipmappedArray levels;
    CUarray array;

    kit_context();
    full(cuArray3DCreate_v2(&array, &thin));
    g_assert_cmpuint(kit_peak(), ==, 0);
    thin.Height = 1;
    thin.Depth = 1000;
    ok(cuArray3DCreate_v2(&array, &thin));
    both(512 * 1000);
    /* In each level are as many layers. */
    thin.Width = 1024;
    ok(cuMipmappedArrayCreate(&levels, &thin, 11));
    both(512 * 1000 + 20 * MIB);
    ok(cuMipmappedArrayDestroy(levels));
    ok(cuArrayDestroy(array));
    both(0);
}

static void test_thin_arrays(void)
{
    in_slice(LIMIT, thin_arrays);
}

/* A program under no limit, and one whose GPU has no slice: all passes. */
static void plain(void)
{
    CUdeviceptr dptr;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 1024 * MIB));
    g_assert_cmpuint(kit_on_card(), ==, 1024 * MIB);
    ok(cuMemFree_v2(dptr));
}

static void test_no_slice(void)
{
    in_slice(0, plain);
}

/* As Python does: the thread that allocates has no context, and PyTorch's segments grow and shrink.
 */
static void physical(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handles[8], never, kept, host;
    CUdeviceptr at;

    kit_context();
    ok(cuCtxSetCurrent(NULL));
    ok(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    for (int i = 0; i < 8; i++) {
        ok(cuMemCreate(&handles[i], 8 * MIB, &property, 0));
        ok(cuMemMap(at + i * 8 * MIB, 8 * MIB, 0, handles[i], 0));
        ok(cuMemRelease(handles[i]));
    }
    both(64 * MIB);
    full(cuMemCreate(&never, 2 * MIB, &property, 0));
    /* One call for many mappings, and a handle that keeps what was mapped. */
    ok(cuMemRetainAllocationHandle(&kept, (void *)(uintptr_t)(at + 9 * MIB)));
    ok(cuMemUnmap(at, 32 * MIB));
    both(40 * MIB);
    ok(cuMemRelease(kept));
    both(32 * MIB);
    ok(cuMemUnmap(at + 32 * MIB, 32 * MIB));
    both(0);
    property.location.type = (CUmemLocationType)2;
    ok(cuMemCreate(&host, 128 * MIB, &property, 0));
    both(0);
    ok(cuMemRelease(host));
}

static void test_physical(void)
{
    in_slice(LIMIT, physical);
}

/* Of the first level: 64 texels from @x on. */
static CUarrayMapInfo part_of(CUarray array, unsigned int x, CUmemGenericAllocationHandle handle)
{
    CUarrayMapInfo info = {.resource.array = array,
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandle.memHandle = handle};

    info.subresource.sparseLevel.offsetX = x;
    info.subresource.sparseLevel.extentWidth = 64;
    info.subresource.sparseLevel.extentHeight = 64;
    info.subresource.sparseLevel.extentDepth = 1;
    return info;
}

/* Memory that is mapped into an array is taken, whoever else has let go of it. */
static void sparse(void)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUDA_ARRAY3D_DESCRIPTOR of = {.Width = 1024,
                                  .Height = 1024,
                                  .Format = CU_AD_FORMAT_FLOAT,
                                  .NumChannels = 1,
                                  .Flags = CUDA_ARRAY3D_SPARSE};
    CUmemGenericAllocationHandle handles[4];
    CUarrayMapInfo infos[4];
    CUcontext context;
    CUarray array;

    context = kit_context();
    ok(cuArray3DCreate_v2(&array, &of));
    for (unsigned int i = 0; i < 4; i++) {
        ok(cuMemCreate(&handles[i], 8 * MIB, &property, 0));
        infos[i] = part_of(array, i * 64, handles[i]);
    }
    ok(cuMemMapArrayAsync(infos, 3, NULL));
    ok(cuMemMapArrayAsync_ptsz(&infos[3], 1, NULL));
    for (unsigned int i = 0; i < 4; i++)
        ok(cuMemRelease(handles[i]));
    both(32 * MIB);
    infos[0].memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    infos[0].subresource.sparseLevel.extentWidth = 128;
    ok(cuMemMapArrayAsync(infos, 1, NULL));
    both(16 * MIB);
    ok(cuArrayDestroy(array));
    both(0);
    ok(cuArray3DCreate_v2(&array, &of));
    ok(cuMemCreate(&handles[0], 8 * MIB, &property, 0));
    infos[0] = part_of(array, 0, handles[0]);
    ok(cuMemMapArrayAsync(infos, 1, NULL));
    ok(cuMemRelease(handles[0]));
    both(8 * MIB);
    ok(cuCtxDestroy_v2(context));
    both(0);
}

static void test_sparse(void)
{
    in_slice(LIMIT, sparse);
}

static void graphs(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS ten = {.bytesize = 10 * MIB}, sixty = {.bytesize = 60 * MIB};
    CUgraph graph, child, large;
    CUgraphExec exec, never;
    CUgraphNode node;
    CUdeviceptr dptr;

    kit_context();
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphCreate(&child, 0));
    ok(cuGraphCreate(&large, 0));
    ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &ten));
    ok(cuGraphAddMemAllocNode(&node, child, NULL, 0, &ten));
    ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    ok(cuGraphAddMemAllocNode(&node, large, NULL, 0, &sixty));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cuGraphInstantiateWithFlags(&never, large, 0));
    both(0);
    ok(cuGraphLaunch(exec, NULL));
    both(20 * MIB);
    ok(cuGraphLaunch(exec, NULL));
    both(20 * MIB);
    /* What graphs keep makes room for others. */
    ok(cuMemAlloc_v2(&dptr, 60 * MIB));
    both(60 * MIB);
    full(cuGraphLaunch(exec, NULL));
    full(cuGraphUpload(never, NULL));
    both(60 * MIB);
    ok(cuMemFree_v2(dptr));
    ok(cuGraphUpload(never, NULL));
    both(60 * MIB);
    ok(cuDeviceGraphMemTrim(0));
    both(0);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphExecDestroy(never));
}

static void test_graphs(void)
{
    in_slice(LIMIT, graphs);
}

static void foreign(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC of = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                           .size = 16 * MIB};
    CUexternalMemory first, second, never;
    int fd = memfd_create("foreign", 0);

    kit_context();
    of.handle.fd = dup(fd);
    ok(cuImportExternalMemory(&first, &of));
    kit_charged(16 * MIB);
    /* The same memory once more. */
    of.handle.fd = dup(fd);
    ok(cuImportExternalMemory(&second, &of));
    kit_charged(16 * MIB);
    of.handle.fd = memfd_create("other", 0);
    of.size = 60 * MIB;
    full(cuImportExternalMemory(&never, &of));
    kit_charged(16 * MIB);
    ok(cuDestroyExternalMemory(first));
    kit_charged(16 * MIB);
    ok(cuDestroyExternalMemory(second));
    kit_charged(0);
    /* A descriptor that tells nothing apart: each import is charged. */
    of.handle.fd = open("/dev/null", 0);
    of.size = 1 * MIB;
    ok(cuImportExternalMemory(&first, &of));
    of.handle.fd = open("/dev/null", 0);
    ok(cuImportExternalMemory(&second, &of));
    kit_charged(2 * MIB);
    ok(cuDestroyExternalMemory(first));
    ok(cuDestroyExternalMemory(second));
    kit_charged(0);
}

static void test_foreign(void)
{
    in_slice(LIMIT, foreign);
}

/*
 * Memory that is freed in a stream's order is the program's until the stream comes to that, and is
 * charged as long.
 */
static void freed_later(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;
    CUdeviceptr dptr, more;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 40 * MIB));
    ok(cuStreamWaitValue32_v2(stream, 16, 1, 0));
    ok(cuMemFreeAsync(dptr, stream));
    full(cuMemAlloc_v2(&more, 40 * MIB));
    g_assert_cmpuint(kit_peak(), ==, 40 * MIB);
    kit_charged(40 * MIB);
    ok(cuStreamWriteValue32_v2(other, 16, 1, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuMemAlloc_v2(&more, 40 * MIB));
    kit_charged(40 * MIB);
    ok(cuMemFree_v2(more));
    kit_charged(0);
    g_assert_cmpuint(kit_peak(), ==, 40 * MIB);
}

static void test_freed_later(void)
{
    kit_open(64 * MIB);
    kit_run(freed_later);
    kit_close();
}

/* What is being freed stays charged if its context does not end: it has another user, or is not the
 * program's to end. */
static void freed_by_nobody(void)
{
    CUstream stream = (CUstream)(uintptr_t)0x110, other = (CUstream)(uintptr_t)0x220;
    CUcontext context, again;
    CUdeviceptr dptr;

    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuDevicePrimaryCtxRetain(&again, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuMemAlloc_v2(&dptr, 40 * MIB));
    ok(cuStreamWaitValue32_v2(stream, 16, 1, 0));
    ok(cuMemFreeAsync(dptr, stream));
    ok(cuDevicePrimaryCtxRelease_v2(0));
    both(40 * MIB);
    g_assert_cmpint(cuCtxDestroy_v2(context), !=, CUDA_SUCCESS);
    both(40 * MIB);
    ok(cuStreamWriteValue32_v2(other, 16, 1, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuMemAlloc_v2(&dptr, 60 * MIB));
    both(60 * MIB);
    ok(cuStreamWaitValue32_v2(stream, 16, 2, 0));
    ok(cuMemFreeAsync(dptr, stream));
    both(60 * MIB);
    ok(cuDevicePrimaryCtxRelease_v2(0));
    both(0);
}

static void test_freed_by_nobody(void)
{
    in_slice(LIMIT, freed_by_nobody);
}

/* What another GPU is about to free is no reason to wait. */
static void freed_elsewhere(void)
{
    CUcontext first = kit_context(), second;
    CUdeviceptr dptr, never;
    CUstream stream;
    unsigned int before;

    ok(cuCtxCreate_v2(&second, 0, 1));
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    ok(cuStreamWaitValue32_v2(stream, 16, 1, 0));
    ok(cuMemFreeAsync(dptr, stream));
    ok(cuCtxSetCurrent(first));
    before = kit_calls("cuEventQuery");
    full(cuMemAlloc_v2(&never, 65 * MIB));
    g_assert_cmpuint(kit_calls("cuEventQuery"), ==, before);
    kit_charged_b(4 * MIB);
    ok(cuCtxSetCurrent(second));
    full(cuMemAlloc_v2(&never, 65 * MIB));
    g_assert_cmpuint(kit_calls("cuEventQuery"), >, before);
    ok(cuCtxDestroy_v2(second));
    kit_charged_b(0);
}

static void test_freed_elsewhere(void)
{
    kit_open_devices("[slice]\nvram=67108864\n", "[slice]\nvram=67108864\n");
    kit_run(freed_elsewhere);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/freed-later", test_freed_later);
    g_test_add_func("/memory/freed-by-nobody", test_freed_by_nobody);
    g_test_add_func("/memory/freed-elsewhere", test_freed_elsewhere);
    g_test_add_func("/memory/alloc", test_alloc);
    g_test_add_func("/memory/by-itself", test_by_itself);
    g_test_add_func("/memory/old-names", test_old_names);
    g_test_add_func("/memory/refused", test_refused);
    g_test_add_func("/memory/wrong-at-the-limit", test_wrong_at_the_limit);
    g_test_add_func("/memory/free-is-the-drivers-first", test_free_is_the_drivers_first);
    g_test_add_func("/memory/arrays", test_arrays);
    g_test_add_func("/memory/formats", test_formats);
    g_test_add_func("/memory/thin-arrays", test_thin_arrays);
    g_test_add_func("/memory/no-slice", test_no_slice);
    g_test_add_func("/memory/physical", test_physical);
    g_test_add_func("/memory/sparse", test_sparse);
    g_test_add_func("/memory/graphs", test_graphs);
    g_test_add_func("/memory/foreign", test_foreign);
    return g_test_run();
}
