// SPDX-License-Identifier: MIT
#include "client.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Larger than any part of a channel, by each kind of copy. */
void check_large_copies(void)
{
    const size_t bytes = 24 * MIB + 12345;
    unsigned char *from = malloc(bytes), *to = calloc(1, bytes), *locked;
    CUstream stream;
    CUdeviceptr at;

    begin_context();
    ok(cuStreamCreate(&stream, 0));
    at = allocate_device(bytes);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + i / 4096);
    ok(cuMemcpyHtoD_v2(at, from, bytes));
    ok(cuMemcpyDtoH_v2(to, at, bytes));
    must(!memcmp(from, to, bytes));
    ok(cuMemHostAlloc((void **)&locked, bytes, 0));
    ok(cuMemcpyDtoHAsync_v2(locked, at, bytes, stream));
    ok(cuStreamSynchronize(stream));
    must(!memcmp(from, locked, bytes));
    memset(locked, 5, bytes);
    ok(cuMemcpyHtoDAsync_v2(at, locked, bytes, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpy((uintptr_t)to, at, bytes));
    must(!memcmp(to, locked, bytes));
    ok(cuMemcpy(at, (uintptr_t)from, bytes));
    ok(cuMemcpy((uintptr_t)locked, at, bytes));
    must(!memcmp(from, locked, bytes));
    ok(cuMemFreeHost(locked));
    is(cuMemFreeHost(locked), CUDA_ERROR_INVALID_VALUE);
    for (unsigned int i = 0; i < 200; i++) {
        ok(cuMemHostAlloc((void **)&locked, 100000 * (1 + i % 7), 0));
        locked[i] = 1;
        ok(cuMemFreeHost(locked));
    }
}

#define ROWS  5u
#define WIDTH 24u
#define PITCH 64u

static uint8_t byte_of(unsigned int row, unsigned int at)
{
    return (uint8_t)(row * 31 + at + 1);
}

/* Rows with gaps between them, which no copy may touch. */
static void fill_rows(uint8_t *at, uint8_t gap)
{
    memset(at, gap, ROWS * PITCH);
    for (unsigned int y = 0; y < ROWS; y++)
        for (unsigned int x = 0; x < WIDTH; x++)
            at[y * PITCH + x] = byte_of(y, x);
}

/* To the GPU without gaps, and back with others. */
static void move_rows(uint8_t *from, uint8_t *to)
{
    CUdeviceptr on_gpu = allocate_device(ROWS * WIDTH);
    const CUDA_MEMCPY2D there = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = from,
                                 .srcPitch = PITCH,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = on_gpu,
                                 .WidthInBytes = WIDTH,
                                 .Height = ROWS};
    const CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = on_gpu,
                                .srcY = 1,
                                .srcXInBytes = 4,
                                .srcPitch = WIDTH,
                                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .dstDevice = (uintptr_t)to,
                                .dstPitch = 2ull * PITCH,
                                .dstHeight = 2,
                                .WidthInBytes = WIDTH - 4,
                                .Height = 2,
                                .Depth = 2};

    fill_rows(from, 0);
    memset(to, 0xee, 4ull * 2 * PITCH);
    ok(cuMemcpy2D_v2(&there));
    ok(cuMemcpy3D_v2(&back));
    for (unsigned int y = 0; y < 4; y++)
        for (unsigned int x = 0; x < 2 * PITCH; x++)
            must(to[y * 2 * PITCH + x] == (x < WIDTH - 4 ? byte_of(y + 1, x + 4) : 0xee));
    ok(cuMemFree_v2(on_gpu));
}

/* Of more than is sent at once, so that it goes in parts. */
static void move_many_rows(void)
{
    size_t width = 1000, pitch = 1024, rows = 40000;
    uint8_t *from = calloc(rows, pitch), *to = calloc(rows, pitch);
    CUdeviceptr on_gpu = allocate_device(rows * pitch);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = from,
                          .srcPitch = pitch,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = on_gpu,
                          .dstPitch = pitch,
                          .WidthInBytes = width,
                          .Height = rows};
    CUstream stream;

    must(from && to);
    for (size_t i = 0; i < rows * pitch; i++)
        from[i] = (uint8_t)(i * 2654435761u >> 13);
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemcpy2DAsync_v2(&copy, stream));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = on_gpu;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    ok(cuMemcpy2DAsync_v2(&copy, stream));
    for (size_t y = 0; y < rows; y++)
        must(!memcmp(from + y * pitch, to + y * pitch, width) && !to[y * pitch + width]);
    ok(cuMemFree_v2(on_gpu));
    on_gpu = allocate_device(rows * pitch);
    ok(cuMemcpyHtoD_v2(on_gpu, from, rows * pitch));
    ok(cuMemcpyDtoHAsync_v2(to, on_gpu, rows * pitch, stream));
    must(!memcmp(from, to, rows * pitch));
    free(from);
    free(to);
}

/* Memory of the program alone, pinned memory, and what is not there at all. */
void check_copies_of_rows(void)
{
    uint8_t from[ROWS * PITCH], to[8 * PITCH];
    CUDA_MEMCPY2D wrong = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = calloc(1, MIB),
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .WidthInBytes = 1024,
                           .Height = 1024};
    void *pinned;

    begin_context();
    move_rows(from, to);
    ok(cuMemHostAlloc(&pinned, 2 * sizeof(to), 0));
    move_rows(pinned, (uint8_t *)pinned + sizeof(to));
    move_many_rows();
    wrong.dstDevice = allocate_device(MIB / 2);
    is(cuMemcpy2D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
    wrong.dstMemoryType = (CUmemorytype)9;
    wrong.Height = 1;
    is(cuMemcpy2D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
    is(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A graph copies when it is launched: what was only sent is not there any more. */
void check_captured_copies(void)
{
    CUdeviceptr at;
    CUstream stream;
    CUgraph graph;
    unsigned int value = 7;
    void *pinned;

    begin_context();
    at = allocate_device(4096);
    ok(cuMemHostAlloc(&pinned, 4096, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamBeginCapture_v2(stream, 2));
    is(cuMemcpyDtoHAsync_v2(&value, at, sizeof(value), stream), 900);
    ok(cuMemcpyHtoDAsync_v2(at, pinned, 4096, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphDestroy(graph));
    must(value == 7);
}
